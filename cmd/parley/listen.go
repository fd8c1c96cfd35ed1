package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/callback"
	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) listen() *cobra.Command {
	var forwardTo, channel string
	var events []string
	var printSecret bool
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Print the events of a running server, and forward them to your own",
		Long: `Print the events of a running server: one line for each, or with --json its whole body.

With --forward-to, each event is sent to an address of yours like a webhook, signed with a secret that does not
change for this data directory. A failed attempt is retried after 5 seconds, 5 minutes and 30 minutes; later
events of the same chat wait for it. When the connection to the server is lost, listen resumes where it stopped.`,
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
				return c.print(wire.Secret{Secret: keys.Secret}, keys.Secret)
			}
			return c.follow(cmd, types, channel, forwardTo)
		},
	}
	cmd.Flags().StringVar(&forwardTo, "forward-to", "", "the address that receives each event, for example localhost:3000/hook")
	cmd.Flags().StringSliceVar(&events, "events", nil, "only these types of events, separated by commas")
	cmd.Flags().StringVar(&channel, "channel", "", "only events of this channel (default: all channels of the token)")
	cmd.Flags().BoolVar(&printSecret, "print-secret", false, "print the secret that signs forwarded events, and exit")
	clientFlags(cmd)
	return cmd
}

func (c *cli) listenKeys(cmd *cobra.Command) (callback.Keys, error) {
	var s wire.Secret
	err := c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		_, err := api.Get(ctx, client.Path("listen-secret"), nil, &s)
		return err
	})
	return callback.Keys{Secret: s.Secret}, err
}

// follow prints events, and forwards them to an address if one is given, until the command ends.
func (c *cli) follow(cmd *cobra.Command, types []parley.EventType, channel, forwardTo string) error {
	ctx := cmd.Context()
	cl, err := c.client(keyToken, app.EnvGlobalToken, func(r app.Running) string { return r.GlobalToken })
	if err != nil {
		return err
	}
	cl.Channel = channel
	stream := &stream{cli: c, client: cl, query: url.Values{}}
	if len(types) > 0 {
		stream.query.Set("types", strings.Join(words(types), ","))
	}
	lines := &linePrinter{out: c.out, json: c.json}
	on := func(e streamEvent) error { lines.event(e); return nil }
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
		ready = fmt.Sprintf("Ready. Signing secret %s  (does not change for this data directory; --print-secret for scripts). ^C to quit",
			keys.Secret)
		if !c.errTerminal { // it may be a log
			ready = "Ready. Print the signing secret with parley listen --print-secret. ^C to quit"
		}
		outcome := io.Writer(c.out)
		if c.json {
			outcome = c.err // only bodies are data
		}
		f := newForwarder(address, keys, func(line string) { lines.print(outcome, line) })
		defer f.running.Wait()
		on = func(e streamEvent) error { lines.event(e); return f.forward(ctx, e) }
	}
	stream.connected = func() { c.hint("%s", ready) }
	return c.explain(ctx, cl, stream.follow(ctx, on))
}

// forwardAddress completes and checks the address to forward to. The developer chose it, so private addresses are
// allowed.
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

// linePrinter prints whole lines for concurrent writers.
type linePrinter struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

func (t *linePrinter) print(to io.Writer, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(to, text)
}

func (t *linePrinter) event(e streamEvent) {
	if t.json {
		t.print(t.out, string(e.body))
		return
	}
	t.print(t.out, fmt.Sprintf("%s  --> %-17s %s   %s", clock(time.Now()), e.Type, e.ID, e.summary()))
}

// streamEvent is an event with the fields of all types.
type streamEvent struct {
	wire.Event
	Data struct {
		wire.Message
		Was      string             `json:"was"`
		Reason   string             `json:"reason"`
		Name     string             `json:"name"`  // of a group that changed, if it is new
		Added    []parley.ContactID `json:"added"` // to a group
		Removed  []parley.ContactID `json:"removed"`
		Reaction *struct {
			Emoji     string           `json:"emoji"`
			ContactID parley.ContactID `json:"contact_id"` // who reacted
		} `json:"reaction"`
		Vote *struct {
			Options []string `json:"options"`
		} `json:"vote"`
	} `json:"data"`

	body []byte
}

func newStreamEvent(body []byte) (streamEvent, error) {
	e := streamEvent{body: body}
	return e, json.Unmarshal(body, &e)
}

// chat identifies the events that are forwarded in order.
func (e *streamEvent) chat() string { return string(e.Channel) + " " + string(e.Data.ContactID) }

// summary describes an event without its text, safe for a terminal.
func (e *streamEvent) summary() string {
	from, to := contactName(e.Data.ContactID), string(e.Channel)
	if e.Data.Outgoing && e.Data.Reaction == nil && e.Data.Vote == nil {
		from, to = to, from
	}
	way := from + " → " + to
	switch {
	case e.Type == parley.ChannelStatusChanged:
		return app.Plain(strings.TrimSpace(fmt.Sprintf("%s %s, was %s  %s", e.Channel, e.Data.Status, e.Data.Was, e.Data.Reason)))
	case e.Type == parley.GroupChanged:
		return app.Plain(e.groupChange())
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

// groupChange says what changed in a group.
func (e *streamEvent) groupChange() string {
	text := string(e.Data.GroupID)
	if e.Data.GroupName != nil && *e.Data.GroupName != "" {
		text = *e.Data.GroupName
	}
	if e.Data.Name != "" {
		text += "  name " + strconv.Quote(e.Data.Name)
	}
	for _, id := range e.Data.Added {
		text += "  added " + contactName(id)
	}
	for _, id := range e.Data.Removed {
		text += "  removed " + contactName(id)
	}
	return text
}

func contactName(id parley.ContactID) string {
	if number, ok := strings.CutSuffix(string(id), "@c.us"); ok {
		return app.ShowNumber(number)
	}
	return string(id)
}
