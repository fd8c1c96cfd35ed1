package store

import (
	"context"
	"fmt"
	"slices"

	"parley"
)

const (
	messageColumns = `message.seq, message.channel, contact, message.id, message.from_me, kind, reply_to, request, urgent, pool, expires_at, created_at, starred, body, data,
		coalesce(status.status, 0), coalesce(updated_at, created_at), coalesce(attempts, 0), coalesce(next_attempt, 0),
		coalesce(failure.code, ''), coalesce(failure.message, ''), coalesce(failure.until, 0),
		coalesce((SELECT next_at FROM media_fetch WHERE media_fetch.seq = message.seq), 0)`

	// besides is what stands beside a message in other tables.
	besides = `JOIN chat ON chat.id = message.chat
		LEFT JOIN status ON status.seq = message.seq
		LEFT JOIN queue ON queue.channel = message.channel AND queue.seq = message.seq
		LEFT JOIN failure ON failure.seq = message.seq`
)

// Message finds a message of a channel by its full or its bare id.
func (r reader) Message(ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	r = r.with(ctx)
	if ref.IsBare() || ref.FromMe {
		m, err := r.own(channel, ref)
		if err != parley.ErrNotFound {
			return m, err
		}
	}
	if !ref.IsBare() {
		return one(r, `SELECT `+messageColumns+` FROM name JOIN message ON message.seq = name.seq `+besides+`
			WHERE name.id = $1 AND contact = $2 AND chat.channel = $3 AND name.from_me = $4`,
			[]any{string(ref.ID), string(ref.Chat), string(channel), flag(ref.FromMe)}, scanMessage)
	}
	found, err := list(r, `SELECT `+messageColumns+` FROM name JOIN message ON message.seq = name.seq `+besides+`
		WHERE name.id = $1 AND message.channel = $2 LIMIT 2`, []any{string(ref.ID), string(channel)}, scanMessage)
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

// own finds a message whose id this store chose.
func (r reader) own(channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	seq, ok := r.ids.Seq(ref.ID)
	if !ok {
		return parley.Message{}, parley.ErrNotFound
	}
	m, err := one(r, `SELECT `+messageColumns+` FROM message `+besides+` WHERE message.seq = $1 AND message.id = $2 AND message.channel = $3 AND from_me = 1`,
		[]any{seq, string(ref.ID), string(channel)}, scanMessage)
	if err == nil && !ref.IsBare() && m.Chat != ref.Chat {
		return parley.Message{}, parley.ErrNotFound
	}
	return m, err
}

// A list of seqs is filled up to atOnce with its last one, so that there is one statement.
var messagesMany = inMany(`SELECT `+messageColumns+` FROM message `+besides+` WHERE message.channel = $1 AND message.seq IN `, 2)[atOnce]

// Messages reads messages of a channel by their seqs.
func (r reader) Messages(ctx context.Context, channel parley.ChannelCode, seqs []int64) ([]parley.Message, error) {
	r = r.with(ctx)
	all := make([]parley.Message, 0, len(seqs))
	for some := range slices.Chunk(seqs, atOnce) {
		args := append([]any{string(channel)}, withSeqs(some)...)
		for len(args) <= atOnce {
			args = append(args, some[len(some)-1])
		}
		found, err := list(r, messagesMany, args, scanMessage)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Queue lists what a channel still has to send: by priority, then as they were accepted.
func (r reader) Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error) {
	r = r.with(ctx)
	return list(r, `SELECT message.seq, contact, message.id, kind, urgent, pool, attempts, next_attempt, expires_at FROM queue
		JOIN message ON message.seq = queue.seq
		JOIN chat ON chat.id = message.chat
		LEFT JOIN status ON status.seq = message.seq
		WHERE queue.channel = $1 AND status.seq IS NULL ORDER BY urgent DESC, queue.seq`, []any{string(channel)}, scanQueued)
}

func scanQueued(row scanner) (q parley.Queued, err error) {
	var next, expires int64
	err = row.Scan(&q.Seq, &q.Chat, &q.ID, &q.Kind, &q.Priority, &q.Pool, &q.Attempts, &next, &expires)
	q.NextAttempt, q.ExpiresAt = moment(next), moment(expires)
	return q, err
}

func scanMessage(row scanner) (parley.Message, error) {
	var s messageRow
	if err := row.Scan(s.fields()...); err != nil {
		return parley.Message{}, err
	}
	return s.message()
}

// messageRow is a message as it is stored, in the types that are quick to scan.
type messageRow struct {
	seq, fromMe, urgent, expires, created, starred                      int64
	status, updated, attempts, next, until, fetch                       int64
	channel, contact, id, kind, replyTo, request, pool, code, why, body string
	data                                                                []byte
}

// fields lists where messageColumns go.
func (s *messageRow) fields() []any {
	return []any{&s.seq, &s.channel, &s.contact, &s.id, &s.fromMe, &s.kind, &s.replyTo, &s.request, &s.urgent, &s.pool, &s.expires, &s.created, &s.starred, &s.body, &s.data,
		&s.status, &s.updated, &s.attempts, &s.next, &s.code, &s.why, &s.until, &s.fetch}
}

func (s *messageRow) message() (parley.Message, error) {
	content, err := parley.DecodeContent(parley.Kind(s.kind), s.body, s.data)
	if err != nil {
		return parley.Message{}, fmt.Errorf("message %d: %w", s.seq, err)
	}
	if s.fetch != 0 {
		if media := parley.MediaOf(content); media != nil {
			media.FetchAt = moment(s.fetch)
			content = parley.WithMedia(content, *media)
		}
	}
	m := parley.Message{
		Seq: s.seq, Channel: parley.ChannelCode(s.channel), Chat: parley.ContactID(s.contact), ID: parley.MessageID(s.id), FromMe: s.fromMe != 0,
		Content: content, ReplyTo: parley.MessageID(s.replyTo), Request: s.request, Status: parley.Status(s.status), Priority: parley.Priority(s.urgent), Pool: parley.PoolID(s.pool),
		Attempts: int(s.attempts), NextAttempt: moment(s.next), ExpiresAt: moment(s.expires),
		CreatedAt: moment(s.created), UpdatedAt: moment(s.updated), Starred: s.starred != 0,
	}
	if s.code != "" {
		m.Failure = &parley.Failure{Code: parley.FailureCode(s.code), Message: s.why, Until: moment(s.until)}
	}
	return m, nil
}

// insertMessage writes the row of a message. Most are plain texts to send: what those do not have stands in
// their statement, because each value given to one costs time.
func (t *tx) insertMessage(m *parley.Message, chat int64, data []byte) error {
	kind := m.Content.Kind()
	if kind == parley.KindText && data == nil && m.FromMe && m.ReplyTo == "" && m.Pool == "" && m.Priority == parley.PriorityNormal {
		_, err := t.Exec(`INSERT INTO message (seq, channel, chat, id, from_me, kind, reply_to, request, urgent, pool, expires_at, created_at, body)
			VALUES ($1, $2, $3, $4, 1, 'text', '', $5, 0, '', $6, $7, $8)`,
			m.Seq, string(m.Channel), chat, string(m.ID), m.Request, millis(m.ExpiresAt), millis(m.CreatedAt), m.Content.Text())
		return err
	}
	_, err := t.Exec(`INSERT INTO message (seq, channel, chat, id, from_me, kind, reply_to, request, urgent, pool, expires_at, created_at, body, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		m.Seq, string(m.Channel), chat, string(m.ID), flag(m.FromMe), string(kind), string(m.ReplyTo), m.Request, int64(m.Priority), string(m.Pool),
		millis(m.ExpiresAt), millis(m.CreatedAt), m.Content.Text(), data)
	return err
}

// AddMessage stores a new message: one that was not tried, did not fail and has no star yet. Its id,
// if this store chooses it, carries its seq; any other gets an entry in the index of names, because
// it may come again.
func (t *tx) AddMessage(_ context.Context, m *parley.Message) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	chat, err := t.openChat(m.Channel, m.Chat)
	if err != nil {
		return err
	}
	t.db.lastSeq++ // a number that was not kept is left free
	m.Seq = t.db.lastSeq
	if m.ID == "" {
		m.ID = t.ids.For(m.Seq)
	} else if err := t.add(`INSERT INTO name (id, chat, from_me, seq) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, string(m.ID), chat, flag(m.FromMe), m.Seq); err != nil {
		return err
	}
	if err := t.insertMessage(m, chat, data); err != nil {
		return err
	}
	if m.Status != parley.Pending {
		updated := m.UpdatedAt
		if updated.IsZero() {
			updated = m.CreatedAt
		}
		if _, err := t.Exec(`INSERT INTO status (seq, status, updated_at) VALUES ($1, $2, $3)`, m.Seq, int64(m.Status), millis(updated)); err != nil {
			return err
		}
	}
	if len(t.added) == 0 {
		t.OnCommit(t.rememberAdded)
	}
	t.added = append(t.added, added{record{m.Seq, chat, millis(m.CreatedAt)}, m.ID, m.FromMe, m.Content.Kind().IsRecord()})
	return nil
}

// added is a message that this transaction stores.
type added struct {
	record
	id            parley.MessageID
	own, isRecord bool
}

// rememberAdded takes note of messages that are committed.
func (t *tx) rememberAdded() {
	f := &t.db.filing
	for _, a := range t.added {
		if a.own {
			t.db.memory.own.put(ownMessage{a.chat, a.id}, a.seq)
		}
		if a.isRecord {
			f.recent = append(f.recent, a.record)
		}
	}
	f.add(t.added[len(t.added)-1].seq)
}

// find returns the seq of a message.
func (t *tx) find(channel parley.ChannelCode, ref parley.MessageRef) (seq int64, err error) {
	chat, err := t.chatID(channel, ref.Chat)
	if err != nil {
		return 0, err
	}
	return t.findIn(chat, ref)
}

// findIn returns the seq of a message in a chat.
func (t *tx) findIn(chat int64, ref parley.MessageRef) (seq int64, err error) {
	if ref.FromMe {
		if seq, ok := t.db.memory.own.get(ownMessage{chat, ref.ID}); ok {
			return seq, nil
		}
		if seq, ok := t.ids.Seq(ref.ID); ok {
			err := t.row(`SELECT seq FROM message WHERE seq = $1 AND id = $2 AND chat = $3 AND from_me = 1`, []any{seq, string(ref.ID), chat}, &seq)
			if err != parley.ErrNotFound {
				return seq, err
			}
		}
	}
	err = t.row(`SELECT seq FROM name WHERE id = $1 AND chat = $2 AND from_me = $3`, []any{string(ref.ID), chat, flag(ref.FromMe)}, &seq)
	return seq, err
}

// set runs a statement that must change the row of a message, whose seq is its last argument.
func (t *tx) set(channel parley.ChannelCode, ref parley.MessageRef, statement string, args ...any) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	return t.change(statement, append(args, seq)...)
}

// EraseMessage empties a message's text and data, keeping the record.
func (t *tx) EraseMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	return t.erase(seq)
}

// erase empties a message and ends the fetch of its file.
func (t *tx) erase(seq int64) error {
	if _, err := t.Exec(`DELETE FROM media_fetch WHERE seq = $1`, seq); err != nil {
		return err
	}
	return t.change(`UPDATE message SET body = '', data = NULL WHERE seq = $1`, seq)
}

// SetStarred marks a message, or takes the mark back.
func (t *tx) SetStarred(_ context.Context, channel parley.ChannelCode, target parley.MessageRef, starred bool) error {
	return t.set(channel, target, `UPDATE message SET starred = $1 WHERE seq = $2`, flag(starred))
}

// SetReaction stores who reacted to a record with what; an empty emoji takes it back.
func (t *tx) SetReaction(_ context.Context, channel parley.ChannelCode, target parley.MessageRef, by parley.ContactID, emoji string) error {
	seq, err := t.find(channel, target)
	if err != nil {
		return err
	}
	var kind string
	if err := t.row(`SELECT kind FROM message WHERE seq = $1`, []any{seq}, &kind); err != nil {
		return err
	}
	if !parley.Kind(kind).IsRecord() {
		return parley.ErrNotFound
	}
	if emoji == "" {
		_, err := t.Exec(`DELETE FROM reaction WHERE seq = $1 AND contact = $2`, seq, string(by))
		return err
	}
	_, err = t.Exec(`INSERT INTO reaction (seq, contact, emoji) VALUES ($1, $2, $3)
		ON CONFLICT (seq, contact) DO UPDATE SET emoji = excluded.emoji`, seq, string(by), emoji)
	return err
}
