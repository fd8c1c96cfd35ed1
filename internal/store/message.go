package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

const (
	messageColumns = `seq, channel, chat, ordinal, id, from_me, kind, reply_to, status, urgent, pool, attempts, next_attempt,
		expires_at, created_at, updated_at, starred, failure_code, failure_message, failure_until, body, data`

	// byRef finds one message by the arguments of key.
	byRef = `channel = $1 AND id = $2 AND chat = $3 AND from_me = $4`
)

// key returns what byRef asks for, followed by further arguments.
func key(channel parley.ChannelCode, ref parley.MessageRef, more ...any) []any {
	return append([]any{string(channel), string(ref.ID), string(ref.Chat), flag(ref.FromMe)}, more...)
}

// Message finds a message of a channel by its full or its bare id.
func (r reader) Message(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	if !ref.IsBare() {
		return one(r, `SELECT `+messageColumns+` FROM message WHERE `+byRef, key(channel, ref), scanMessage)
	}
	found, err := list(r, `SELECT `+messageColumns+` FROM message WHERE channel = $1 AND id = $2 LIMIT 2`,
		[]any{string(channel), string(ref.ID)}, scanMessage)
	switch {
	case err != nil:
		return parley.Message{}, err
	case len(found) == 0:
		return parley.Message{}, parley.ErrNotFound
	case len(found) > 1:
		return parley.Message{}, parley.ErrAmbiguous
	}
	return found[0], nil
}

// Pending lists what a channel still has to send: the urgent first, then as they were taken.
func (r reader) Pending(_ context.Context, channel parley.ChannelCode) ([]parley.Message, error) {
	return list(r, `SELECT `+messageColumns+` FROM message WHERE channel = $1 AND status = 0 ORDER BY urgent DESC, seq`,
		[]any{string(channel)}, scanMessage)
}

func scanMessage(row scanner) (parley.Message, error) {
	var s messageRow
	if err := row.Scan(s.fields()...); err != nil {
		return parley.Message{}, err
	}
	return s.message()
}

// messageRow is a row of the message table, in the types that are quick to scan.
type messageRow struct {
	seq, ordinal, fromMe, status, urgent, attempts, next, expires, created, updated, starred, until int64
	channel, chat, id, kind, replyTo, pool, code, why, body                                         string
	data                                                                                            []byte
}

// fields lists where messageColumns go.
func (s *messageRow) fields() []any {
	return []any{&s.seq, &s.channel, &s.chat, &s.ordinal, &s.id, &s.fromMe, &s.kind, &s.replyTo, &s.status, &s.urgent, &s.pool,
		&s.attempts, &s.next, &s.expires, &s.created, &s.updated, &s.starred, &s.code, &s.why, &s.until, &s.body, &s.data}
}

func (s *messageRow) message() (parley.Message, error) {
	content, err := parley.DecodeContent(parley.Kind(s.kind), s.body, s.data)
	if err != nil {
		return parley.Message{}, fmt.Errorf("message %d: %w", s.seq, err)
	}
	m := parley.Message{
		Seq: s.seq, Channel: parley.ChannelCode(s.channel), Chat: parley.ContactID(s.chat), Ordinal: s.ordinal,
		ID: parley.MessageID(s.id), FromMe: s.fromMe != 0, Content: content, ReplyTo: parley.MessageID(s.replyTo),
		Status: parley.Status(s.status), Urgent: s.urgent != 0, Pool: parley.PoolID(s.pool),
		Attempts: int(s.attempts), NextAttempt: moment(s.next), ExpiresAt: moment(s.expires),
		CreatedAt: moment(s.created), UpdatedAt: moment(s.updated), Starred: s.starred != 0,
	}
	if s.code != "" {
		m.Failure = &parley.Failure{Code: parley.FailureCode(s.code), Message: s.why, Until: moment(s.until)}
	}
	return m, nil
}

// AddMessage stores a new message: one that was not tried, did not fail and has no star yet.
func (t *tx) AddMessage(_ context.Context, m *parley.Message) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	updated := m.UpdatedAt
	if updated.IsZero() {
		updated = m.CreatedAt
	}
	kind := m.Content.Kind()
	var ordinal int64
	if kind.IsRecord() {
		if ordinal, err = t.countRecord(m); err != nil {
			return err
		}
	}
	seq, err := t.Insert(`INSERT INTO message (channel, chat, ordinal, id, from_me, kind, reply_to, status, urgent, pool,
			expires_at, created_at, updated_at, body, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (channel, id, chat, from_me) DO NOTHING`,
		string(m.Channel), string(m.Chat), ordinal, string(m.ID), flag(m.FromMe), string(kind), string(m.ReplyTo),
		int64(m.Status), flag(m.Urgent), string(m.Pool), millis(m.ExpiresAt), millis(m.CreatedAt), millis(updated), m.Content.Text(), data)
	if err != nil {
		return err
	}
	if seq == 0 {
		return cmp.Or(t.uncountRecord(m, ordinal), parley.ErrExists)
	}
	m.Seq, m.Ordinal = seq, ordinal
	return nil
}

// countRecord counts a new record of a chat, which it makes where there is none, and returns the
// record's ordinal. Counting first keeps others from taking the same ordinal.
func (t *tx) countRecord(m *parley.Message) (ordinal int64, err error) {
	err = t.row(`INSERT INTO chat (contact, channel, messages, last_at) VALUES ($1, $2, 1, $3)
		ON CONFLICT (contact, channel) DO UPDATE SET messages = chat.messages + 1, previous_at = chat.last_at,
			last_at = CASE WHEN excluded.last_at > chat.last_at THEN excluded.last_at ELSE chat.last_at END
		RETURNING messages`, []any{string(m.Chat), string(m.Channel), millis(m.CreatedAt)}, &ordinal)
	return ordinal, err
}

// uncountRecord undoes countRecord for a message that turned out to be there already. The caller may
// go on with its transaction, and a hole in the ordinals would stay for ever.
func (t *tx) uncountRecord(m *parley.Message, ordinal int64) error {
	switch ordinal {
	case 0: // an operation: nothing was counted
		return nil
	case 1:
		return t.change(`DELETE FROM chat WHERE contact = $1 AND channel = $2`, string(m.Chat), string(m.Channel))
	}
	return t.change(`UPDATE chat SET messages = messages - 1, last_at = previous_at WHERE contact = $1 AND channel = $2`,
		string(m.Chat), string(m.Channel))
}

// advance holds the statement that moves a message on to each status from those that it can follow.
var advance = func() map[parley.Status]string {
	statements := map[parley.Status]string{}
	for _, to := range parley.Statuses {
		var from []string
		for _, status := range to.Before() {
			from = append(from, strconv.Itoa(int(status)))
		}
		if len(from) > 0 {
			statements[to] = `UPDATE message SET status = $1, updated_at = $2, failure_code = $3, failure_message = $4, failure_until = $5
				WHERE channel = $6 AND id = $7 AND chat = $8 AND from_me = $9 AND status IN (` + strings.Join(from, ", ") + `)`
		}
	}
	return statements
}()

// AdvanceMessage moves a message on to a status, if that can follow the one it has.
func (t *tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status, why *parley.Failure, at time.Time) (bool, error) {
	if statement, ok := advance[to]; ok {
		var failure parley.Failure
		if why != nil {
			failure = *why
		}
		n, err := t.count(statement, int64(to), millis(at), string(failure.Code), failure.Message, millis(failure.Until),
			string(channel), string(ref.ID), string(ref.Chat), flag(ref.FromMe))
		if err != nil || n > 0 {
			return n > 0, err
		}
	}
	var seq int64
	return false, t.row(`SELECT seq FROM message WHERE `+byRef, key(channel, ref), &seq)
}

// DelayMessage stores that sending failed for now and when to try again.
func (t *tx) DelayMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, attempts int, next time.Time) error {
	return t.change(`UPDATE message SET attempts = $5, next_attempt = $6 WHERE `+byRef, key(channel, ref, int64(attempts), millis(next))...)
}

// FailPool fails what is still pending of a pool and returns the messages' references in order.
func (t *tx) FailPool(_ context.Context, channel parley.ChannelCode, pool parley.PoolID, why parley.Failure, at time.Time) ([]parley.MessageRef, error) {
	pending, err := list(t.reader, `SELECT from_me, chat, id FROM message
		WHERE channel = $1 AND pool = $2 AND pool <> '' AND status = 0 ORDER BY seq`, []any{string(channel), string(pool)}, scanRef)
	if err != nil {
		return nil, err
	}
	for _, ref := range pending {
		if err := t.change(`UPDATE message SET status = $5, updated_at = $6, failure_code = $7, failure_message = $8, failure_until = $9 WHERE `+byRef,
			key(channel, ref, int64(parley.FailedForGood), millis(at), string(why.Code), why.Message, millis(why.Until))...); err != nil {
			return nil, err
		}
	}
	return pending, nil
}

func scanRef(row scanner) (parley.MessageRef, error) {
	var ref parley.MessageRef
	err := row.Scan(&ref.FromMe, &ref.Chat, &ref.ID)
	return ref, err
}

// SetStarred marks a message, or takes the mark back.
func (t *tx) SetStarred(_ context.Context, channel parley.ChannelCode, target parley.MessageRef, starred bool) error {
	return t.change(`UPDATE message SET starred = $5 WHERE `+byRef, key(channel, target, flag(starred))...)
}
