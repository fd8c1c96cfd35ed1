package store

import (
	"context"
	"slices"

	"parley"
)

const chatColumns = `contact, messages, last_at, archived`

// Chats lists a channel's chats, newest first, and how many there are.
func (r reader) Chats(ctx context.Context, channel parley.ChannelCode, page parley.Page) ([]parley.Chat, int64, error) {
	r = r.with(ctx)
	var total int64
	if err := r.row(`SELECT count(*) FROM chat WHERE channel = $1 AND messages > 0`, []any{string(channel)}, &total); err != nil {
		return nil, 0, err
	}
	if page.Offset >= total || page.Limit < 1 {
		return nil, total, nil
	}
	chats, err := list(r, `SELECT `+chatColumns+` FROM chat WHERE channel = $1 AND messages > 0 ORDER BY last_at DESC, contact DESC LIMIT $2 OFFSET $3`,
		[]any{string(channel), int64(page.Limit), page.Offset}, scanChat)
	return chats, total, err
}

// Chat finds a chat.
func (r reader) Chat(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID) (parley.Chat, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+chatColumns+` FROM chat WHERE contact = $1 AND channel = $2 AND messages > 0`, []any{string(chat), string(channel)}, scanChat)
}

func scanChat(row scanner) (parley.Chat, error) {
	var c parley.Chat
	var last int64
	err := row.Scan(&c.Contact, &c.Messages, &last, &c.Archived)
	c.LastAt = moment(last)
	return c, err
}

// LastChannelWith returns the channel among those given that last exchanged a message with the contact.
func (r reader) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	r = r.with(ctx)
	rows, err := r.conn.Query(`SELECT channel FROM chat WHERE contact = $1 AND messages > 0 ORDER BY last_at DESC, channel`, string(contact))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var channel parley.ChannelCode
		if err := rows.Scan(&channel); err != nil {
			return "", err
		}
		if slices.Contains(among, channel) {
			return channel, nil
		}
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	return "", parley.ErrNotFound
}

// SetArchived puts a chat away, or brings it back. It stays away when a message arrives.
func (t *tx) SetArchived(_ context.Context, channel parley.ChannelCode, chat parley.ContactID, archived bool) error {
	if err := t.fileAll(); err != nil {
		return err
	}
	return t.change(`UPDATE chat SET archived = $1 WHERE contact = $2 AND channel = $3 AND messages > 0`, flag(archived), string(chat), string(channel))
}

// chatID finds the id of a chat.
func (r reader) chatID(channel parley.ChannelCode, contact parley.ContactID) (id int64, err error) {
	err = r.row(`SELECT id FROM chat WHERE contact = $1 AND channel = $2`, []any{string(contact), string(channel)}, &id)
	return id, err
}

// chatID finds the id of a chat, in memory where it was asked for before.
func (t *tx) chatID(channel parley.ChannelCode, contact parley.ContactID) (int64, error) {
	memory, err := t.remember()
	if err != nil {
		return 0, err
	}
	name := chatName{channel, contact}
	if id, ok := memory.chats.get(name); ok {
		return id, nil
	}
	id, err := t.reader.chatID(channel, contact)
	if err == nil {
		t.OnCommit(func() { memory.chats.put(name, id) })
	}
	return id, err
}

// openChat finds the id of a chat, which it makes where there is none.
func (t *tx) openChat(channel parley.ChannelCode, contact parley.ContactID) (int64, error) {
	id, err := t.chatID(channel, contact)
	if err != parley.ErrNotFound {
		return id, err
	}
	id, err = t.Insert(`INSERT INTO chat (contact, channel, messages, last_at) VALUES ($1, $2, 0, 0)`, string(contact), string(channel))
	if err == nil {
		t.OnCommit(func() { t.db.memory.chats.put(chatName{channel, contact}, id) })
	}
	return id, err
}
