package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
)

const (
	messageColumns = `seq, message.channel, contact, message.id, from_me, kind, reply_to, status, urgent, pool, attempts, next_attempt,
		expires_at, created_at, updated_at, starred, failure_code, failure_message, failure_until, body, data`

	// messages is the table of messages with the contacts of their chats.
	messages = `message JOIN chat ON chat.id = message.chat`

	// byRef finds one message by its id, its chat and its direction.
	byRef = `message.id = $1 AND chat = $2 AND from_me = $3`
)

// Message finds a message of a channel by its full or its bare id.
func (r reader) Message(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	if !ref.IsBare() {
		return one(r, `SELECT `+messageColumns+` FROM `+messages+` WHERE message.id = $1 AND contact = $2 AND chat.channel = $3 AND from_me = $4`,
			[]any{string(ref.ID), string(ref.Chat), string(channel), flag(ref.FromMe)}, scanMessage)
	}
	found, err := list(r, `SELECT `+messageColumns+` FROM `+messages+` WHERE message.id = $1 AND message.channel = $2 LIMIT 2`,
		[]any{string(ref.ID), string(channel)}, scanMessage)
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
	return list(r, `SELECT `+messageColumns+` FROM `+messages+` WHERE message.channel = $1 AND status = 0 ORDER BY urgent DESC, seq`,
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
	seq, fromMe, status, urgent, attempts, next, expires, created, updated, starred, until int64
	channel, chat, id, kind, replyTo, pool, code, why, body                                string
	data                                                                                   []byte
}

// fields lists where messageColumns go.
func (s *messageRow) fields() []any {
	return []any{&s.seq, &s.channel, &s.chat, &s.id, &s.fromMe, &s.kind, &s.replyTo, &s.status, &s.urgent, &s.pool,
		&s.attempts, &s.next, &s.expires, &s.created, &s.updated, &s.starred, &s.code, &s.why, &s.until, &s.body, &s.data}
}

func (s *messageRow) message() (parley.Message, error) {
	content, err := parley.DecodeContent(parley.Kind(s.kind), s.body, s.data)
	if err != nil {
		return parley.Message{}, fmt.Errorf("message %d: %w", s.seq, err)
	}
	m := parley.Message{
		Seq: s.seq, Channel: parley.ChannelCode(s.channel), Chat: parley.ContactID(s.chat),
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

// AddMessage stores a new message: one that was not tried, did not fail and has no star yet. A record
// gets its place in its chat later: see filing.go.
func (t *tx) AddMessage(_ context.Context, m *parley.Message) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	chat, err := t.openChat(m.Channel, m.Chat)
	if err != nil {
		return err
	}
	kind := m.Content.Kind()
	var ordinal int64
	if kind.IsRecord() {
		ordinal = notFiled
	}
	updated := m.UpdatedAt
	if updated.IsZero() {
		updated = m.CreatedAt
	}
	seq, err := t.Insert(`INSERT INTO message (channel, chat, ordinal, id, from_me, kind, reply_to, status, urgent, pool,
			expires_at, created_at, updated_at, body, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id, chat, from_me) DO NOTHING`,
		string(m.Channel), chat, ordinal, string(m.ID), flag(m.FromMe), string(kind), string(m.ReplyTo),
		int64(m.Status), flag(m.Urgent), string(m.Pool), millis(m.ExpiresAt), millis(m.CreatedAt), millis(updated), m.Content.Text(), data)
	if err != nil {
		return err
	}
	if seq == 0 {
		return parley.ErrExists
	}
	m.Seq = seq
	if len(t.added) == 0 {
		t.OnCommit(t.rememberAdded)
	}
	t.added = append(t.added, added{ownMessage{chat, m.ID}, seq, m.FromMe, kind.IsRecord()})
	return nil
}

// added is a message that this transaction stores.
type added struct {
	name     ownMessage
	seq      int64
	own      bool
	isRecord bool
}

// rememberAdded takes note of messages that are committed.
func (t *tx) rememberAdded() {
	var records int64
	for _, a := range t.added {
		if a.isRecord {
			records++
		}
		if a.own {
			t.db.memory.own.put(a.name, a.seq)
		}
	}
	t.db.filing.add(records)
}

// atOnce is how many messages one statement moves at most.
const atOnce = 32

// manyStatements returns a statement for each number of messages up to atOnce. The numbers of its
// last places begin with first.
func manyStatements(before string, first int, after string) (statements [atOnce + 1]string) {
	var places []string
	for n := 1; n <= atOnce; n++ {
		places = append(places, "$"+strconv.Itoa(first+n-1))
		statements[n] = before + "(" + strings.Join(places, ", ") + ")" + after
	}
	return statements
}

var confirmMany = manyStatements(`UPDATE message SET status = $1, updated_at = $2 WHERE seq IN `, 3, ` AND status = 0`)

// ConfirmMessages moves messages on from pending to sent, many with one statement.
func (t *tx) ConfirmMessages(_ context.Context, seqs []int64, at time.Time) error {
	args := make([]any, 0, atOnce+2)
	for chunk := range slices.Chunk(seqs, atOnce) {
		args = append(args[:0], int64(parley.Sent), millis(at))
		for _, seq := range chunk {
			args = append(args, seq)
		}
		if _, err := t.Exec(confirmMany[len(chunk)], args...); err != nil {
			return err
		}
	}
	return nil
}

// advanceMany holds statements that move messages on, for those where nothing failed.
var advanceMany = func() map[parley.Status][atOnce + 1]string {
	statements := map[parley.Status][atOnce + 1]string{}
	for to := range advance {
		statements[to] = manyStatements(`UPDATE message SET status = $1, updated_at = $2
			WHERE failure_code = '' AND status IN (`+numbers(to.Before())+`) AND seq IN `, 3, "")
	}
	return statements
}()

// AdvanceMessages moves messages that the channel sent to one chat on to a status, where that can
// follow the one they have. It returns those that moved, and how many are not there.
func (t *tx) AdvanceMessages(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, ids []parley.MessageID, to parley.Status, at time.Time) (moved []parley.MessageID, unknown int, err error) {
	id, err := t.chatID(channel, chat)
	if err == parley.ErrNotFound {
		return nil, len(ids), nil
	}
	if err != nil {
		return nil, 0, err
	}
	for chunk := range slices.Chunk(ids, atOnce) {
		all, err := t.advanceAll(id, chunk, to, at)
		if err != nil {
			return nil, 0, err
		}
		if all { // nearly always
			moved = append(moved, chunk...)
			continue
		}
		some, missing, err := t.whichMoved(ctx, channel, chat, chunk, to, at)
		if err != nil {
			return nil, 0, err
		}
		moved = append(moved, some...)
		unknown += missing
	}
	return moved, unknown, nil
}

// advanceAll moves messages that it remembers with one statement and reports whether all moved.
func (t *tx) advanceAll(chat int64, ids []parley.MessageID, to parley.Status, at time.Time) (bool, error) {
	args := make([]any, 0, atOnce+2)
	args = append(args, int64(to), millis(at))
	for _, id := range ids {
		seq, ok := t.db.memory.own.get(ownMessage{chat, id})
		if !ok {
			return false, nil
		}
		args = append(args, seq)
	}
	many := advanceMany[to]
	n, err := t.count(many[len(ids)], args...)
	return n == int64(len(ids)), err
}

// whichMoved looks at messages one by one, of which not all could be moved at once.
func (t *tx) whichMoved(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, ids []parley.MessageID, to parley.Status, at time.Time) (moved []parley.MessageID, unknown int, err error) {
	for _, id := range ids {
		ref := parley.MessageRef{FromMe: true, Chat: chat, ID: id}
		m, err := t.Message(ctx, channel, ref)
		if err == parley.ErrNotFound {
			unknown++
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		now := m.Status == to && m.UpdatedAt.Equal(moment(millis(at)))
		if !now { // one that had failed is not among those that are moved at once
			if now, err = t.AdvanceMessage(ctx, channel, ref, to, nil, at); err != nil {
				return nil, 0, err
			}
		}
		if now {
			moved = append(moved, id)
		}
	}
	return moved, unknown, nil
}

// advance holds the statements that move a message on to each status from those that it can follow:
// the short one where nothing failed, which is nearly always.
var advance, advanceFailed = func() (short, long map[parley.Status]string) {
	short, long = map[parley.Status]string{}, map[parley.Status]string{}
	for _, to := range parley.Statuses {
		if len(to.Before()) == 0 {
			continue
		}
		before := ` AND status IN (` + numbers(to.Before()) + `)`
		short[to] = `UPDATE message SET status = $4, updated_at = $5 WHERE ` + byRef + before + ` AND failure_code = ''`
		long[to] = `UPDATE message SET status = $4, updated_at = $5, failure_code = $6, failure_message = $7, failure_until = $8 WHERE ` + byRef + before
	}
	return short, long
}()

func numbers(statuses []parley.Status) string {
	var texts []string
	for _, s := range statuses {
		texts = append(texts, strconv.Itoa(int(s)))
	}
	return strings.Join(texts, ", ")
}

// AdvanceMessage moves a message on to a status, if that can follow the one it has.
func (t *tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status, why *parley.Failure, at time.Time) (bool, error) {
	if _, ok := advance[to]; ok {
		if why == nil {
			n, err := t.changed(advance[to], channel, ref, int64(to), millis(at))
			if err != nil || n > 0 {
				return n > 0, err
			}
			why = &parley.Failure{} // it may have failed before, and has not after all
		}
		n, err := t.changed(advanceFailed[to], channel, ref, int64(to), millis(at), string(why.Code), why.Message, millis(why.Until))
		if err != nil || n > 0 {
			return n > 0, err
		}
	}
	chat, err := t.chatID(channel, ref.Chat)
	if err != nil {
		return false, err
	}
	var seq int64
	return false, t.row(`SELECT seq FROM message WHERE `+byRef, []any{string(ref.ID), chat, flag(ref.FromMe)}, &seq)
}

// changed runs a statement on one message, which byRef finds, and returns how many rows it changed.
func (t *tx) changed(statement string, channel parley.ChannelCode, ref parley.MessageRef, more ...any) (int64, error) {
	chat, err := t.chatID(channel, ref.Chat)
	if err != nil {
		return 0, err
	}
	return t.count(statement, append([]any{string(ref.ID), chat, flag(ref.FromMe)}, more...)...)
}

// set is changed for a statement that must change a row.
func (t *tx) set(statement string, channel parley.ChannelCode, ref parley.MessageRef, more ...any) error {
	n, err := t.changed(statement, channel, ref, more...)
	if err == nil && n == 0 {
		return parley.ErrNotFound
	}
	return err
}

// DelayMessage stores that sending failed for now and when to try again.
func (t *tx) DelayMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, attempts int, next time.Time) error {
	return t.set(`UPDATE message SET attempts = $4, next_attempt = $5 WHERE `+byRef, channel, ref, int64(attempts), millis(next))
}

// FailPool fails what is still pending of a pool and returns the messages' references in order.
func (t *tx) FailPool(_ context.Context, channel parley.ChannelCode, pool parley.PoolID, why parley.Failure, at time.Time) ([]parley.MessageRef, error) {
	pending, err := list(t.reader, `SELECT from_me, contact, message.id FROM `+messages+`
		WHERE pool = $1 AND pool <> '' AND message.channel = $2 AND status = 0 ORDER BY seq`, []any{string(pool), string(channel)}, scanRef)
	if err != nil {
		return nil, err
	}
	for _, ref := range pending {
		if err := t.set(advanceFailed[parley.FailedForGood], channel, ref,
			int64(parley.FailedForGood), millis(at), string(why.Code), why.Message, millis(why.Until)); err != nil {
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
	return t.set(`UPDATE message SET starred = $4 WHERE `+byRef, channel, target, flag(starred))
}
