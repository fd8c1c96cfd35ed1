package parley

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"time"
)

// MessageView is a message as JSON: in a chat's history and in events.
type MessageView struct {
	ContactID ContactID    `json:"contact_id,omitempty"` // in events, where it is not clear from the request
	MessageID string       `json:"message_id"`
	ID        MessageID    `json:"id"`
	Type      Kind         `json:"type"`
	FromMe    string       `json:"from_me"`
	IsMedia   bool         `json:"is_media"`
	Body      string       `json:"body"`
	Status    string       `json:"status"`
	Reactions []string     `json:"reactions"`
	Timestamp string       `json:"timestamp"`
	ReplyTo   MessageID    `json:"reply_to,omitempty"`
	Media     *MediaView   `json:"media,omitempty"`
	Error     *FailureView `json:"error,omitempty"`
}

// MediaView is the file that a message carries, as callers see it. While it is pending, all but the id is
// what its sender says of it.
type MediaView struct {
	ID       string      `json:"id"`
	MIMEType string      `json:"mimetype"`
	Size     int64       `json:"size"` // in bytes
	Filename string      `json:"filename,omitempty"`
	Width    int         `json:"width,omitzero"`
	Height   int         `json:"height,omitzero"`
	Duration int         `json:"duration,omitzero"` // in seconds
	SHA256   string      `json:"sha256,omitempty"`  // in hex
	Status   MediaStatus `json:"status"`
}

// mediaViewOf describes the file of a content; nil: it carries none, or nothing is known of it any more.
func mediaViewOf(c Content) *MediaView {
	m := MediaOf(c)
	if m == nil || m.IsZero() {
		return nil
	}
	rec := &MediaView{
		ID: "med_" + cmp.Or(m.ID, m.Key), MIMEType: m.MIME, Size: m.Size, Filename: m.Filename, Width: m.Width, Height: m.Height,
		Duration: m.Seconds, SHA256: hex.EncodeToString(m.SHA256), Status: m.Status(),
	}
	if c.Kind() == KindVoice && m.Source != "" { // its hash is of the file before it was converted
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

// ViewOf returns a message as callers see it. What was deleted says nothing any more.
func ViewOf(m *Message) MessageView {
	rec := MessageView{
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
		Media:     mediaViewOf(m.Content),
	}
	if rec.Reactions == nil {
		rec.Reactions = []string{}
	}
	if m.Status == Deleted {
		rec.Body, rec.Media = "", nil
	}
	if f := m.Failure; f != nil {
		rec.Error = &FailureView{Code: f.Code, Message: f.Message}
		if !f.Until.IsZero() {
			rec.Error.Until = Stamp(f.Until)
		}
	}
	return rec
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
