package api

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
)

// messageRow is a message as the management API shows it.
type messageRow struct {
	Channel   parley.ChannelCode  `json:"channel"`
	MessageID string              `json:"message_id"`
	ID        parley.MessageID    `json:"id"`
	ContactID parley.ContactID    `json:"contact_id"`
	Name      string              `json:"name"`
	FromMe    bool                `json:"from_me"`
	Type      parley.Kind         `json:"type"`
	Body      string              `json:"body"`
	Status    parley.Status       `json:"status"`
	Error     *parley.RecordError `json:"error"`
	Timestamp string              `json:"timestamp"`
	UpdatedAt string              `json:"updated_at"`
	RequestID *string             `json:"request_id"`
	OTP       bool                `json:"otp"`
}

// hiddenText stands for the text of a message that carries a one-time code.
const hiddenText = "••••••"

func (s *server) messageRow(m *parley.Message, name string) messageRow {
	rec := parley.RecordOf(m)
	_, isSecret := m.Content.(parley.Secret)
	return messageRow{
		Channel: m.Channel, MessageID: rec.MessageID, ID: m.ID, ContactID: m.Chat, Name: name, FromMe: m.FromMe, Type: rec.Type,
		Body: s.shownText(m), Status: m.Status, Error: rec.Error, Timestamp: rec.Timestamp, UpdatedAt: parley.Stamp(m.UpdatedAt),
		RequestID: textOrNil(m.Request), OTP: isSecret,
	}
}

// shownText is what an operator may see of what a message says: of a channel that keeps no text nothing,
// not even before it is sent, and of a one-time code to a real phone nothing at all. On the sandbox it is
// as history has it.
func (s *server) shownText(m *parley.Message) string {
	channel, there := s.Gateway.Channel(m.Channel)
	if !there || !channel.Settings.KeepsText() || m.Status == parley.Deleted {
		return ""
	}
	if _, isSecret := m.Content.(parley.Secret); isSecret && channel.Network != parley.Sandbox {
		return hiddenText
	}
	return m.Content.Text()
}

// searchMeta says how to go on with a search.
type searchMeta struct {
	Cursor  *string `json:"cursor"` // null: everything was looked through
	HasMore bool    `json:"has_more"`
}

type messagesAnswer struct {
	Success bool         `json:"success"`
	Message string       `json:"message"`
	Data    []messageRow `json:"data"`
	Meta    searchMeta   `json:"meta"`
}

const (
	maxFound    = 200
	maxSought   = 200 // characters of a text to look for
	cursorStart = "m" // of a cursor, so that nobody takes it for a number
	leastDigits = 3   // of the beginning of a number: fewer are the codes of many countries at once
)

// listMessages looks for messages of all channels, newest first. One call looks through so many and no
// more, so that it takes no longer with a million of them.
func (s *server) listMessages(ctx context.Context, r *request) (messagesAnswer, error) {
	q := messageQuery(r.Form)
	if err := r.Err(); err != nil {
		return messagesAnswer{}, err
	}
	page, err := s.Gateway.FindMessages(ctx, q)
	if err != nil {
		return messagesAnswer{}, err
	}
	answer := messagesAnswer{Success: true, Message: "OK", Data: make([]messageRow, 0, len(page.Messages)), Meta: searchMeta{HasMore: page.Next != 0}}
	caller := s.newCaller()
	for i := range page.Messages {
		m := &page.Messages[i]
		if q.Text != "" && s.shownText(m) == "" {
			continue // what must not be shown must not be found either
		}
		answer.Data = append(answer.Data, s.messageRow(m, caller.name(ctx, m.Channel, m.Chat)))
	}
	if page.Next != 0 {
		answer.Meta.Cursor = textOrNil(cursorStart + strconv.FormatInt(page.Next, 36))
	}
	return answer, nil
}

// messageQuery reads the fields that describe messages.
func messageQuery(f form.Form) parley.MessageQuery {
	q := parley.MessageQuery{
		Channel: parley.ChannelCode(f.OptionalText("channel", 1, 100)),
		Since:   pastTime(f, "after"), Until: pastTime(f, "before"),
		Text:  f.OptionalText("text", 1, maxSought),
		Limit: int(f.Whole("limit", 50, 1, maxFound)),
	}
	switch text := f.OptionalText("contact", 1, 60); {
	case text == "":
	case len(text) >= leastDigits && len(text) <= form.MaxNumber && strings.Trim(text, "0123456789") == "" && !strings.HasPrefix(text, "00"):
		q.Number = text // of somebody, or the beginning of it
	default:
		q.Contact = parley.ContactOf(f.CheckNumber("contact", text))
	}
	if f.Has("status") {
		q.Status = status(f, "status")
	}
	if f.Has("type") {
		q.Kind = parley.Kind(f.Choice("type", true, recordKinds...))
	}
	if f.Has("direction") {
		fromMe := f.Choice("direction", true, "in", "out") == "out"
		q.FromMe = &fromMe
	}
	if text := f.OptionalText("cursor", 1, 20); text != "" {
		digits, ok := strings.CutPrefix(text, cursorStart)
		seq, err := strconv.ParseInt(digits, 36, 64)
		if !ok || err != nil || seq < 1 {
			f.Fail("cursor", "must be a cursor as this server gave it.")
		}
		q.Before = seq
	}
	return q
}

func status(f form.Form, name string) *parley.Status {
	words := make([]string, len(parley.Statuses))
	for i, s := range parley.Statuses {
		words[i] = s.String()
	}
	word := f.Choice(name, true, words...)
	for _, s := range parley.Statuses {
		if s.String() == word {
			return &s
		}
	}
	return nil
}

// pastTime reads an optional time: as such, or as how long ago it is.
func pastTime(f form.Form, name string) time.Time {
	text := f.OptionalText(name, 1, 40)
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t
	}
	if ago, ok := parseAgo(text); ok {
		return time.Now().Add(-ago)
	}
	f.Fail(name, "must be a time, for example %s, or how long ago it is: 30s, 15m, 1h, 2d or 1w.", time.Now().UTC().Format(time.RFC3339))
	return time.Time{}
}

var agoUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// parseAgo reads a length of time in one unit: 90m, 2d.
func parseAgo(text string) (time.Duration, bool) {
	const most = 10_000 // of any unit: as much as anybody can mean
	unit, known := agoUnits[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	return time.Duration(n) * unit, known && err == nil && n >= 0 && n <= most
}

// messageNamed finds the message that the path names, on the channel that the query does.
func (s *server) messageNamed(ctx context.Context, r *request) (parley.Message, error) {
	code := parley.ChannelCode(r.Text("channel", 1, 100))
	if err := r.Err(); err != nil {
		return parley.Message{}, err
	}
	none := parley.Errorf(parley.NotFound, "Channel %s has no such message.", code)
	ref, err := parley.ParseMessageRef(r.http.PathValue("message_id"))
	if err != nil {
		return parley.Message{}, none
	}
	m, err := s.Gateway.Message(ctx, code, ref)
	switch {
	case errors.Is(err, parley.ErrNotFound), err == nil && !m.Content.Kind().IsRecord():
		return parley.Message{}, none
	case errors.Is(err, parley.ErrAmbiguous):
		return parley.Message{}, parley.Errorf(parley.BadRequest, "Several messages of channel %s have this id. Give the full one, for example true_%s_3EB0C4312F6A1D2E9B8870.", code, form.ExampleContact)
	}
	return m, err
}

// readMessageFile answers with the file that a message carries.
func (s *server) readMessageFile(ctx context.Context, r *request) (answer, error) {
	m, err := s.messageNamed(ctx, r)
	if err != nil {
		return answer{}, err
	}
	channel, there := s.Gateway.Channel(m.Channel)
	if !there || !channel.Settings.KeepsText() || m.Status == parley.Deleted {
		return answer{}, errNoFile
	}
	return s.openFile(parley.MediaOf(m.Content))
}
