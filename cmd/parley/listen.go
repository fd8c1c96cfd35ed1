package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/callback"
	"parley/internal/client"
)

func (c *cli) listen() *cobra.Command {
	var forwardTo, channel string
	var events []string
	var printSecret bool
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Follow the events of a running server, and forward them to your own",
		Long: `Follow the events of a running server: one line for each, or with --json its whole body.

With --forward-to each one is sent to an address of yours as a webhook would be, signed with a secret
that stays the same for this data directory; what your server does not take is tried again after 5
seconds, 5 minutes and 30 minutes, and later events of the same chat wait behind it. When the
connection to the server is lost, listen goes on where it stopped.`,
		Example: `  parley listen --forward-to localhost:3000/hook
  export WEBHOOK_SECRET=$(parley listen --print-secret)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			types, err := eventTypes(events)
			if err != nil {
				return err
			}
			if printSecret {
				keys, err := c.listenKeys(cmd)
				if err != nil {
					return err
				}
				return c.printSecret(client.Secret{Secret: keys.Secret})
			}
			return c.follow(cmd, types, channel, forwardTo)
		},
	}
	cmd.Flags().StringVar(&forwardTo, "forward-to", "", "the address to send each event to, for example localhost:3000/hook")
	cmd.Flags().StringSliceVar(&events, "events", nil, "only these types of events, separated by commas")
	cmd.Flags().StringVar(&channel, "channel", "", "only events of this channel (default: all that the token may see)")
	cmd.Flags().BoolVar(&printSecret, "print-secret", false, "print the secret that signs what is forwarded, and end")
	clientFlags(cmd)
	return cmd
}

// listenKeys returns what forwarded events are signed with.
func (c *cli) listenKeys(cmd *cobra.Command) (callback.Keys, error) {
	var s client.Secret
	err := c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		_, err := api.Get(ctx, client.Path("listen-secret"), nil, &s)
		return err
	})
	return callback.Keys{Secret: s.Secret}, err
}

// follow prints events, and forwards them where an address is given, until the command ends.
func (c *cli) follow(cmd *cobra.Command, types []parley.EventType, channel, forwardTo string) error {
	ctx := cmd.Context()
	cl, err := c.client(keyToken, app.EnvGlobalToken, func(r app.Running) string { return r.GlobalToken })
	if err != nil {
		return err
	}
	cl.Channel = channel
	ear := &ear{cli: c, client: cl, query: url.Values{}}
	if len(types) > 0 {
		ear.query.Set("types", joinTypes(types))
	}
	teller := &teller{out: c.out, json: c.json}
	on := func(e heard) error { teller.event(e); return nil }
	ready := "Ready. ^C to quit"
	if forwardTo != "" {
		address, err := forwardAddress(forwardTo)
		if err != nil {
			return err
		}
		keys, err := c.listenKeys(cmd)
		if err != nil {
			return err
		}
		ready = fmt.Sprintf("Ready. Signing secret %s  (stays the same for this data directory; --print-secret for scripts). ^C to quit", keys.Secret)
		if !c.errTerminal { // it may be a log
			ready = "Ready. The signing secret is what parley listen --print-secret prints. ^C to quit"
		}
		outcome := io.Writer(c.out)
		if c.json {
			outcome = c.err // only bodies are data
		}
		f := newForwarder(address, keys, func(line string) { teller.line(outcome, line) })
		defer f.wait()
		on = func(e heard) error { teller.event(e); return f.forward(ctx, e) }
	}
	ear.connected = func() { c.hint("%s", ready) }
	return c.explain(ctx, cl, ear.listen(ctx, on))
}

// forwardAddress completes and checks the address to forward to. It is the developer's own choice, so
// any will do that HTTP can reach.
func forwardAddress(given string) (string, error) {
	address := given
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fail(exitUsage, "--forward-to: %q is not an address such as localhost:3000/hook or https://example.com/hook", given)
	}
	return u.String(), nil
}

// teller prints lines whole, whoever writes them.
type teller struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

func (t *teller) line(to io.Writer, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(to, text)
}

func (t *teller) event(e heard) {
	if t.json {
		t.line(t.out, string(e.body))
		return
	}
	t.line(t.out, fmt.Sprintf("%s  --> %-17s %s   %s", clock(time.Now()), e.Type, e.ID, e.summary()))
}

// heard is an event as it came.
type heard struct {
	ID      parley.EventID     `json:"id"`
	Type    parley.EventType   `json:"type"`
	Channel parley.ChannelCode `json:"channel"`
	Data    struct {
		ContactID string `json:"contact_id"`
		MessageID string `json:"message_id"`
		ID        string `json:"id"`
		FromMe    string `json:"from_me"`
		Status    string `json:"status"`
		Was       string `json:"was"`
		Reason    string `json:"reason"`
		Reaction  *struct {
			Emoji string `json:"emoji"`
		} `json:"reaction"`
		Vote *struct {
			Options []string `json:"options"`
		} `json:"vote"`
	} `json:"data"`

	body []byte
}

func newHeard(body []byte) (heard, error) {
	e := heard{body: body}
	return e, json.Unmarshal(body, &e)
}

// chat names whose events keep their order among each other.
func (e *heard) chat() string { return string(e.Channel) + " " + e.Data.ContactID }

// summary is an event in a few words, safe to show on a terminal: who did what to whom, and no text.
func (e *heard) summary() string {
	from, to := contactName(e.Data.ContactID), string(e.Channel)
	if e.Data.FromMe == "true" && e.Data.Reaction == nil && e.Data.Vote == nil {
		from, to = to, from
	}
	way := from + " → " + to
	switch {
	case e.Type == parley.ChannelStatusChanged:
		return app.Plain(strings.TrimSpace(fmt.Sprintf("%s %s, was %s  %s", e.Channel, e.Data.Status, e.Data.Was, e.Data.Reason)))
	case e.Data.Reaction != nil:
		return app.Plain(way + "  " + e.Data.Reaction.Emoji)
	case e.Data.Vote != nil:
		return app.Plain(way + "  " + strings.Join(e.Data.Vote.Options, ", "))
	case e.Type == parley.MessageStatus:
		return app.Plain(fmt.Sprintf("%s  %s", e.Data.Status, way))
	case e.Data.MessageID != "":
		return app.Plain(way)
	}
	return app.Plain(strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Data.ID, contactName(e.Data.ContactID), e.Data.Reason)))
}

func contactName(id string) string {
	if number, ok := strings.CutSuffix(id, "@c.us"); ok {
		return app.ShowNumber(number)
	}
	return id
}
