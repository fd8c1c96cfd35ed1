package store

import (
	"context"
	"time"

	"parley"
)

// maxExamined bounds how many messages one call of EraseOlder looks at, because everybody's writes
// wait for it. What is left is for the next call.
const maxExamined = 20_000

// EraseOlder erases up to limit settled messages of a channel that are older than before.
//
// An index by age would cost every send. Messages are about as old as the order in which they were
// taken says, so this walks along that order from where it last came to, and ends at the first that
// is too young. One that came late with an old date is erased when its neighbours are.
func (t *tx) EraseOlder(_ context.Context, channel parley.ChannelCode, before time.Time, limit int) (int, []parley.Media, error) {
	var from int64
	if err := t.row(`SELECT erased_to FROM channel WHERE code = $1`, []any{string(channel)}, &from); err != nil {
		return 0, nil, err
	}
	due, to, err := t.olderThan(channel, before, from, limit)
	if err != nil {
		return 0, nil, err
	}
	var files []parley.Media
	for _, m := range due {
		if m.file != nil {
			files = append(files, *m.file)
		}
		if err := t.erase(m.seq); err != nil {
			return 0, nil, err
		}
	}
	if to == from {
		return len(due), files, nil
	}
	return len(due), files, t.change(`UPDATE channel SET erased_to = $1 WHERE code = $2`, to, string(channel))
}

// oldMessage is a message to erase.
type oldMessage struct {
	seq  int64
	file *parley.Media // nil: it carries none
}

// olderThan lists messages to erase that come after one, and up to where none will be left then.
func (t *tx) olderThan(channel parley.ChannelCode, before time.Time, from int64, limit int) (due []oldMessage, to int64, err error) {
	rows, err := t.Query(`SELECT message.seq, channel, created_at, coalesce(status, 0), kind, body, data
		FROM message LEFT JOIN status ON status.seq = message.seq WHERE message.seq > $1 ORDER BY message.seq LIMIT $2`,
		from, int64(maxExamined))
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	to = from
	waits := false // a pending message was passed by: the next call must see it again
	for rows.Next() && len(due) < limit {
		var s messageRow
		if err := rows.Scan(&s.seq, &s.channel, &s.created, &s.status, &s.kind, &s.body, &s.data); err != nil {
			return nil, 0, err
		}
		if s.channel == string(channel) {
			if s.created >= millis(before) {
				break
			}
			if !parley.Status(s.status).IsSettled() {
				waits = true
			} else if s.body != "" || s.data != nil {
				m, err := s.message()
				if err != nil {
					return nil, 0, err
				}
				due = append(due, oldMessage{s.seq, parley.MediaOf(m.Content)})
			}
		}
		if !waits {
			to = s.seq
		}
	}
	return due, to, rows.Err()
}
