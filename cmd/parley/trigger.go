package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

// triggerTimeout is how long an event may take. A dropped connection and an expiry need a few seconds.
const triggerTimeout = 20 * time.Second

func (c *cli) trigger() *cobra.Command {
	t := trigger{cli: c}
	happen := t.names()
	var channel, from, to string
	cmd := &cobra.Command{
		Use:   "trigger EVENT",
		Short: "Cause a real event on a sandbox channel",
		Long: `Cause a real event on a sandbox channel; listeners and webhooks receive it. Nothing is faked: a phone writes,
sends a file, reacts, votes or deletes; a message is sent to it; the channel loses its connection; a one-time
code is requested and then approved, mistyped or expired (which advances the channel's clock).

Events: ` + strings.Join(happen, ", "),
		Example: `  parley trigger message.received --from +6281234567890 --text 'menu'
  parley trigger otp.approved`,
		ValidArgs: happen,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if from != "" && to != "" && from != to {
				return fail(exitUsage, "--from and --to both select the phone. Give one of them")
			}
			if t.kind = parley.EventType(args[0]); t.causes()[t.kind] == nil {
				return t.unknown()
			}
			if t.number, err = optionalDigits(cmp.Or(from, to)); err != nil {
				return err
			}
			if t.api, err = c.onChannel(cmd.Context(), channel); err != nil {
				return err
			}
			return c.explain(cmd.Context(), t.api, t.run(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "the channel that it happens on (default: the token's channel)")
	cmd.Flags().StringVar(&from, "from", "", "the number of the phone (default: the first one; for codes a new one)")
	cmd.Flags().StringVar(&to, "to", "", "the same as --from, for messages to the phone")
	cmd.Flags().StringVar(&t.text, "text", "Halo dari parley", "the text of the message")
	clientFlags(cmd)
	return cmd
}

func (t *trigger) names() []string {
	return words(slices.Sorted(maps.Keys(t.causes())))
}

// unknown lists the events that can be triggered instead.
func (t *trigger) unknown() error {
	if _, known := parley.ParseEventType(string(t.kind)); known {
		if t.kind != parley.ChannelPairing {
			return fail(exitUsage, "%s cannot be triggered: it needs too many codes", t.kind)
		}
		return fail(exitUsage, "%s does not happen on the sandbox: its channels need no pairing", t.kind)
	}
	return fail(exitUsage, "there is no event %q.%s Events:\n  %s", t.kind, didYouMean(string(t.kind), t.names()), strings.Join(t.names(),
		"\n  "))
}

type trigger struct {
	cli    *cli
	api    *client.Client
	kind   parley.EventType
	number string // of the phone; empty: any
	text   string
}

type triggered struct {
	ID        parley.EventID   `json:"id"`
	Type      parley.EventType `json:"type"`
	Listeners int              `json:"listeners"`
	Webhooks  int              `json:"webhooks"`
}

func (t *trigger) run(ctx context.Context) error {
	// The listeners are counted before this command becomes one.
	done := triggered{Type: t.kind}
	if _, err := t.api.Get(ctx, "/api/sandbox/listeners", url.Values{"type": {string(t.kind)}}, &done); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, triggerTimeout, errTooLong)
	defer cancel()
	resp, err := t.api.Events(ctx, client.EventsPath, url.Values{"types": {string(t.kind)}}, "")
	if err != nil {
		return t.explain(ctx, err)
	}
	defer resp.Body.Close()
	about, err := t.causes()[t.kind](ctx)
	if err != nil {
		return t.explain(ctx, err)
	}
	for events := client.NewEventReader(resp.Body); ; {
		body, err := events.Next()
		if err != nil {
			return t.explain(ctx, fail(exitUnreachable, "the stream of %s ended: %w", t.api.Base, err))
		}
		e, err := newStreamEvent(body)
		if err != nil {
			return err
		}
		if about == "" || about == e.Data.MessageID || about == string(e.Data.ID) {
			done.ID = e.ID
			return t.cli.print(done, fmt.Sprintf("%s %s published: %s connected, %s subscribed", done.Type, done.ID,
				count(done.Listeners, "listener"), count(done.Webhooks, "webhook")))
		}
	}
}

var errTooLong = errors.New("it took too long")

// explain replaces the error after a timeout.
func (t *trigger) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return fail(exitTimeout, "%s did not happen within %s", t.kind, triggerTimeout)
	}
	return err
}

// cause causes an event and returns the id of its message or code, or "".
type cause func(ctx context.Context) (about string, err error)

// causes has an entry for every event except those that the sandbox lacks and those of an attack.
func (t *trigger) causes() map[parley.EventType]cause {
	return map[parley.EventType]cause{
		parley.MessageReceived:      t.write,
		parley.MessageStatus:        t.send,
		parley.MessageReaction:      t.then(t.send, map[string]any{"type": "reaction", "reaction": "👍"}),
		parley.MessageDeleted:       t.then(t.write, map[string]any{"type": "delete"}),
		parley.MessageEdited:        t.then(t.write, map[string]any{"type": "edit", "message": t.text + " (edited)"}),
		parley.MessageMedia:         t.attach,
		parley.PollVoted:            t.then(t.poll, map[string]any{"type": "vote", "options": []string{"Ya"}}),
		parley.ChannelStatusChanged: t.drop,
		parley.OTPApproved:          t.approve,
		parley.OTPFailed:            t.mistype,
		parley.OTPExpired:           t.expire,
		parley.GroupChanged:         t.rename,
	}
}

func (t *trigger) write(ctx context.Context) (string, error) {
	return t.asPhone(ctx, map[string]any{"type": "text", "message": t.text})
}

func (t *trigger) send(ctx context.Context) (string, error) {
	return t.toPhone(ctx, "text", map[string]any{"message": t.text})
}

// then has the phone act on the message of another cause.
func (t *trigger) then(first cause, act map[string]any) cause {
	return func(ctx context.Context) (string, error) {
		id, err := first(ctx)
		if err != nil {
			return "", err
		}
		act["message_id"] = id
		_, err = t.asPhone(ctx, act)
		return id, err
	}
}

// rename has the phone give a new group another name.
func (t *trigger) rename(ctx context.Context) (string, error) {
	var group struct {
		ID parley.GroupID `json:"id"`
	}
	if err := t.choosePhone(ctx); err != nil {
		return "", err
	}
	body := map[string]any{"name": "Parley", "participants": []any{t.contact()}}
	if _, err := t.api.Post(ctx, "/api/groups/create", body, &group); err != nil {
		return "", err
	}
	body = map[string]any{"group_id": group.ID, "action": "rename", "name": t.text}
	_, err := t.api.Post(ctx, "/api/sandbox/phones/"+t.number+"/group", body, nil)
	return "", err
}

func (t *trigger) attach(ctx context.Context) (string, error) {
	file := map[string]any{"data": []byte(t.text), "filename": "parley.txt"} // in base64
	return t.asPhone(ctx, map[string]any{"type": "file", "caption": t.text, "file": file})
}

func (t *trigger) poll(ctx context.Context) (string, error) {
	return t.toPhone(ctx, "poll", map[string]any{"title": t.text, "options": []string{"Ya", "Tidak"}})
}

func (t *trigger) drop(ctx context.Context) (string, error) {
	if _, err := t.api.Post(ctx, "/api/sandbox/faults", map[string]any{"fault": "drop_socket", "times": 1}, nil); err != nil {
		return "", err
	}
	_, err := t.send(ctx)
	return "", err
}

func (t *trigger) approve(ctx context.Context) (string, error) {
	var at position
	if _, err := t.api.Get(ctx, "/api/sandbox/cursor", nil, &at); err != nil {
		return "", err
	}
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	var came []received
	query := url.Values{"after": {at.Cursor}, "wait": {"10"}}
	if _, err := t.api.Get(ctx, messagesPath(t.number), query, &came); err != nil {
		return "", err
	}
	for _, m := range came {
		for _, code := range m.Codes {
			if approved, err := t.validate(ctx, code); err != nil || approved {
				return id, err
			}
		}
	}
	return "", fail(exitTimeout, "no code reached the phone")
}

func (t *trigger) mistype(ctx context.Context) (string, error) {
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	const tries = 5
	for range tries {
		if _, err := t.validate(ctx, "wrong"); err != nil { // codes have only digits
			return "", err
		}
	}
	return id, nil
}

func (t *trigger) expire(ctx context.Context) (string, error) {
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.api.Post(ctx, "/api/sandbox/clock", map[string]any{"advance": codeLife + 1}, nil)
	return id, err
}

// codeLife is the shortest validity of a code, in seconds.
const codeLife = 30

// requestCode requests a code, by default for a new phone, which no limit affects.
func (t *trigger) requestCode(ctx context.Context) (string, error) {
	if t.number == "" {
		if err := t.addPhone(ctx); err != nil {
			return "", err
		}
	}
	var made struct {
		ID string `json:"id"`
	}
	_, err := t.api.Post(ctx, "/api/otp/code/request", map[string]any{"contact_id": t.contact(), "expires": codeLife}, &made)
	return made.ID, err
}

func (t *trigger) validate(ctx context.Context, code string) (approved bool, err error) {
	a, err := t.api.Post(ctx, "/api/otp/code/validate", map[string]any{"contact_id": t.contact(), "code": code}, nil)
	return err == nil && a.Success, err
}

func (t *trigger) asPhone(ctx context.Context, body map[string]any) (string, error) {
	if err := t.choosePhone(ctx); err != nil {
		return "", err
	}
	return t.post(ctx, "/api/sandbox/phones/"+t.number+"/send", body)
}

func (t *trigger) toPhone(ctx context.Context, kind string, body map[string]any) (string, error) {
	if err := t.choosePhone(ctx); err != nil {
		return "", err
	}
	body["contact_id"] = t.contact()
	return t.post(ctx, "/api/send-message/"+kind, body)
}

// post makes a request and returns the id of the message in the response.
func (t *trigger) post(ctx context.Context, path string, body map[string]any) (string, error) {
	var m messageID
	_, err := t.api.Post(ctx, path, body, &m)
	return m.MessageID, err
}

func (t *trigger) choosePhone(ctx context.Context) error {
	if t.number != "" {
		return nil
	}
	var phones []wire.Phone
	if _, err := t.api.Get(ctx, "/api/sandbox/phones", nil, &phones); err != nil {
		return err
	}
	if len(phones) > 0 {
		t.number = phones[0].Number
		return nil
	}
	return t.addPhone(ctx)
}

func (t *trigger) addPhone(ctx context.Context) error {
	var p wire.Phone
	_, err := t.api.Post(ctx, "/api/sandbox/phones", map[string]string{}, &p)
	t.number = p.Number
	return err
}

func (t *trigger) contact() parley.ContactID { return parley.NewContactID(t.number) }
