package store

import (
	"context"

	"parley"
)

// chatOf is SQL for the id of a contact's chat on a channel, by any spelling of its number. Both arguments are SQL.
func chatOf(contact, channel string) string {
	where := ` WHERE contact = ` + contact + ` AND channel = ` + channel + `)`
	return `coalesce((SELECT id FROM chat` + where + `, (SELECT chat FROM alias` + where + `)`
}

// channelOf is SQL for the number of a channel. The argument is SQL for its code.
func channelOf(code string) string { return `(SELECT id FROM channel WHERE code = ` + code + `)` }

// Spellings lists all known spellings of a contact's number on a channel, the network's own first.
func (r Reader) Spellings(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) ([]parley.ContactID, error) {
	r = r.with(ctx)
	all, err := list(r, `WITH known (id) AS (SELECT `+chatOf(`$1`, channelOf(`$2`))+`)
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

// AddAlias stores that the network spells a number in another way. What was exchanged under both spellings becomes one chat.
func (t *Tx) AddAlias(_ context.Context, code parley.ChannelCode, alias, contact parley.ContactID) error {
	channel, err := t.channelID(code)
	if err != nil || alias == contact {
		return err
	}
	from, err := t.idOrZero(`SELECT id FROM chat WHERE contact = $1 AND channel = $2`, string(alias), channel)
	if err != nil {
		return err
	}
	into, err := t.idOrZero(`SELECT id FROM chat WHERE id = `+chatOf(`$1`, `$2`), string(contact), channel)
	if err != nil {
		return err
	}
	switch {
	case into == 0 && from == 0:
		into, err = t.openChat(channel, contact)
	case into == 0, into == from: // equal: the network has changed its mind
		into = from
		_, err = t.sql.Exec(`UPDATE chat SET contact = $1 WHERE id = $2`, string(contact), from)
	case from != 0:
		err = t.mergeChats(channel, from, into)
	}
	if err != nil {
		return err
	}
	if _, err := t.sql.Exec(`DELETE FROM alias WHERE channel = $1 AND contact = $2 AND chat = $3
		AND contact = (SELECT contact FROM chat WHERE id = $3)`, channel, string(contact), into); err != nil {
		return err
	}
	_, err = t.sql.Exec(`INSERT INTO alias (channel, contact, chat) VALUES ($1, $2, $3)
		ON CONFLICT (channel, contact) DO UPDATE SET chat = excluded.chat`, channel, string(alias), into)
	return err
}

// idOrZero reads an id; zero: there is no such row.
func (t *Tx) idOrZero(query string, args ...any) (id int64, err error) {
	if err = t.row(query, args, &id); err == parley.ErrNotFound {
		err = nil
	}
	return id, err
}

// mergeChats moves everything of one chat into another one. Positions must grow with the seq, so those after the first moved
// message are counted again.
func (t *Tx) mergeChats(channel, from, into int64) error {
	var moved, had, first, kept int64
	const last = `(SELECT coalesce(max(position), 0) FROM message WHERE chat = `
	err := t.row(`SELECT `+last+`$1), `+last+`$2), coalesce((SELECT seq FROM message WHERE chat = $1 AND position = 1), 0)`,
		[]any{from, into}, &moved, &had, &first)
	if err == nil && moved > 0 {
		kept, err = t.lastBelow(chatRange{into, had}, first)
	}
	if err != nil {
		return err
	}
	for _, s := range []struct {
		statement string
		args      []any
	}{
		// An id is unique in a chat: of a message that is in both, the moved one gets another id.
		{`UPDATE message SET id = id || seq WHERE chat = $1 AND EXISTS
			(SELECT 1 FROM message kept WHERE kept.id = message.id AND kept.chat = $2 AND kept.from_me = message.from_me)`, []any{from, into}},
		{`UPDATE message SET position = -seq WHERE chat = $1 AND position > $2`, []any{into, kept}},
		{`UPDATE message SET chat = $2, position = CASE WHEN position > 0 THEN -seq END WHERE chat = $1`, []any{from, into}},
		{`UPDATE message SET position = $2 + counted.n
			FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM message WHERE chat = $1 AND position < 0) AS counted
			WHERE message.seq = counted.seq`, []any{into, kept}},
		{`UPDATE media_fetch SET chat = $2 WHERE chat = $1`, []any{from, into}},
		{`UPDATE alias SET chat = $2 WHERE chat = $1`, []any{from, into}},
		{`UPDATE chat SET last_at = max(chat.last_at, old.last_at), known = max(chat.known, old.known)
			FROM (SELECT * FROM chat WHERE id = $1) AS old WHERE chat.id = $2`, []any{from, into}},
		{`DELETE FROM chat WHERE id = $1`, []any{from}},
		{`UPDATE channel SET chats = chats - 1 WHERE id = $1 AND $2 > 0 AND $3 > 0`, []any{channel, moved, had}},
	} {
		if _, err := t.sql.Exec(s.statement, s.args...); err != nil {
			return err
		}
	}
	return nil
}
