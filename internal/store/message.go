package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// fromMessages is where the columns of messages come from. It has no messages of a deleted or reset channel. The plus keeps the
// database from finding a message by its channel, among all messages of that channel.
const fromMessages = ` FROM message JOIN chat ON chat.id = message.chat JOIN channel ON channel.id = +message.channel `

var readMessages = `SELECT ` + messageColumns + fromMessages

// Message finds a message of a channel by its full or its bare id.
func (r Reader) Message(ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	r = r.with(ctx)
	if !ref.IsBare() {
		return one(r, readMessages+`WHERE message.id = $1 AND message.chat = `+chatIDFrom(`$2`, channelIDFrom(`$3`))+` AND from_me = $4`,
			[]any{string(ref.ID), string(ref.Chat), string(channel), flag(ref.FromMe)}, scanMessage)
	}
	found, err := list(r, readMessages+`WHERE message.id = $1 AND code = $2 LIMIT 2`,
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

// MessagesNamed lists the messages with an id, of a channel or of all if it is empty, newest first.
func (r Reader) MessagesNamed(
	ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef, limit int,
) ([]parley.Message, error) {
	var s search
	s.and(`message.id = ?`, string(ref.ID))
	if channel != "" {
		s.and(`code = ?`, string(channel))
	}
	if !ref.IsBare() {
		s.and(`(contact = ? OR message.chat IN (SELECT chat FROM alias WHERE contact = ?))`, string(ref.Chat), string(ref.Chat))
		s.and(`from_me = ?`, flag(ref.FromMe))
	}
	// Few messages have the id. The sum keeps the database from walking over all messages in this order instead.
	return list(r.with(ctx), readMessages+`WHERE `+s.where+` ORDER BY message.seq + 0 DESC LIMIT `+param(len(s.args)+1),
		append(s.args, int64(limit)), scanMessage)
}

// MessageAt finds a message of any channel by its seq.
func (r Reader) MessageAt(ctx context.Context, seq int64) (parley.Message, error) {
	return one(r.with(ctx), readMessages+`WHERE message.seq = $1`, []any{seq}, scanMessage)
}

// Messages reads messages of a channel by their seqs.
func (r Reader) Messages(ctx context.Context, channel parley.ChannelCode, seqs []int64) ([]parley.Message, error) {
	return listIn(r.with(ctx), readMessages+`WHERE channel.code = $1 AND message.seq IN `, ``, []any{string(channel)}, seqs, scanMessage)
}

// Queue lists a channel's pending messages by priority, then in the order of acceptance.
func (r Reader) Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error) {
	return list(r.with(ctx), `SELECT message.seq, contact, message.id, kind, priority, pool, attempts, next_attempt, expires_at
		FROM message JOIN chat ON chat.id = message.chat
		WHERE message.`+ofChannel+` AND status = 0 ORDER BY priority DESC, message.seq`,
		[]any{string(channel)}, scanQueued)
}

func scanQueued(row scanner) (q parley.Queued, err error) {
	var next, expires int64
	err = row.Scan(&q.Seq, &q.Chat, &q.ID, &q.Kind, &q.Priority, &q.Pool, &q.Attempts, &next, &expires)
	q.NextAttempt, q.ExpiresAt = moment(next), moment(expires)
	return q, err
}

// AddMessage stores a new message, without attempts, failure and star. It gets a position if it is part of the history. Its
// chat becomes the network's spelling of the contact. A message with its id in its chat is [parley.ErrExists].
func (t *Tx) AddMessage(ctx context.Context, m *parley.Message) error { return t.addMessage(m, true) }

func (t *Tx) addMessage(m *parley.Message, text bool) error {
	channel, err := t.channelID(m.Channel)
	if err != nil {
		return err
	}
	if _, err := t.findMessage(channel, m.Ref()); err == nil {
		return parley.ErrExists
	} else if err != parley.ErrNotFound {
		return err
	}
	return t.insertMessage(channel, m, text)
}

// ReceiveMessage is AddMessage for a message of the network, which may have come before: then its seq is 0 after the commit, and its
// events are dropped. The seq and the network's spelling of its chat are set at the end of the transaction. Without text only its row
// is stored. On PostgreSQL it does not wait for the database: messages of one commit share a round trip.
func (t *Tx) ReceiveMessage(_ context.Context, m *parley.Message, text bool) error {
	m.Seq = 0
	if t.conn.IsPostgres() && m.Content.Kind().InHistory() {
		return t.addLater(m, text)
	}
	err := t.addMessage(m, text)
	if err == parley.ErrExists {
		return nil
	}
	return err
}

func (t *Tx) insertMessage(channel int64, m *parley.Message, text bool) error {
	args, err := t.messageArgs(channel, m, text)
	if err != nil {
		return err
	}
	if args[1], args[2], err = t.appendToChat(channel, m, millis(m.CreatedAt)); err != nil {
		return err
	}
	m.Seq, err = t.sql.Insert(addMessages.Insert+addMessages.Row, args...)
	return err
}

// EnqueueMessage is AddMessage for a message that this server sends, whose id is new. Its seq and the network's spelling of its
// chat are set at the commit: messages of one commit share a statement.
func (t *Tx) EnqueueMessage(_ context.Context, m *parley.Message) error {
	if m.Content.Kind().InHistory() {
		return t.addLater(m, true)
	}
	channel, err := t.channelID(m.Channel)
	if err != nil {
		return err
	}
	return t.insertMessage(channel, m, true)
}

// addLater adds a message together with those of other callers.
func (t *Tx) addLater(m *parley.Message, text bool) error {
	channel, err := t.channelID(m.Channel)
	if err != nil {
		return err
	}
	args, err := t.messageArgs(channel, m, text)
	if err != nil {
		return err
	}
	if t.conn.IsPostgres() {
		args[1], args[2] = string(m.Chat), max(millis(m.CreatedAt), 1)
		return t.conn.ManyThen(&addMessages, args, &m.Seq, &m.Chat)
	}
	var id, position int64
	err = t.conn.Beside(func() error { // the messages that wait go on waiting
		id, position, err = t.appendToChat(channel, m, millis(m.CreatedAt))
		return err
	})
	if err != nil {
		return err
	}
	args[1], args[2] = id, position
	err = t.conn.ManyThen(&addMessages, args, &m.Seq)
	t.db.chatEnds.now(t.conn)[id] = position
	return err
}

// chatEnds has the last positions of chats with messages that wait to be written, on SQLite. Only the writer uses it.
type chatEnds struct {
	waiting int64 // which messages: see [sqldb.Conn.Waiting]
	last    map[int64]int64
}

func (e *chatEnds) now(c *sqldb.Conn) map[int64]int64 {
	if n := c.Waiting(); e.last == nil || e.waiting != n {
		e.waiting, e.last = n, map[int64]int64{}
	}
	return e.last
}

// addMessages adds messages. On SQLite $3 is the position; 0: none. On PostgreSQL it does what AddMessage does: $1 are the channels, $2
// the contacts, $3 the times. The seq of a message that exists is 0. All parts of a statement see the tables as they were before it.
// LIMIT, ANY, ARRAY, + 0 and a comparison with NULL keep it from reading whole tables or chats.
var addMessages = sqldb.Many{
	Insert: `INSERT INTO message (channel, chat, position, ` + newColumns + `) VALUES `,
	Row:    `($1, $2, CASE WHEN $3 <> 0 THEN $3 END, ` + newParams + `)`,
	Postgres: `WITH given AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], ` + newArrays + `)
		WITH ORDINALITY AS given (channel, contact, at, ` + newColumns + `, n)),
	found AS MATERIALIZED (SELECT n, channel, given.contact AS spelling, at, c.id, c.contact, c.last_at, given.id AS name, from_me,
			row_number() OVER (PARTITION BY channel, coalesce(c.contact, given.contact), given.id, from_me ORDER BY n) AS nth
		FROM given LEFT JOIN LATERAL (SELECT id, contact, last_at FROM chat WHERE id = coalesce(
			(SELECT id FROM chat WHERE contact = given.contact AND channel = given.channel),
			(SELECT chat FROM alias WHERE contact = given.contact AND channel = given.channel)) LIMIT 1) c ON true),
	known AS MATERIALIZED (SELECT * FROM found WHERE nth = 1 AND (SELECT seq FROM message
		WHERE message.id = found.name AND message.chat + 0 = found.id AND message.from_me = found.from_me) IS NULL),
	made AS (INSERT INTO chat (channel, contact, last_at)
		SELECT channel, spelling, max(at) FROM known WHERE id IS NULL GROUP BY channel, spelling RETURNING id, channel, contact),
	old AS MATERIALIZED (SELECT id, max(at) AS at, min(last_at) AS last_at,
		(SELECT coalesce(max(position), 0) FROM message WHERE message.chat = known.id) AS messages
		FROM known WHERE id IS NOT NULL GROUP BY id),
	renewed AS (UPDATE chat SET last_at = (SELECT at FROM old WHERE old.id = chat.id)
		WHERE id = ANY(ARRAY(SELECT id FROM old WHERE at / 60000 > last_at / 60000))),
	place AS MATERIALIZED (SELECT n, known.channel, coalesce(known.id, made.id) AS chat, coalesce(known.contact, spelling) AS contact,
		coalesce(messages, 0) + row_number() OVER (PARTITION BY coalesce(known.id, made.id) ORDER BY n) AS position
		FROM known LEFT JOIN old ON old.id = known.id
		LEFT JOIN made ON known.id IS NULL AND made.channel = known.channel AND made.contact = spelling),
	counted AS (UPDATE channel SET chats = chats + (SELECT count(*) FROM place WHERE place.channel = channel.id AND position = 1)
		WHERE id = ANY(ARRAY(SELECT channel FROM place WHERE position = 1))),
	stored AS (INSERT INTO message (channel, chat, position, ` + newColumns + `)
		SELECT place.channel, chat, position, ` + newColumns + ` FROM given JOIN place USING (n) ORDER BY n RETURNING seq, id, chat, from_me)
	SELECT coalesce(seq, 0), coalesce(place.contact, given.contact) FROM given LEFT JOIN place USING (n)
		LEFT JOIN stored ON stored.id = given.id AND stored.chat = place.chat AND stored.from_me = given.from_me ORDER BY n`,
}

// messageArgs are the arguments of addMessages. Its chat and its position are missing.
func (t *Tx) messageArgs(channel int64, m *parley.Message, text bool) ([]any, error) {
	if m.ReceivedAt.IsZero() {
		m.ReceivedAt = m.CreatedAt
	}
	row, err := newMessageRow(m)
	if err != nil {
		return nil, err
	}
	if !text {
		row.body, row.data, row.file = "", nil, nil
	}
	if row.secret {
		t.ending.add(channel, CountCodes, "", 1)
	}
	return row.appendNew(append(make([]any, 0, len(messageTable)), channel, nil, nil)), nil
}

// findMessage returns the seq of a message.
func (t *Tx) findMessage(channel int64, ref parley.MessageRef) (seq int64, err error) {
	err = t.row(`SELECT seq FROM message WHERE id = $1 AND chat = `+chatIDFrom(`$2`, `$3`)+` AND from_me = $4`,
		[]any{string(ref.ID), string(ref.Chat), channel, flag(ref.FromMe)}, &seq)
	return seq, err
}

// find returns the seq of a message of a channel.
func (t *Tx) find(code parley.ChannelCode, ref parley.MessageRef) (int64, error) {
	channel, err := t.channelID(code)
	if err != nil {
		return 0, err
	}
	return t.findMessage(channel, ref)
}

// set runs a statement that must change the row of a message, whose seq is its last argument.
func (t *Tx) set(channel parley.ChannelCode, ref parley.MessageRef, statement string, args ...any) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	return t.change(statement, append(args, seq)...)
}

// EraseMessage empties a message's text and data; the row stays.
func (t *Tx) EraseMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	return t.erase(seq)
}

// erase empties messages and ends the fetches of their files.
func (t *Tx) erase(seqs ...int64) error {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		if err := t.execAll([]string{
			`DELETE FROM media_fetch WHERE seq IN ` + in,
			`UPDATE message SET body = '', data = NULL, file = NULL WHERE seq IN ` + in,
		}, args...); err != nil {
			return err
		}
	}
	return nil
}

// EditMessage stores the content of a message and when it was edited.
func (t *Tx) EditMessage(_ context.Context, m *parley.Message) error {
	data, file, err := encodeContent(m.Content)
	if err != nil {
		return err
	}
	return t.change(`UPDATE message SET body = $1, data = $2, file = $3, edited_at = $4 WHERE seq = $5`,
		m.Content.Text(), nullableText(data), nullableText(file), millis(m.EditedAt), m.Seq)
}

// SetSentAs stores what the network gets in place of a text.
func (t *Tx) SetSentAs(ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef, as parley.Kind) error {
	m, err := t.Message(ctx, channel, ref)
	text, isText := m.Content.(parley.Text)
	if err != nil || !isText || text.SentAs == as {
		return err
	}
	text.SentAs = as
	data, _, err := encodeContent(text)
	if err != nil {
		return err
	}
	return t.change(`UPDATE message SET data = $1 WHERE seq = $2`, nullableText(data), m.Seq)
}

// EraseBodies empties the texts of operations, given by their seqs, and leaves what they are about.
func (t *Tx) EraseBodies(_ context.Context, seqs []int64) error {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		if err := t.exec(`UPDATE message SET body = '' WHERE seq IN `+in, args...); err != nil {
			return err
		}
	}
	return nil
}

// SetStarred stars a message or removes the star.
func (t *Tx) SetStarred(_ context.Context, channel parley.ChannelCode, target parley.MessageRef, starred bool) error {
	return t.set(channel, target, `UPDATE message SET starred = $1 WHERE seq = $2`, flag(starred))
}

// SetReaction stores a contact's reaction to a message; an empty emoji removes it.
func (t *Tx) SetReaction(_ context.Context, channel parley.ChannelCode, target parley.MessageRef, by parley.ContactID, emoji string) error {
	seq, err := t.find(channel, target)
	if err != nil {
		return err
	}
	var inHistory bool
	if err := t.row(`SELECT position IS NOT NULL FROM message WHERE seq = $1`, []any{seq}, &inHistory); err != nil {
		return err
	}
	if !inHistory {
		return parley.ErrNotFound
	}
	if emoji == "" {
		return t.exec(`DELETE FROM reaction WHERE seq = $1 AND contact = $2`, seq, string(by))
	}
	return t.exec(`INSERT INTO reaction (seq, contact, emoji) VALUES ($1, $2, $3)
		ON CONFLICT (seq, contact) DO UPDATE SET emoji = excluded.emoji`, seq, string(by), emoji)
}

// AddRelated fills in what other rows say about messages: their reactions, the texts that they reply to, and votes.
func (r Reader) AddRelated(ctx context.Context, messages []parley.Message) error {
	return r.with(ctx).addRelated(messages)
}

func (r Reader) addRelated(messages []parley.Message) error {
	return errors.Join(r.addReactions(messages), r.addQuoted(messages), r.addVotes(messages))
}

// addReactions fills in the reactions of messages.
func (r Reader) addReactions(messages []parley.Message) error {
	bySeq := make(map[int64]*parley.Message, len(messages))
	seqs := make([]int64, len(messages))
	for i := range messages {
		bySeq[messages[i].Seq], seqs[i] = &messages[i], messages[i].Seq
	}
	_, err := listIn(r, `SELECT seq, contact, emoji FROM reaction WHERE seq IN `, ` ORDER BY seq, contact`, nil, seqs,
		func(row scanner) (seq int64, err error) {
			var contact, emoji string
			if err = row.Scan(&seq, &contact, &emoji); err == nil {
				bySeq[seq].Reactions = append(bySeq[seq].Reactions, emoji)
			}
			if contact == "" {
				bySeq[seq].OwnReaction = emoji
			}
			return seq, err
		})
	return err
}

// addQuoted fills in the texts of the messages that messages reply to. The plus keeps the database from looking for the quoted
// message among all positions of the chat instead of by its id.
func (r Reader) addQuoted(messages []parley.Message) error {
	bySeq := map[int64]*parley.Message{}
	var seqs []int64
	for i := range messages {
		if m := &messages[i]; m.ReplyTo != "" {
			bySeq[m.Seq], seqs = m, append(seqs, m.Seq)
		}
	}
	_, err := listIn(r, `SELECT reply.seq, quoted.body FROM message AS reply
		JOIN message AS quoted ON quoted.id = reply.reply_to AND quoted.chat = reply.chat
		WHERE quoted.status <> `+statusDeleted+` AND +quoted.position IS NOT NULL AND reply.seq IN `, ``, nil, seqs,
		func(row scanner) (seq int64, err error) {
			var body string
			if err = row.Scan(&seq, &body); err == nil {
				bySeq[seq].QuotedBody = body
			}
			return seq, err
		})
	return err
}

// addVotes counts the last vote of everybody in the polls among messages.
func (r Reader) addVotes(messages []parley.Message) error {
	bySeq := map[int64]*parley.Message{}
	var seqs []int64
	for i := range messages {
		if m := &messages[i]; m.Content.Kind() == parley.KindPoll {
			bySeq[m.Seq], seqs = m, append(seqs, m.Seq)
		}
	}
	type voter struct {
		poll    int64
		contact parley.ContactID
	}
	last := map[voter][]string{}
	number, err := eventNumber(parley.PollVoted)
	if err != nil || len(seqs) == 0 {
		return err
	}
	_, err = listIn(r, `SELECT message, data FROM event WHERE type = $1 AND message IN `, ` ORDER BY seq`, []any{number}, seqs,
		func(row scanner) (seq int64, err error) {
			var data []byte
			if err = row.Scan(&seq, &data); err != nil {
				return seq, err
			}
			var event struct {
				Vote struct {
					ContactID parley.ContactID `json:"contact_id"`
					Options   []string         `json:"options"`
				} `json:"vote"`
			}
			err = json.Unmarshal(data, &event)
			last[voter{seq, event.Vote.ContactID}] = event.Vote.Options
			return seq, err
		})
	for by, options := range last {
		m := bySeq[by.poll]
		if m.Votes == nil {
			m.Votes = map[string]int{}
		}
		for _, name := range options {
			m.Votes[name]++
		}
	}
	return err
}

// statusDeleted is the status of deleted messages in statements.
var statusDeleted = strconv.Itoa(int(parley.Deleted))

// History reads a chat's messages, newest first, with their reactions, and returns their number. Positions have no gaps,
// so a page is a range of positions and every page costs the same.
func (r Reader) History(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, page parley.Page) (
	[]parley.Message, int64, error) {
	r = r.with(ctx)
	id, first, last := int64(0), int64(1), int64(0)
	err := r.optional(`SELECT id, `+firstPosition+`, `+lastPosition+` FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`)),
		[]any{string(chat), string(channel)}, &id, &first, &last)
	total, newest := max(last-first+1, 0), last-page.Offset
	if err != nil || newest < first || page.Limit < 1 {
		return nil, total, err
	}
	messages, err := r.historyTo(id, newest, page.Limit)
	return messages, total, err
}

// historyTo reads up to limit messages of a chat, from a position down.
func (r Reader) historyTo(chat, newest int64, limit int) ([]parley.Message, error) {
	messages, err := list(r, readMessages+`WHERE message.chat = $1 AND position BETWEEN $2 AND $3 ORDER BY position DESC`,
		[]any{chat, max(newest-int64(limit)+1, 1), newest}, scanMessage)
	if err != nil {
		return nil, err
	}
	return messages, r.addRelated(messages)
}

// SetResend stores the encrypted text of a message whose channel stores no text, so that it can be sent again.
func (t *Tx) SetResend(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, encrypted []byte, at time.Time) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO resend (seq, sealed, at) VALUES ($1, $2, $3)
		ON CONFLICT (seq) DO UPDATE SET sealed = excluded.sealed, at = excluded.at`, seq, encrypted, millis(at))
}

// Resend reads what SetResend stored of a message.
func (r Reader) Resend(ctx context.Context, seq int64) (encrypted []byte, err error) {
	err = r.with(ctx).row(`SELECT sealed FROM resend WHERE seq = $1`, []any{seq}, &encrypted)
	return encrypted, err
}

// PurgeResends deletes up to limit texts that were stored before a time.
func (t *Tx) PurgeResends(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM resend WHERE seq IN (SELECT seq FROM resend WHERE at < $1 LIMIT $2)`, millis(before), int64(limit))
	return int(n), err
}
