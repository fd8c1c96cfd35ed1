package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

// triggerTimeout is how long an event may take to happen. A socket that was dropped is noticed and an
// expiry told within a few seconds.
const triggerTimeout = 20 * time.Second

func (c *cli) trigger() *cobra.Command {
	t := trigger{cli: c}
	happen := t.names()
	var channel, from, to string
	cmd := &cobra.Command{
		Use:   "trigger EVENT",
		Short: "Cause a real event on a sandbox channel",
		Long: `Cause a real event on a sandbox channel; listeners and webhooks receive it. Nothing is faked: a phone writes, sends a file, reacts, votes or deletes; a message is sent to it; the
channel loses its connection; a one-time code is asked for and used, mistyped or left to expire (which
moves the channel's clock).

Events: ` + strings.Join(happen, ", "),
		Example: `  parley trigger message.received --from +6281234567890 --text 'menu'
  parley trigger otp.approved`,
		ValidArgs: happen,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if from != "" && to != "" && from != to {
				return fail(exitUsage, "--from and --to both mean the phone at the other end. Give one of them")
			}
			if t.kind = parley.EventType(args[0]); t.acts()[t.kind] == nil {
				return t.unknown()
			}
			if given := from + to; given != "" {
				if from != "" {
					given = from
				}
				if t.number, err = digits(given); err != nil {
					return err
				}
			}
			if t.api, err = c.onChannel(cmd.Context(), channel); err != nil {
				return err
			}
			return c.explain(cmd.Context(), t.api, t.run(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "the channel that it happens on (default: the token's own)")
	cmd.Flags().StringVar(&from, "from", "", "the number of the phone at the other end (default: the first one; for codes a new one)")
	cmd.Flags().StringVar(&to, "to", "", "the same, for what is sent to it")
	cmd.Flags().StringVar(&t.text, "text", "Halo dari parley", "what is written")
	clientFlags(cmd)
	return cmd
}

// names lists the events that can be made to happen.
func (t *trigger) names() []string {
	var names []string
	for kind := range t.acts() {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return names
}

// unknown says what can be made to happen instead.
func (t *trigger) unknown() error {
	if _, known := parley.ParseEventType(string(t.kind)); known {
		if t.kind != parley.ChannelPairing {
			return fail(exitUsage, "%s cannot be triggered: it takes too many codes", t.kind)
		}
		return fail(exitUsage, "%s does not happen on the sandbox: its channels need no pairing", t.kind)
	}
	return fail(exitUsage, "there is no event %q.%s There are:\n  %s", t.kind, didYouMean(string(t.kind), t.names()), strings.Join(t.names(), "\n  "))
}

// trigger makes one event happen.
type trigger struct {
	cli    *cli
	api    *client.Client
	kind   parley.EventType
	number string // of the phone; empty: any
	text   string
}

// happened is what is answered.
type happened struct {
	ID        parley.EventID   `json:"id"`
	Type      parley.EventType `json:"type"`
	Listeners int              `json:"listeners"`
	Webhooks  int              `json:"webhooks"`
}

func (t *trigger) run(ctx context.Context) error {
	// Who is told is asked before we listen ourselves.
	done := happened{Type: t.kind}
	if _, err := t.api.Get(ctx, "/api/sandbox/listeners", url.Values{"type": {string(t.kind)}}, &done); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, triggerTimeout, errTooLong)
	defer cancel()
	resp, err := t.api.Events(ctx, url.Values{"types": {string(t.kind)}}, "")
	if err != nil {
		return t.explain(ctx, err)
	}
	defer resp.Body.Close()
	about, err := t.acts()[t.kind](ctx)
	if err != nil {
		return t.explain(ctx, err)
	}
	for events := newEventReader(resp.Body); ; {
		e, err := events.next()
		if err != nil {
			return t.explain(ctx, fail(exitUnreachable, "the stream of %s ended: %w", t.api.Base, err))
		}
		if about == "" || about == e.Data.MessageID || about == e.Data.ID {
			done.ID = e.ID
			return t.print(done)
		}
	}
}

var errTooLong = errors.New("it took too long")

// explain says that the event did not happen, where that is why we ended.
func (t *trigger) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return fail(exitNotSo, "%s did not happen within %s", t.kind, triggerTimeout)
	}
	return err
}

func (t *trigger) print(done happened) error {
	if t.cli.json {
		return t.cli.printJSON(done)
	}
	fmt.Fprintf(t.cli.out, "%s %s published: %s connected, %s subscribed\n", done.Type, done.ID, count(done.Listeners, "listener"), count(done.Webhooks, "webhook"))
	return nil
}
