package store

import (
	"fmt"
	"reflect"
	"strings"

	"parley"
)

// messageRow is a message as the columns have it.
type messageRow struct {
	*parley.Message
	kind, body, code, failure                                       string
	secret                                                          bool
	updated, created, received, next, expires, until, edited, fetch int64
	data, file, token                                               []byte // empty: NULL
}

// messageTable lists the columns of messages, once for every statement that reads or adds some. Each names the variable of its value.
var messageTable = []struct {
	name   string
	pgType string // empty: a new message leaves it alone, or it is not in the table message
	field  func(*messageRow) any
}{
	{"message.seq", "", func(r *messageRow) any { return &r.Seq }},
	{"channel.code", "", func(r *messageRow) any { return &r.Channel }},
	{"chat.contact", "", func(r *messageRow) any { return &r.Chat }},
	{"message.id", "text", func(r *messageRow) any { return &r.ID }},
	{"message.from_me", "bigint", func(r *messageRow) any { return &r.FromMe }},
	{"message.kind", "text", func(r *messageRow) any { return &r.kind }},
	{"message.secret", "bigint", func(r *messageRow) any { return &r.secret }},
	{"message.status", "bigint", func(r *messageRow) any { return &r.Status }},
	{"message.updated_at", "bigint", func(r *messageRow) any { return &r.updated }},
	{"message.created_at", "bigint", func(r *messageRow) any { return &r.created }},
	{"message.received_at", "bigint", func(r *messageRow) any { return &r.received }},
	{"message.priority", "bigint", func(r *messageRow) any { return &r.Priority }},
	{"message.attempts", "", func(r *messageRow) any { return &r.Attempts }},
	{"message.next_attempt", "", func(r *messageRow) any { return &r.next }},
	{"message.expires_at", "bigint", func(r *messageRow) any { return &r.expires }},
	{"message.starred", "", func(r *messageRow) any { return &r.Starred }},
	{"message.reply_to", "text", func(r *messageRow) any { return &r.ReplyTo }},
	{"message.pool", "text", func(r *messageRow) any { return &r.Pool }},
	{"message.request", "text", func(r *messageRow) any { return &r.Request }},
	{"message.idempotency_key", "text", func(r *messageRow) any { return &r.IdempotencyKey }},
	{"message.failure_code", "", func(r *messageRow) any { return &r.code }},
	{"message.failure", "", func(r *messageRow) any { return &r.failure }},
	{"message.failure_until", "", func(r *messageRow) any { return &r.until }},
	{"message.body", "text", func(r *messageRow) any { return &r.body }},
	{"message.data", "text", func(r *messageRow) any { return &r.data }},
	{"message.author", "text", func(r *messageRow) any { return &r.Author }},
	{"message.edited_at", "", func(r *messageRow) any { return &r.edited }},
	{"message.file", "text", func(r *messageRow) any { return &r.file }},
	{"message.copies", "", func(r *messageRow) any { return &r.Copies }},
	{"message.token", "text", func(r *messageRow) any { return &r.token }},
	{"coalesce((SELECT next_at FROM media_fetch WHERE media_fetch.seq = message.seq), 0)", "", func(r *messageRow) any { return &r.fetch }},
}

// messageColumns are the columns that a statement reads. newColumns are those of a new message, whose parameters follow on three
// others: newParams are its values, newArrays those of several messages.
var messageColumns, newColumns, newParams, newArrays = func() (string, string, string, string) {
	var all, added, params, arrays []string
	for _, c := range messageTable {
		all = append(all, c.name)
		if c.pgType != "" {
			n := param(4 + len(added))
			added = append(added, strings.TrimPrefix(c.name, "message."))
			params, arrays = append(params, n), append(arrays, n+"::"+c.pgType+"[]")
		}
	}
	return strings.Join(all, ", "), strings.Join(added, ", "), strings.Join(params, ", "), strings.Join(arrays, ", ")
}()

// newMessageRow is a message to store.
func newMessageRow(m *parley.Message) (*messageRow, error) {
	data, file, err := encodeContent(m.Content)
	if err != nil {
		return nil, err
	}
	r := &messageRow{Message: m, kind: string(m.Content.Kind()), body: m.Content.Text(), data: data, file: file, token: []byte(m.Token),
		updated: millis(m.UpdatedAt), created: millis(m.CreatedAt), received: millis(m.ReceivedAt), expires: millis(m.ExpiresAt)}
	_, r.secret = m.Content.(parley.Secret)
	if r.updated == 0 {
		r.updated = r.created
	}
	return r, nil
}

// encodeContent returns what the columns data and file have of a content; empty: NULL.
func encodeContent(c parley.Content) (data, file []byte, err error) {
	if data, err = parley.EncodeContent(c); err != nil {
		return nil, nil, fmt.Errorf("encode message: %w", err)
	}
	if media := parley.MediaIn(c); media != nil {
		file = []byte(media.Key)
	}
	return data, file, nil
}

// appendNew appends the values of newColumns to arguments.
func (r *messageRow) appendNew(args []any) []any {
	for _, c := range messageTable {
		if c.pgType == "" {
			continue
		}
		switch v := c.field(r).(type) {
		case *string:
			args = append(args, *v)
		case *int64:
			args = append(args, *v)
		case *bool:
			args = append(args, flag(*v))
		case *[]byte:
			args = append(args, nullableText(*v))
		default: // a named type
			if v := reflect.ValueOf(v).Elem(); v.Kind() == reflect.String {
				args = append(args, v.String())
			} else {
				args = append(args, v.Int())
			}
		}
	}
	return args
}

func scanMessage(row scanner) (m parley.Message, err error) {
	r := messageRow{Message: &m}
	into := make([]any, len(messageTable))
	for i, c := range messageTable {
		into[i] = c.field(&r)
	}
	if err := row.Scan(into...); err != nil {
		return m, err
	}
	m.UpdatedAt, m.CreatedAt, m.ReceivedAt = moment(r.updated), moment(r.created), moment(r.received)
	m.NextAttempt, m.ExpiresAt, m.EditedAt, m.Token = moment(r.next), moment(r.expires), moment(r.edited), parley.TokenID(r.token)
	if r.code != "" {
		m.Failure = &parley.Failure{Code: parley.FailureCode(r.code), Message: r.failure, Until: moment(r.until)}
	}
	if r.secret {
		m.Content, err = parley.DecodeSecret(r.body, r.data)
	} else {
		m.Content, err = parley.DecodeContent(parley.Kind(r.kind), r.body, r.data)
	}
	if err != nil {
		return m, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if media := parley.MediaIn(m.Content); media != nil && r.fetch != 0 {
		media.FetchAt = moment(r.fetch)
		m.Content = parley.WithMedia(m.Content, *media)
	}
	return m, nil
}
