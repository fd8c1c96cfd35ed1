package parley

import (
	"strconv"
	"time"
)

// Record is a message as callers see it: in a chat's history and in events.
type Record struct {
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
	Error     *RecordError `json:"error,omitempty"`
}

// RecordError says why a message was not sent.
type RecordError struct {
	Code    FailureCode `json:"code"`
	Message string      `json:"message"`
	Until   string      `json:"until,omitempty"` // until when the reason holds, where that is known
}

// RecordOf returns a message as callers see it. What was deleted says nothing any more.
func RecordOf(m *Message) Record {
	rec := Record{
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
	}
	if rec.Reactions == nil {
		rec.Reactions = []string{}
	}
	if m.Status == Deleted {
		rec.Body = ""
	}
	if f := m.Failure; f != nil {
		rec.Error = &RecordError{Code: f.Code, Message: f.Message}
		if !f.Until.IsZero() {
			rec.Error.Until = Stamp(f.Until)
		}
	}
	return rec
}

// Stamp writes a time as callers see it: in UTC, with milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
