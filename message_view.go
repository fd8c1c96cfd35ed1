package parley

import (
	"encoding/hex"
	"strconv"
	"time"
)

// MessageView is a message as JSON: in a chat's history and in events.
type MessageView struct {
	ContactID ContactID     `json:"contact_id,omitempty"` // in events; in a group who wrote it, if the channel did not
	GroupID   GroupID       `json:"group_id,omitempty"`
	MessageID string        `json:"message_id"`
	ID        MessageID     `json:"id"`
	Type      Kind          `json:"type"`
	FromMe    string        `json:"from_me"`
	IsMedia   bool          `json:"is_media"`
	Body      string        `json:"body"`
	Status    string        `json:"status"`
	Reactions []string      `json:"reactions"`
	Timestamp string        `json:"timestamp"`
	EditedAt  string        `json:"edited_at,omitempty"`
	ReplyTo   MessageID     `json:"reply_to,omitempty"`
	Mentions  []ContactID   `json:"mentions,omitempty"`
	Quoted    *QuotedView   `json:"quoted,omitempty"`
	Media     *MediaView    `json:"media,omitempty"`
	Location  *LocationView `json:"location,omitempty"`
	Contacts  []ContactCard `json:"contacts,omitempty"`
	Error     *FailureView  `json:"error,omitempty"`
}

// QuotedView is the message that a message replies to.
type QuotedView struct {
	ID   MessageID `json:"id"`
	Body string    `json:"body"` // empty: it has no text, or it is not stored
}

// LocationView is a place. Degrees are strings, as in requests.
type LocationView struct {
	Latitude  string `json:"latitude"`
	Longitude string `json:"longitude"`
	Title     string `json:"title"`
	Address   string `json:"address"`
}

// MediaView is the file that a message carries, as callers see it. While it is pending, all but the id is
// what its sender says of it.
type MediaView struct {
	ID       MediaID     `json:"id"`
	URL      string      `json:"url"` // where to fetch it
	MIMEType string      `json:"mimetype"`
	Size     int64       `json:"size"` // in bytes
	Filename string      `json:"filename,omitempty"`
	Width    int         `json:"width,omitzero"`
	Height   int         `json:"height,omitzero"`
	Duration int         `json:"duration,omitzero"` // in seconds
	SHA256   string      `json:"sha256,omitempty"`  // in hex
	Status   MediaStatus `json:"status"`
	Reason   string      `json:"reason,omitempty"` // why it failed
}

// mediaViewOf describes the file of a message; nil: it carries none, or nothing is known of it any more.
func mediaViewOf(msg *Message, linkTo MediaLink) *MediaView {
	m := MediaOf(msg.Content)
	if m == nil || m.IsZero() {
		return nil
	}
	id := MediaIDOf(msg)
	rec := &MediaView{
		ID: id, URL: linkTo(id), MIMEType: m.MIME, Size: m.Size, Filename: m.Filename, Width: m.Width, Height: m.Height,
		Duration: m.Seconds, SHA256: hex.EncodeToString(m.SHA256), Status: m.Status(),
	}
	if rec.Status == MediaFailed {
		rec.Reason = m.Failure
	}
	if msg.Content.Kind() == KindVoice && m.Source != "" { // its hash is of the file before it was converted
		rec.SHA256 = ""
	}
	return rec
}

// FailureView says why a message was not sent.
type FailureView struct {
	Code    FailureCode `json:"code"`
	Message string      `json:"message"`
	Until   string      `json:"until,omitempty"` // until when the reason holds, where that is known
}

// ViewOf returns a message as callers see it, with links to its file. What was deleted says nothing any more.
func ViewOf(m *Message, linkTo MediaLink) MessageView {
	rec := MessageView{
		GroupID:   m.Chat.Group(),
		ContactID: m.Author,
		MessageID: m.Ref().String(),
		ID:        m.ID,
		Type:      m.Content.Kind(),
		FromMe:    strconv.FormatBool(m.FromMe),
		IsMedia:   m.Content.Kind().IsMedia(),
		Body:      m.Content.Text(),
		Status:    m.Status.String(),
		Reactions: m.Reactions,
		Timestamp: Stamp(m.CreatedAt),
		ReplyTo:   m.ReplyTo,
		Media:     mediaViewOf(m, linkTo),
	}
	if rec.Reactions == nil {
		rec.Reactions = []string{}
	}
	if m.ReplyTo != "" {
		rec.Quoted = &QuotedView{m.ReplyTo, m.QuotedBody}
	}
	switch c := m.Content.(type) {
	case Location:
		if c.Latitude != "" { // else it was erased
			rec.Location = &LocationView{c.Latitude, c.Longitude, c.Title, c.Address}
		}
	case Contacts:
		rec.Contacts = c.Cards
	case Text:
		rec.Mentions = c.Mentions
	}
	if !m.EditedAt.IsZero() {
		rec.EditedAt = Stamp(m.EditedAt)
	}
	if m.Status == Deleted {
		rec.HideContent()
	}
	if f := m.Failure; f != nil {
		rec.Error = &FailureView{Code: f.Code, Message: f.Message}
		if !f.Until.IsZero() {
			rec.Error.Until = Stamp(f.Until)
		}
	}
	return rec
}

// HideContent removes everything that the message says.
func (v *MessageView) HideContent() {
	v.Body, v.Quoted, v.Media, v.Location, v.Contacts, v.Mentions = "", nil, nil, nil, nil, nil
}

// Stamp writes a time as callers see it: in UTC, with milliseconds.
func Stamp(t time.Time) string {
	var b [len("2026-11-15T08:30:00.000Z")]byte
	return string(AppendStamp(b[:0], t))
}

// AppendStamp appends what [Stamp] writes. The library is fast at its own layouts only, so the
// milliseconds are put into one of those.
func AppendStamp(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}
