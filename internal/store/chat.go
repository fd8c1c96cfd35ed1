package store

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"parley"
)

const (
	// lastPosition is SQL for the position of the last message in a chat; 0: it has none. firstPosition is that of the first one, which is
	// not 1 if older ones were purged.
	lastPosition  = `(SELECT coalesce(max(position), 0) FROM message WHERE message.chat = chat.id)`
	firstPosition = `(SELECT coalesce(min(position), 1) FROM message WHERE message.chat = chat.id)`

	// messagesOf is SQL for the number of messages in a chat.
	messagesOf = lastPosition + ` - ` + firstPosition + ` + 1`

	// lastOf is SQL for the time of the last message. last_at in the chat's row is only exact to the minute.
	lastOf = `greatest(last_at, coalesce((SELECT created_at FROM message WHERE message.chat = chat.id ORDER BY position DESC LIMIT 1), 0))`

	chatColumns = `contact, ` + messagesOf + `, ` + lastOf + `, archived`
)

const minute = 60_000 // milliseconds

// Chats lists a channel's chats, newest first, and returns their number. A page begins after a cursor, which costs the same anywhere
// in the list, or after an offset, which steps over entries of an index and reads no chat. next is the cursor for the next
// page; zero: there is none.
//
// The index has the order of the minutes only. So a page is cut out of the whole minutes that it touches, sorted by the times of the
// last messages.
func (r Reader) Chats(ctx context.Context, channel parley.ChannelCode, page parley.Page, after parley.ChatCursor) (
	chats []parley.Chat, next parley.ChatCursor, total int64, err error) {
	r = r.with(ctx)
	var id int64
	err = r.optional(`SELECT id, chats FROM channel WHERE code = $1`, []any{string(channel)}, &id, &total)
	if err != nil || page.Offset >= total || page.Limit < 1 {
		return nil, next, total, err
	}
	end, skip, err := r.firstMinute(id, page, total, after)
	if err != nil {
		return nil, next, total, err
	}
	var begin int64
	err = r.row(`SELECT coalesce(min(last_at), 0) FROM (SELECT last_at FROM chat WHERE channel = $1 AND last_at > 0 AND last_at < $2
		ORDER BY last_at DESC, id DESC LIMIT $3) AS page`, []any{id, end, skip + int64(page.Limit) + 1}, &begin)
	if err != nil {
		return nil, next, total, err
	}
	found, err := list(r, `SELECT id, `+chatColumns+` FROM chat WHERE channel = $1 AND last_at >= $2 AND last_at < $3`,
		[]any{id, max(startOfMinute(begin), 1), end}, func(row scanner) (f foundChat, err error) {
			f.Chat, err = scanChat(&prefixed{row, []any{&f.id}})
			return f, err
		})
	slices.SortFunc(found, func(a, b foundChat) int { return b.cursor().Compare(a.cursor()) })
	if after != (parley.ChatCursor{}) {
		skip = int64(len(found))
		if i := slices.IndexFunc(found, func(f foundChat) bool { return f.cursor().Compare(after) < 0 }); i >= 0 {
			skip = int64(i)
		}
	}
	found = found[min(skip, int64(len(found))):]
	if len(found) > page.Limit {
		found = found[:page.Limit]
		next = found[page.Limit-1].cursor()
	}
	for _, f := range found {
		chats = append(chats, f.Chat)
	}
	return chats, next, total, err
}

// firstMinute returns the end of the minute in which a page of chats begins, and how many chats of this minute come before the page,
// at most. It steps over the index from its nearer end.
func (r Reader) firstMinute(channel int64, page parley.Page, total int64, after parley.ChatCursor) (end, skip int64, err error) {
	if after != (parley.ChatCursor{}) {
		end = startOfMinute(after.At) + minute
		return end, skip, r.row(`SELECT count(*) FROM chat WHERE channel = $1 AND last_at >= $2 AND last_at < $3`,
			[]any{channel, end - minute, end}, &skip)
	}
	if page.Offset == 0 {
		return math.MaxInt64, 0, nil
	}
	steps := page.Offset
	query := `SELECT last_at, id FROM chat WHERE channel = $1 AND last_at > 0 ORDER BY last_at DESC, id DESC LIMIT 1 OFFSET $2`
	if oldest := total - 1 - page.Offset; oldest < steps {
		query, steps = `SELECT last_at, id FROM chat WHERE channel = $1 AND last_at > 0 ORDER BY last_at, id LIMIT 1 OFFSET $2`, oldest
	}
	var at, id int64
	if err = r.optional(query, []any{channel, steps}, &at, &id); err != nil {
		return 0, 0, err
	}
	end = startOfMinute(at) + minute
	return end, skip, r.row(`SELECT count(*) FROM chat WHERE channel = $1 AND last_at >= $2 AND last_at < $3 AND (last_at > $2 OR id > $4)`,
		[]any{channel, at, end, id}, &skip)
}

// foundChat is a chat with its id.
type foundChat struct {
	parley.Chat
	id int64
}

func (f foundChat) cursor() parley.ChatCursor {
	return parley.ChatCursor{At: f.LastAt.UnixMilli(), ID: f.id}
}

func startOfMinute(at int64) int64 { return at - at%minute }

// Chat finds a chat.
func (r Reader) Chat(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID) (parley.Chat, error) {
	return one(r.with(ctx), `SELECT `+chatColumns+` FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`))+` AND last_at > 0`,
		[]any{string(chat), string(channel)}, scanChat)
}

func scanChat(row scanner) (parley.Chat, error) {
	var c parley.Chat
	var last int64
	err := row.Scan(&c.Contact, &c.Messages, &last, &c.Archived)
	c.LastAt = moment(last)
	return c, err
}

// LastChannelWith returns the channel among those given that last exchanged a message with the contact.
func (r Reader) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	channels, err := list(r.with(ctx), `SELECT code FROM chat JOIN channel ON channel.id = +chat.channel WHERE `+withContact+` AND last_at > 0
		ORDER BY `+lastOf+` DESC, code`,
		[]any{string(contact)}, func(row scanner) (code parley.ChannelCode, err error) { return code, row.Scan(&code) })
	if err != nil {
		return "", err
	}
	for _, code := range channels {
		if slices.Contains(among, code) {
			return code, nil
		}
	}
	return "", parley.ErrNotFound
}

// SetArchived archives a chat or restores it. A new message does not restore it.
func (t *Tx) SetArchived(_ context.Context, channel parley.ChannelCode, chat parley.ContactID, archived bool) error {
	return t.change(`UPDATE chat SET archived = $1 WHERE id = `+chatIDFrom(`$2`, channelIDFrom(`$3`))+` AND last_at > 0`,
		flag(archived), string(chat), string(channel))
}

// appendToChat returns the chat's id and the position of a new message in it. It creates a missing chat. The position is 0
// if the message is not part of the history. The message gets the network's spelling of the contact.
func (t *Tx) appendToChat(channel int64, m *parley.Message, at int64) (id, position int64, err error) {
	if !m.Content.Kind().InHistory() {
		if id, err = t.openChat(channel, m.Chat); err == nil {
			err = t.row(`SELECT contact FROM chat WHERE id = $1`, []any{id}, &m.Chat)
		}
		return id, 0, err
	}
	var last int64
	const find = `SELECT id, ` + lastPosition + `, last_at, contact FROM chat `
	err = t.row(find+`WHERE contact = $1 AND channel = $2`, []any{string(m.Chat), channel}, &id, &position, &last, &m.Chat)
	if err == parley.ErrNotFound {
		err = t.row(find+`WHERE id = (SELECT chat FROM alias WHERE contact = $1 AND channel = $2)`,
			[]any{string(m.Chat), channel}, &id, &position, &last, &m.Chat)
	}
	position = max(position, t.db.chatEnds.now(t.conn)[id]) + 1
	at = max(at, 1) // 0 means: no messages
	switch {
	case err == parley.ErrNotFound:
		id, err = t.sql.Insert(`INSERT INTO chat (channel, contact, last_at) VALUES ($1, $2, $3)`, channel, string(m.Chat), at)
	case err == nil && at/minute > last/minute: // within a minute the chat's row need not be written
		err = t.exec(`UPDATE chat SET last_at = $1 WHERE id = $2`, at, id)
	}
	if err == nil && position == 1 {
		err = t.exec(`UPDATE channel SET chats = chats + 1 WHERE id = $1`, channel)
	}
	return id, position, err
}

// openChat returns the id of a chat. It creates a missing one.
func (t *Tx) openChat(channel int64, contact parley.ContactID) (id int64, err error) {
	err = t.row(`SELECT id FROM chat WHERE id = `+chatIDFrom(`$1`, `$2`), []any{string(contact), channel}, &id)
	if err == parley.ErrNotFound {
		id, err = t.sql.Insert(`INSERT INTO chat (channel, contact, last_at) VALUES ($1, $2, 0)`, channel, string(contact))
	}
	return id, err
}

// chatIDFrom is SQL for the id of a contact's chat on a channel, by any spelling of its number. Both arguments are SQL.
func chatIDFrom(contact, channel string) string {
	where := ` WHERE contact = ` + contact + ` AND channel = ` + channel + `)`
	return `coalesce((SELECT id FROM chat` + where + `, (SELECT chat FROM alias` + where + `)`
}

// HasChat reports whether a contact ever wrote to the channel, or got a message of it. Statuses 1 to 4 mean that a message was sent.
func (r Reader) HasChat(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (exists bool, err error) {
	var n int64
	err = r.with(ctx).row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM message WHERE chat = `+chatIDFrom(`$1`, channelIDFrom(`$2`))+`
		AND position > 0 AND (from_me = 0 OR status BETWEEN 1 AND 4)) THEN 1 ELSE 0 END`, []any{string(contact), string(channel)}, &n)
	return n != 0, err
}

// recentMessages is how many messages of a chat are looked through for one of the contact.
const recentMessages = 100

// WroteSince reports whether one of the last messages of a chat is of the contact and came after a time, by the clock of the channel,
// which is ahead. History from before a pairing came when it was written.
func (r Reader) WroteSince(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, since time.Time,
	ahead time.Duration) (bool, error) {
	r = r.with(ctx)
	var chat, n int64
	err := r.optional(`SELECT id FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`)), []any{string(contact), string(channel)}, &chat)
	if err != nil || chat == 0 {
		return false, err
	}
	err = r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM message WHERE chat = $1 AND from_me = 0 AND created_at > $2 AND received_at > $3
		AND position > (SELECT coalesce(max(position), 0) FROM message WHERE chat = $1) - $4) THEN 1 ELSE 0 END`,
		[]any{chat, millis(since.Add(-ahead)), millis(since), int64(recentMessages)}, &n)
	return n != 0, err
}

// LastWrote returns when contacts last wrote to a channel, by its clock. It looks at the last messages of a chat only.
func (r Reader) LastWrote(ctx context.Context, channel parley.ChannelCode, contacts []parley.ContactID) (
	map[parley.ContactID]time.Time, error) {
	wrote := map[parley.ContactID]time.Time{}
	_, err := listIn(r.with(ctx), `SELECT contact, coalesce(
		(SELECT inbound_at FROM remote_contact WHERE remote_contact.channel = chat.channel AND remote_contact.contact = chat.contact
			AND inbound_at > 0),
		(SELECT max(received_at) FROM message WHERE message.chat = chat.id AND from_me = 0
			AND position > (SELECT max(position) FROM message AS newest WHERE newest.chat = chat.id) - $2), 0)
		FROM (SELECT id, channel, contact FROM chat WHERE contact IN `, ` LIMIT `+strconv.Itoa(maxChats)+`) AS chat WHERE `+ofChannel,
		[]any{string(channel), int64(recentMessages)}, texts(contacts),
		func(row scanner) (_ struct{}, err error) {
			var contact parley.ContactID
			var at int64
			if err = row.Scan(&contact, &at); at > 0 {
				wrote[contact] = moment(at)
			}
			return struct{}{}, err
		})
	return wrote, err
}

// CountFirsts counts the contacts that got their first message of a channel since a time, and never wrote before.
func (r Reader) CountFirsts(ctx context.Context, channel parley.ChannelCode, since time.Time) (n int64, err error) {
	return n, r.with(ctx).row(`SELECT count(*) FROM chat WHERE `+ofChannel+` AND last_at >= $2 AND contact LIKE '%@c.us'
		AND EXISTS (SELECT 1 FROM message WHERE message.chat = chat.id AND position = 1 AND from_me = 1 AND priority = 0
			AND status BETWEEN 1 AND 4 AND created_at >= $3)`,
		[]any{string(channel), startOfMinute(millis(since)), millis(since)}, &n)
}

// Spellings lists all known spellings of a contact's number on a channel, the network's own first.
func (r Reader) Spellings(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) ([]parley.ContactID, error) {
	all, err := list(r.with(ctx), `WITH known (id) AS (SELECT `+chatIDFrom(`$1`, channelIDFrom(`$2`))+`)
		SELECT contact, 0 AS other FROM chat WHERE id = (SELECT id FROM known)
		UNION ALL SELECT contact, 1 FROM alias WHERE chat = (SELECT id FROM known) ORDER BY other`,
		[]any{string(contact), string(channel)}, func(row scanner) (c parley.ContactID, err error) {
			var other int64
			return c, row.Scan(&c, &other)
		})
	if len(all) == 0 {
		all = []parley.ContactID{contact}
	}
	return all, err
}

// Spellings is [Reader.Spellings]. Most transactions ask for one contact, so the last answer is cached.
func (t *Tx) Spellings(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (all []parley.ContactID, err error) {
	if s := t.spelled; s.contact == contact && s.channel == channel && len(s.all) > 0 {
		return s.all, nil
	}
	if all, err = t.Reader.Spellings(ctx, channel, contact); err == nil {
		t.spelled.channel, t.spelled.contact, t.spelled.all = channel, contact, all
	}
	return all, err
}

// NetworkSpellings maps those of some contacts to the network's spelling whose own is another one.
func (r Reader) NetworkSpellings(ctx context.Context, channel parley.ChannelCode, contacts []parley.ContactID) (
	map[parley.ContactID]parley.ContactID, error) {
	spellings := map[parley.ContactID]parley.ContactID{}
	_, err := listIn(r.with(ctx), `SELECT alias.contact, chat.contact FROM alias JOIN chat ON chat.id = alias.chat
		WHERE alias.`+ofChannel+` AND alias.contact IN `, ``, []any{string(channel)}, texts(contacts), func(row scanner) (_ struct{}, err error) {
		var alias, contact parley.ContactID
		err = row.Scan(&alias, &contact)
		spellings[alias] = contact
		return struct{}{}, err
	})
	return spellings, err
}

// AddAlias stores that the network spells a number differently. The chats of both spellings become one.
func (t *Tx) AddAlias(_ context.Context, code parley.ChannelCode, alias, contact parley.ContactID) error {
	t.spelled.all = nil
	channel, err := t.channelID(code)
	if err != nil || alias == contact {
		return err
	}
	var from, into int64 // 0: there is no such chat
	err = t.optional(`SELECT id FROM chat WHERE contact = $1 AND channel = $2`, []any{string(alias), channel}, &from)
	if err == nil {
		err = t.optional(`SELECT id FROM chat WHERE id = `+chatIDFrom(`$1`, `$2`), []any{string(contact), channel}, &into)
	}
	if err != nil {
		return err
	}
	switch {
	case into == 0 && from == 0:
		into, err = t.openChat(channel, contact)
	case into == 0, into == from: // equal: the network changed its spelling
		into = from
		err = t.exec(`UPDATE chat SET contact = $1 WHERE id = $2`, string(contact), from)
	case from != 0:
		err = t.mergeChats(channel, from, into)
	}
	if err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM alias WHERE channel = $1 AND contact = $2 AND chat = $3
		AND contact = (SELECT contact FROM chat WHERE id = $3)`, channel, string(contact), into); err != nil {
		return err
	}
	return t.exec(`INSERT INTO alias (channel, contact, chat) VALUES ($1, $2, $3)
		ON CONFLICT (channel, contact) DO UPDATE SET chat = excluded.chat`, channel, string(alias), into)
}

// mergeChats moves everything of one chat into another one. Positions must grow with the seq, so the messages after the
// first moved one get new positions.
func (t *Tx) mergeChats(channel, from, into int64) error {
	var moved, had, first, fixed int64 // positions up to fixed do not change
	const last = `(SELECT coalesce(max(position), 0) FROM message WHERE chat = `
	err := t.row(`SELECT `+last+`$1), `+last+`$2), coalesce((SELECT seq FROM message WHERE chat = $1 AND position > 0
			ORDER BY position LIMIT 1), 0)`,
		[]any{from, into}, &moved, &had, &first)
	if err == nil && moved > 0 {
		fixed, err = t.lastBelow(chatRange{into, had}, first)
	}
	if err != nil {
		return err
	}
	for _, s := range []struct {
		statement string
		args      []any
	}{
		// An id is unique in a chat. If both chats have a message, the moved one gets another id.
		{`UPDATE message SET id = id || seq WHERE chat = $1 AND EXISTS
			(SELECT 1 FROM message same WHERE same.id = message.id AND same.chat = $2 AND same.from_me = message.from_me)`, []any{from, into}},
		{`UPDATE message SET position = -seq WHERE chat = $1 AND position > $2`, []any{into, fixed}},
		{`UPDATE message SET chat = $2, position = CASE WHEN position > 0 THEN -seq END WHERE chat = $1`, []any{from, into}},
		{`UPDATE message SET position = $2 + counted.n
			FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM message WHERE chat = $1 AND position < 0) AS counted
			WHERE message.seq = counted.seq`, []any{into, fixed}},
		{`UPDATE media_fetch SET chat = $2 WHERE channel = $3 AND chat = $1`, []any{from, into, channel}},
		{`UPDATE alias SET chat = $2 WHERE chat = $1`, []any{from, into}},
		{`UPDATE chat SET last_at = greatest(chat.last_at, old.last_at), known = greatest(chat.known, old.known),
			opted_out_at = greatest(chat.opted_out_at, old.opted_out_at), call_text_at = greatest(chat.call_text_at, old.call_text_at)
			FROM (SELECT * FROM chat WHERE id = $1) AS old WHERE chat.id = $2`, []any{from, into}},
		{`DELETE FROM chat WHERE id = $1`, []any{from}},
		{`UPDATE channel SET chats = chats - 1 WHERE id = $1 AND $2 > 0 AND $3 > 0`, []any{channel, moved, had}},
	} {
		if err := t.exec(s.statement, s.args...); err != nil {
			return err
		}
	}
	return nil
}
