package api

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/wire"
)

// hiddenText replaces the text of a message with a one-time code.
const hiddenText = "••••••"

// messageRow shows a message in a list. It has its content only where that may be shown.
func (s *server) messageRow(m *parley.Message, links parley.MediaLinks, names wire.Names) wire.Message {
	row := wire.NewMessage(m, links.Plain, names)
	if _, shown := s.showsContent(m); !shown {
		row.HideContent()
	}
	_, row.OTP = m.Content.(parley.Secret)
	row.Channel, row.UpdatedAt, row.RequestID, row.Body = m.Channel, wire.Time{Time: m.UpdatedAt}, m.Request, s.shownText(m)
	return row
}

// messageRows shows messages for a request, with what other rows say about them.
func (s *server) messageRows(ctx context.Context, r *request, ms []parley.Message) ([]wire.Message, error) {
	if err := s.config.Store.AddRelated(ctx, ms); err != nil {
		return nil, err
	}
	links, names := parley.MediaLinks{Base: s.baseURL(r.http)}, s.config.Gateway.NewNameFinder().In(ctx)
	rows := make([]wire.Message, len(ms))
	for i := range ms {
		rows[i] = s.messageRow(&ms[i], links, names)
		rows[i].Waiting = wire.NewWaiting(s.config.Gateway.Waiting(ctx, &ms[i]))
	}
	return rows, nil
}

// shownText is the text that an operator may see: none if the channel stores no text, even before it is sent, and
// never a one-time code to a real phone.
func (s *server) shownText(m *parley.Message) string {
	channel, shown := s.showsContent(m)
	if !shown {
		return ""
	}
	if _, isSecret := m.Content.(parley.Secret); isSecret && !s.config.Gateway.Network(channel.Network).Simulated {
		return hiddenText
	}
	return m.Content.Text()
}

// showsContent reports whether the content of a message may be shown at all, and returns its channel.
func (s *server) showsContent(m *parley.Message) (parley.Channel, bool) {
	channel, there := s.config.Gateway.Channel(m.Channel)
	return channel, there && channel.Settings.StoresText() && m.Status != parley.Deleted
}

// cursorMeta says where a list continues.
type cursorMeta struct {
	NextCursor *string `json:"next_cursor"` // null: the list is complete
}

const (
	maxFound    = 200
	maxSought   = 200 // characters of a search text
	leastDigits = 3   // of a number prefix; fewer would match many countries
)

// listMessages searches the messages of all channels or of the token's own, newest first. One call scans a bounded number of rows.
func (s *server) listMessages(ctx context.Context, r *request) (any, error) {
	q := messageQuery(r.Form)
	if r.channel.Code != "" {
		q.Channel = r.channel.Code // of a token that is not the operator's
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	page, err := s.config.Gateway.FindMessages(ctx, q)
	if err != nil {
		return nil, err
	}
	rows, err := s.messageRows(ctx, r, s.searchable(q, page.Messages))
	var meta cursorMeta
	if page.Next != 0 {
		meta.NextCursor = toCursor(page.Next)
	}
	return envelope{Success: true, Message: "OK", Data: rows, Meta: meta}, err
}

// searchable leaves out messages that a search for a text must not find, because their text is hidden.
func (s *server) searchable(q parley.MessageQuery, found []parley.Message) []parley.Message {
	return slices.DeleteFunc(found, func(m parley.Message) bool { return q.Text != "" && s.shownText(&m) == "" })
}

func messageQuery(f form.Form) parley.MessageQuery {
	q := parley.MessageQuery{
		Channel: parley.ChannelCode(f.OptionalText("channel", 1, 100)),
		Since:   pastTime(f, "after"), Until: pastTime(f, "before"),
		Text:  f.OptionalText("text", 1, maxSought),
		Limit: int(f.Whole("limit", 50, 1, maxFound)), Before: seqCursor(f),
	}
	text := f.OptionalText("contact", 1, 60)
	start, end := numberPart(text)
	switch {
	case text == "":
	case start+end != "" && !strings.Contains(text, "@"):
		q.Number, q.Ending = start, end
	case strings.HasSuffix(text, "@g.us"):
		q.Contact = f.Group("contact").Chat()
	default:
		q.Contact = parley.NewContactID(f.CheckNumber("contact", text))
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
	return q
}

func status(f form.Form, name string) *parley.Status {
	words := mapped(parley.Statuses, parley.Status.String)
	i := slices.Index(words, f.Choice(name, true, words...))
	if i < 0 {
		return nil
	}
	return &parley.Statuses[i]
}

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
	f.Fail(name, "must be a time, for example %s, or how long ago: 30s, 15m, 1h, 2d or 1w.", time.Now().UTC().Format(time.RFC3339))
	return time.Time{}
}

var agoUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

func parseAgo(text string) (time.Duration, bool) {
	const most = 10_000 // of any unit
	unit, known := agoUnits[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	return time.Duration(n) * unit, known && err == nil && n >= 0 && n <= most
}

// messageNamed returns the message in the path, of the token's own channel or else of the one in the query.
func (s *server) messageNamed(ctx context.Context, r *request) (parley.Message, error) {
	code := r.channel.Code
	if code == "" {
		code = parley.ChannelCode(r.Text("channel", 1, 100))
	}
	if err := r.Err(); err != nil {
		return parley.Message{}, err
	}
	none := parley.Errorf(parley.NotFound, "This message does not exist on channel %s.", code)
	ref, err := parley.ParseMessageRef(r.http.PathValue("message_id"))
	if err != nil {
		return parley.Message{}, none
	}
	m, err := s.config.Gateway.Message(ctx, code, ref)
	switch {
	case errors.Is(err, parley.ErrNotFound), err == nil && !m.Content.Kind().InHistory():
		return parley.Message{}, none
	case errors.Is(err, parley.ErrAmbiguous):
		return parley.Message{}, parley.Errorf(parley.BadRequest,
			"Several messages of channel %s have this id. Send the full id, for example true_%s_3EB0C4312F6A1D2E9B8870.",
			code, form.ExampleContact)
	}
	return m, err
}

func (s *server) readMessageFile(ctx context.Context, r *request) (response, error) {
	m, err := s.messageNamed(ctx, r)
	if err != nil {
		return response{}, err
	}
	if _, shown := s.showsContent(&m); !shown {
		return response{}, errNoFile
	}
	return s.downloadFile(ctx, parley.MediaIn(m.Content))
}
