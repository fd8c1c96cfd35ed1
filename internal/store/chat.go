package store

import (
	"context"
	"slices"

	"parley"
)

const (
	// messagesOf is SQL for how many messages a chat has: the position of the last one.
	messagesOf = `(SELECT coalesce(max(position), 0) FROM message WHERE message.chat = chat.id)`

	// lastOf is SQL for when a chat got its last message. The chat's own row has the first one of that minute.
	lastOf = `max(last_at, coalesce((SELECT created_at FROM message WHERE message.chat = chat.id ORDER BY position DESC LIMIT 1), 0))`

	chatColumns = `contact, ` + messagesOf + `, ` + lastOf + `, archived`
)

const minute = 60_000 // milliseconds

// Chats lists a channel's chats, newest first, and how many there are.
func (r Reader) Chats(ctx context.Context, channel parley.ChannelCode, page parley.Page) ([]parley.Chat, int64, error) {
	r = r.with(ctx)
	var id, total int64
	err := r.row(`SELECT id, chats FROM channel WHERE code = $1`, []any{string(channel)}, &id, &total)
	if err == parley.ErrNotFound || err == nil && (page.Offset >= total || page.Limit < 1) {
		return nil, total, nil
	}
	if err != nil {
		return nil, 0, err
	}
	chats, err := list(r, `SELECT `+chatColumns+` FROM chat WHERE channel = $1 AND last_at > 0
		ORDER BY last_at / 60000 DESC, `+lastOf+` DESC, contact DESC LIMIT $2 OFFSET $3`,
		[]any{id, int64(page.Limit), page.Offset}, scanChat)
	return chats, total, err
}

// Chat finds a chat.
func (r Reader) Chat(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID) (parley.Chat, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+chatColumns+` FROM chat WHERE id = `+chatOf(`$1`, channelOf(`$2`))+` AND last_at > 0`,
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
	r = r.with(ctx)
	channels, err := list(r, `SELECT code FROM chat JOIN channel ON channel.id = chat.channel WHERE `+withContact+` AND last_at > 0
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

// SetArchived archives a chat, or brings it back. It stays archived when a message arrives.
func (t *Tx) SetArchived(_ context.Context, channel parley.ChannelCode, chat parley.ContactID, archived bool) error {
	return t.change(`UPDATE chat SET archived = $1 WHERE id = `+chatOf(`$2`, channelOf(`$3`))+` AND last_at > 0`,
		flag(archived), string(chat), string(channel))
}

// appendToChat makes room for a message in its chat, which it creates where there is none. It returns the chat's id and the
// message's position, which is 0 if it is not part of the history. The message gets the network's spelling of the contact.
func (t *Tx) appendToChat(channel int64, m *parley.Message, at int64) (id, position int64, err error) {
	if !m.Content.Kind().IsRecord() {
		if id, err = t.openChat(channel, m.Chat); err == nil {
			err = t.row(`SELECT contact FROM chat WHERE id = $1`, []any{id}, &m.Chat)
		}
		return id, 0, err
	}
	var last int64
	const find = `SELECT id, ` + messagesOf + `, last_at, contact FROM chat `
	err = t.row(find+`WHERE contact = $1 AND channel = $2`, []any{string(m.Chat), channel}, &id, &position, &last, &m.Chat)
	if err == parley.ErrNotFound {
		err = t.row(find+`WHERE id = (SELECT chat FROM alias WHERE contact = $1 AND channel = $2)`,
			[]any{string(m.Chat), channel}, &id, &position, &last, &m.Chat)
	}
	position++
	at = max(at, 1) // 0 means that it has no messages
	switch {
	case err == parley.ErrNotFound:
		id, err = t.sql.Insert(`INSERT INTO chat (channel, contact, last_at) VALUES ($1, $2, $3)`, channel, string(m.Chat), at)
	case err == nil && at/minute > last/minute: // within a minute the chat's row need not be written
		_, err = t.sql.Exec(`UPDATE chat SET last_at = $1 WHERE id = $2`, at, id)
	}
	if err == nil && position == 1 {
		_, err = t.sql.Exec(`UPDATE channel SET chats = chats + 1 WHERE id = $1`, channel)
	}
	return id, position, err
}

// openChat finds the id of a chat, which it creates where there is none.
func (t *Tx) openChat(channel int64, contact parley.ContactID) (id int64, err error) {
	err = t.row(`SELECT id FROM chat WHERE id = `+chatOf(`$1`, `$2`), []any{string(contact), channel}, &id)
	if err == parley.ErrNotFound {
		id, err = t.sql.Insert(`INSERT INTO chat (channel, contact, last_at) VALUES ($1, $2, 0)`, channel, string(contact))
	}
	return id, err
}
