package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
)

// target returns the message of the field message_id, or fails the field.
func (s *server) target(ctx context.Context, r *request) (parley.Message, error) {
	const name = "message_id"
	ref := r.Message(name)
	if ref.ID == "" {
		return parley.Message{}, nil
	}
	m, err := s.config.Store.Message(ctx, r.channel.Code, ref)
	switch {
	case errors.Is(err, parley.ErrAmbiguous):
		r.Fail(name, "matches several messages of this channel. Send the full id.")
	case errors.Is(err, parley.ErrNotFound), err == nil && !m.Content.Kind().InHistory():
		r.Fail(name, "names a message that does not exist on this channel.")
	default:
		return m, err
	}
	return parley.Message{}, nil
}

func (s *server) react(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	reaction := emoji(r.Form, "reaction")
	return gateway.Draft{To: m.Chat, Content: parley.Reaction{Emoji: reaction, Target: m.Ref(), Author: m.Author}}, cmp.Or(err, r.Err())
}

func emoji(f form.Form, name string) string {
	const what = `one emoji, or "" to remove the reaction`
	s, _ := f.String(name, what)
	if s != "" && !isEmoji(s) {
		f.Fail(name, "must be %s.", what)
		return ""
	}
	return s
}

func (s *server) edit(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	text := r.Text("message", 1, maxText)
	var until time.Time
	if err == nil && m.ID != "" {
		until, err = s.checkEditable(ctx, r, &m)
	}
	var mentions []parley.ContactID // those that the new text still names
	if old, ok := m.Content.(parley.Text); ok {
		for _, id := range old.Mentions {
			if strings.Contains(text, "@"+id.Number()) {
				mentions = append(mentions, id)
			}
		}
	}
	return gateway.Draft{To: m.Chat, ReplyTo: m.ReplyTo, ExpiresAt: until,
		Content: parley.Edit{Body: text, Target: m.Ref(), Mentions: mentions}}, cmp.Or(err, r.Err())
}

// checkEditable fails the field if a message cannot be edited. It returns until when it can be; zero: it is not sent yet.
func (s *server) checkEditable(ctx context.Context, r *request, m *parley.Message) (until time.Time, err error) {
	_, isText := m.Content.(parley.Text)
	_, isSecret := m.Content.(parley.Secret)
	fail := func(sentence string) (time.Time, error) {
		r.Fail("message_id", "%s", sentence)
		return time.Time{}, nil
	}
	switch {
	case !m.FromMe:
		return fail("is a message of a contact. You can edit only your own messages.")
	case m.Status == parley.Deleted:
		return fail("is a message that was deleted.")
	case m.Status == parley.Failed:
		return fail("is a message that was not sent.")
	case isSecret, m.Priority != parley.PriorityNormal: // the second also once its text is erased
		return fail("is a message with a one-time code or about a login link. These cannot be edited.")
	case !isText:
		return fail("is not a text. Only texts can be edited.")
	case m.Status == parley.Pending:
		return time.Time{}, nil
	}
	sent, err := s.sentAt(ctx, m)
	if err != nil {
		return time.Time{}, err
	}
	until = sent.Add(parley.EditWindow)
	if !s.config.Gateway.Now(r.channel.Code).Before(until) {
		return fail("was sent more than 15 minutes ago and can no longer be edited.")
	}
	return until, nil
}

// sentAt is when the network confirmed a message. It may have waited long before.
func (s *server) sentAt(ctx context.Context, m *parley.Message) (time.Time, error) {
	events, err := s.config.Store.EventsAbout(ctx, m)
	for _, e := range events {
		if e.Type == parley.MessageStatus && e.Message.Status == parley.Sent {
			return e.At, err
		}
	}
	return m.CreatedAt, err
}

func (s *server) see(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	if m.FromMe {
		r.Fail("message_id", "is one of your own messages. Only received messages can be marked as seen.")
	}
	return gateway.Draft{To: m.Chat, Content: parley.Seen{Target: m.Ref(), Author: m.Author}}, cmp.Or(err, r.Err())
}

func (s *server) delete(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	if m.ID != "" && !m.FromMe {
		r.Fail("message_id", "is a message of a contact. You can delete only your own messages.")
	}
	return gateway.Draft{To: m.Chat, Content: parley.Delete{Target: m.Ref()}}, cmp.Or(err, r.Err())
}

func (s *server) star(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	if !r.Has("starred") {
		r.Fail("starred", "is required: true or false.")
	}
	starred := r.Bool("starred", false)
	return gateway.Draft{To: m.Chat, Content: parley.Star{Target: m.Ref(), Author: m.Author, Starred: starred}}, cmp.Or(err, r.Err())
}

func (s *server) archive(archived bool) func(ctx context.Context, r *request) (gateway.Draft, error) {
	return func(ctx context.Context, r *request) (gateway.Draft, error) {
		chat, err := s.chat(ctx, r)
		return gateway.Draft{To: chat, Content: parley.Archive{Archived: archived}}, err
	}
}

// maxSeen is how many messages one request marks as read.
const maxSeen = 100

// readWholeChat marks the chat as read, and its newest messages as seen.
func (s *server) readWholeChat(ctx context.Context, r *request) (gateway.Draft, error) {
	if !r.Has("read") {
		r.Fail("read", "is required: true or false.")
	}
	c := parley.ReadChat{Read: r.Bool("read", false)}
	chat, err := s.chat(ctx, r)
	if err != nil || !c.Read {
		return gateway.Draft{To: chat, Content: c}, err
	}
	ms, _, err := s.config.Gateway.History(ctx, r.channel.Code, chat, parley.Page{Limit: maxSeen})
	for i := range ms {
		if ms[i].Status == parley.Received {
			c.Seen = append(c.Seen, parley.Seen{Target: ms[i].Ref(), Author: ms[i].Author})
		}
	}
	return gateway.Draft{To: chat, Content: c}, err
}

// setTimer sets when messages of a chat disappear. A contact must have a chat: a stranger is not written to just for this.
func (s *server) setTimer(ctx context.Context, r *request) (gateway.Draft, error) {
	timer := parley.Timer{Seconds: readTimer(r, "seconds")}
	if r.Has("contact_id") {
		chat, err := s.chat(ctx, r)
		return gateway.Draft{To: chat, Content: timer}, err
	}
	return gateway.Draft{To: r.Chat(), Content: timer}, r.Err()
}

func readTimer(r *request, name string) int {
	seconds := int(r.RequiredWhole(name, 0, int64(slices.Max(parley.Timers))))
	if !slices.Contains(parley.Timers, seconds) {
		r.Fail(name, "must be 0 (messages stay), 86400 (a day), 604800 (a week) or 7776000 (90 days).")
	}
	return seconds
}

func (s *server) forward(ctx context.Context, r *request) (gateway.Draft, error) {
	m, err := s.target(ctx, r)
	to := r.Chat()
	if m.ID != "" {
		if why := notForwardable(&m); why != "" {
			r.Fail("message_id", "%s", why)
		}
	}
	if err := cmp.Or(err, r.Err()); err != nil {
		return gateway.Draft{}, err
	}
	content := parley.AsForwarded(m.Content)
	if file := parley.MediaIn(content); file != nil {
		file.ID, file.MediaKey = "", make([]byte, 32)
		rand.Read(file.MediaKey) // never fails
		content = parley.WithMedia(content, *file)
	}
	return gateway.Draft{To: to, Content: content}, r.channel.Accepts(to)
}

// notForwardable says why a message cannot be forwarded; empty: it can.
func notForwardable(m *parley.Message) string {
	file, isSecret, empty := parley.MediaIn(m.Content), false, false
	switch c := m.Content.(type) {
	case parley.Secret:
		isSecret = true
	case parley.Text:
		empty = c.Body == ""
	case parley.Location:
		empty = c.Latitude == ""
	case parley.Contacts:
		empty = len(c.Cards) == 0
	case parley.Poll:
		empty = len(c.Options) == 0
	default:
		empty = file == nil || file.Key == ""
	}
	switch {
	case m.Status == parley.Deleted:
		return "is a message that was deleted."
	case isSecret, m.Priority != parley.PriorityNormal:
		return "is a message with a one-time code or about a login link. These cannot be forwarded."
	case file != nil && file.Status() == parley.MediaPending:
		return "is a message whose file is still being fetched. Try again when its media.status is ready."
	case empty:
		return "is a message whose content is not stored."
	}
	return ""
}

type reactionData struct {
	ID        parley.MessageID `json:"id"` // the reaction's own
	Status    string           `json:"status"`
	Message   string           `json:"message"`
	Timestamp string           `json:"timestamp"`
	Error     *sentError       `json:"error,omitempty"`
}

type operationData struct {
	Status    string     `json:"status"`
	Type      string     `json:"type"`
	Timestamp string     `json:"timestamp"`
	Error     *sentError `json:"error,omitempty"`
}

// operationResponse describes the result of an operation. It depends on the message alone.
func operationResponse(_ context.Context, _ *request, ms []parley.Message) (response, error) {
	m := &ms[0]
	e := envelope{Success: m.Status != parley.Failed, Message: outcome(m, "Done", "Accepted; it will be done")}
	at, failure := parley.Stamp(m.UpdatedAt), toFailure(m)
	status, kind := toEffect(m.Content)
	if m.Status == parley.Pending || m.Status == parley.Failed {
		status = m.Status.String()
	}
	e.Data = operationData{status, kind, at, failure}
	if c, ok := m.Content.(parley.Reaction); ok {
		e.Data = reactionData{m.ID, m.Status.String(), c.Emoji, at, failure}
	}
	return jsonResponse(e)
}

func toEffect(c parley.Content) (status, kind string) {
	switch c := c.(type) {
	case parley.Edit:
		return "EDITED", "edit"
	case parley.Seen:
		return "READ", "seen"
	case parley.Delete:
		return "DELETED", "delete"
	case parley.Star:
		if c.Starred {
			return "STARRED", "star"
		}
		return "UNSTARRED", "star"
	case parley.Archive:
		if c.Archived {
			return "ARCHIVED", "archive"
		}
		return "UNARCHIVED", "un-archive"
	case parley.ReadChat:
		if c.Read {
			return "READ", "read"
		}
		return "UNREAD", "read"
	case parley.Timer:
		if c.Seconds > 0 {
			return "ON", string(c.Kind())
		}
		return "OFF", string(c.Kind())
	}
	return "DONE", string(c.Kind())
}

// typing calls the network at once, not through the outbox: it means nothing later.
func (s *server) typing(on bool) func(ctx context.Context, r *request) error {
	return func(ctx context.Context, r *request) error {
		if err := r.channel.Usable(); err != nil {
			return err
		}
		to := r.Chat()
		if err := r.Err(); err != nil {
			return err
		}
		if err := r.channel.Accepts(to); err != nil {
			return err
		}
		typist, err := s.config.Gateway.Typist(r.channel.Code)
		if err != nil {
			return err
		}
		if to, err = s.ownSpelling(ctx, r.channel.Code, to); err != nil {
			return err
		}
		return typist.Typing(ctx, to, on)
	}
}
