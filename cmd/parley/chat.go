package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) chat() *cobra.Command {
	var channel string
	talk := &conversation{cli: c, history: 10, seen: map[string]bool{}}
	cmd := &cobra.Command{
		Use:   "chat NUMBER|GROUP",
		Short: "Talk to a contact or a group: print what arrives, send what you type",
		Long: `Talk to a contact or a group in this terminal: print the last messages and what arrives, and send each line that you type.
Ctrl-D ends it. If stdin is not a terminal, the command sends its lines and ends after the last one or, with --wait, when
a message arrives after it or the time is over.`,
		Example: `  parley chat +6281234567890 --channel toko
  echo 'Are you there?' | parley chat +6281234567890 --wait 1m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			chat, err := chatID(args[0])
			if err != nil {
				return err
			}
			if talk.client, err = c.onChannel(cmd.Context(), channel); err != nil {
				return err
			}
			return c.explain(cmd.Context(), talk.client, talk.run(cmd.Context(), chat))
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "the channel that talks (default: the token's channel)")
	cmd.Flags().IntVar(&talk.history, "history", talk.history, "how many earlier messages to print, 0 to 100")
	cmd.Flags().DurationVar(&talk.wait, "wait", 0, "after the end of the input, wait up to this long for a message")
	clientFlags(cmd)
	return cmd
}

// conversation is a chat with one contact or group on a terminal or a pipe.
type conversation struct {
	cli     *cli
	client  *client.Client
	field   string   // of the chat in requests: contact_id or group_id
	ids     []string // of the chat: as given and, of a contact, as the network spells it
	history int
	wait    time.Duration

	mu     sync.Mutex // of what follows, and of the output
	seen   map[string]bool
	failed int // messages that were not sent

	replied chan struct{} // gets one when a message arrives
}

func (t *conversation) run(ctx context.Context, chat parley.ContactID) error {
	t.field, t.ids = "group_id", []string{string(chat)}
	if !chat.IsGroup() {
		t.field, t.ids = "contact_id", t.client.Spellings(ctx, string(chat))
	}
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop()
	began, ended := make(chan struct{}), make(chan error, 1)
	t.replied = make(chan struct{}, 1)
	events := &stream{cli: t.cli, client: t.client, connected: func() { close(began) },
		query: url.Values{"types": {strings.Join(words([]parley.EventType{
			parley.MessageReceived, parley.MessageStatus, parley.MessageReaction, parley.MessageDeleted,
			parley.MessageEdited}), ",")}}}
	t.mu.Lock() // what arrives while the history is read is printed after it
	following.Go(func() { ended <- events.follow(ctx, t.on) })
	select {
	case <-began:
	case err := <-ended:
		t.mu.Unlock()
		return err
	}
	err := t.printHistory(ctx)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	t.cli.hint("Type a message and press Enter. Ctrl-D ends.")
	return t.talk(ctx, ended)
}

// talk sends what is typed until the input or the stream ends.
func (t *conversation) talk(ctx context.Context, ended <-chan error) error {
	typed, done := make(chan string), make(chan error, 1)
	go func() { // ends with the process if nothing is typed
		lines := bufio.NewScanner(t.cli.in)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			select {
			case typed <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
		done <- lines.Err()
	}()
	for {
		select {
		case line := <-typed:
			if err := t.send(ctx, line); err != nil {
				return err
			}
		case err := <-done:
			if err != nil {
				return fail(exitUsage, "read the input: %w", err)
			}
			return t.awaitReply(ctx)
		case err := <-ended:
			return err
		}
	}
}

// awaitReply waits for a message after the last one that was sent. A terminal has shown already what was not sent.
func (t *conversation) awaitReply(ctx context.Context) error {
	if t.failed > 0 && !t.cli.inTerminal {
		return fail(exitRefused, "%s not sent", count(t.failed, "message"))
	}
	if t.wait <= 0 {
		return nil
	}
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case <-t.replied:
		return nil
	case <-timer.C:
		return fail(exitTimeout, "no reply within %s", t.wait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *conversation) printHistory(ctx context.Context) error {
	if t.history <= 0 {
		return nil
	}
	var records []json.RawMessage
	query := url.Values{t.field: {t.ids[0]}, "limit": {strconv.Itoa(t.history)}}
	if _, err := t.client.Get(ctx, "/api/chat/detail", query, &records); err != nil {
		return err
	}
	for _, raw := range slices.Backward(records) {
		var m wire.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		t.seen[m.MessageID] = true
		t.print(raw, m)
	}
	return nil
}

func (t *conversation) print(raw []byte, m wire.Message) {
	if t.cli.json {
		fmt.Fprintf(t.cli.out, "%s\n", raw)
		return
	}
	who, text := t.author(m.ContactID), app.Plain(m.Body)
	if m.Outgoing {
		who = "you"
	}
	if m.Type != parley.KindText {
		text = strings.TrimSpace("[" + string(m.Type) + "] " + text)
	}
	if m.Error != nil {
		text += "  (not sent: " + app.Plain(m.Error.String()) + ")"
	}
	fmt.Fprintf(t.cli.out, "%s  %s: %s\n", clock(m.Timestamp.Time), who, text)
}

// author names who wrote: in a group one of its members.
func (t *conversation) author(contact parley.ContactID) string {
	if t.field == "contact_id" {
		contact = parley.ContactID(t.ids[0])
	}
	return contactName(contact)
}

// on prints what happens in the chat. What a contact writes in a group is not in the chat with the contact.
func (t *conversation) on(e streamEvent) error {
	if !slices.Contains(t.ids, string(cmp.Or(e.Data.GroupID.Chat(), e.Data.ContactID))) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Type == parley.MessageReceived && !t.seen[e.Data.MessageID]:
		var whole struct {
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(e.body, &whole); err != nil {
			return err
		}
		t.print(whole.Data, e.Data.Message)
		select {
		case t.replied <- struct{}{}:
		default:
		}
	case t.cli.json:
	case e.Type == parley.MessageReaction && e.Data.Reaction != nil && e.Data.Outgoing:
		fmt.Fprintf(t.cli.out, "%s  %s reacts: %s\n", clock(e.Timestamp.Time), t.author(e.Data.Reaction.ContactID),
			app.Plain(e.Data.Reaction.Emoji))
	case e.Type == parley.MessageEdited && !e.Data.Outgoing:
		fmt.Fprintf(t.cli.out, "%s  %s edited a message: %s\n", clock(e.Timestamp.Time), t.author(e.Data.ContactID), app.Plain(e.Data.Body))
	case e.Type == parley.MessageDeleted && !e.Data.Outgoing:
		fmt.Fprintf(t.cli.out, "%s  %s deleted a message\n", clock(e.Timestamp.Time), t.author(e.Data.ContactID))
	case e.Type == parley.MessageStatus && e.Data.Error != nil && !t.seen[e.Data.MessageID]:
		fmt.Fprintf(t.cli.err, "not sent: %s\n", app.Plain(e.Data.Error.String()))
	}
	return nil
}

// send sends a line. A message that is rejected is reported and does not end the conversation.
func (t *conversation) send(ctx context.Context, line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	select { // a reply to an earlier message
	case <-t.replied:
	default:
	}
	var sent wire.Message
	r, err := t.client.Post(ctx, "/api/send-message/text", map[string]string{t.field: t.ids[0], "message": line}, &sent)
	if err != nil && (ctx.Err() != nil || !t.cli.inTerminal) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[sent.MessageID] = true
	switch {
	case err != nil:
		fmt.Fprintf(t.cli.err, "not sent: %s\n", sentence(err))
	case sent.Error != nil:
		t.failed++
		fmt.Fprintf(t.cli.err, "not sent: %s\n", app.Plain(sent.Error.String()))
	case !t.cli.inTerminal || t.cli.json: // a terminal shows what was typed
		sent.Outgoing, sent.Type, sent.Body = true, parley.KindText, line
		t.print(r.Data, sent)
	}
	return nil
}
