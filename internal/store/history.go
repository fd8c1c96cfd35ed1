package store

import (
	"context"

	"parley"
)

// History reads a chat's records, newest first, with their reactions, and how many there are.
//
// A chat's ordinals have no holes and never change, so a page is a range of them that follows from
// the counter: it costs the same wherever it is, and fits the counter whatever arrives meanwhile.
func (r reader) History(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, page parley.Page) ([]parley.Message, int64, error) {
	r = r.with(ctx)
	var id, total int64
	err := r.row(`SELECT id, messages FROM chat WHERE contact = $1 AND channel = $2`, []any{string(chat), string(channel)}, &id, &total)
	if err == parley.ErrNotFound {
		return nil, 0, nil
	}
	newest := total - page.Offset
	if err != nil || newest < 1 || page.Limit < 1 {
		return nil, total, err
	}
	oldest := max(newest-int64(page.Limit)+1, 1)
	records, err := list(r, `SELECT `+messageColumns+` FROM history JOIN message ON message.seq = history.seq `+besides+`
		WHERE history.chat = $1 AND ordinal BETWEEN $2 AND $3 ORDER BY ordinal DESC`, []any{id, oldest, newest}, scanMessage)
	if err != nil {
		return nil, 0, err
	}
	if err := r.addReactions(id, newest, records); err != nil {
		return nil, 0, err
	}
	return records, total, nil
}

// addReactions fills in the reactions of a page of one chat, with one statement for all.
func (r reader) addReactions(chat, newest int64, page []parley.Message) error {
	if len(page) == 0 {
		return nil
	}
	rows, err := r.conn.Query(`SELECT ordinal, emoji FROM history JOIN reaction ON reaction.seq = history.seq
		WHERE chat = $1 AND ordinal BETWEEN $2 AND $3 ORDER BY ordinal, contact`, chat, newest-int64(len(page))+1, newest)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ordinal int64
		var emoji string
		if err := rows.Scan(&ordinal, &emoji); err != nil {
			return err
		}
		m := &page[newest-ordinal]
		m.Reactions = append(m.Reactions, emoji)
	}
	return rows.Err()
}
