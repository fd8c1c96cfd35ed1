package store

import (
	"context"
	"time"

	"parley"
)

// EraseOlder erases up to limit messages of a channel that are not pending and were received before a time, the oldest first.
// It returns how many, and the files that no message needs any more.
func (t *Tx) EraseOlder(_ context.Context, channel parley.ChannelCode, before time.Time, limit int) (int, []parley.Media, error) {
	id, err := t.channelID(channel)
	if err != nil {
		return 0, nil, err
	}
	var files []parley.Media
	due, err := list(t.Reader, `SELECT seq, kind, data FROM message WHERE channel = $1 AND received_at < $2 AND (body <> '' OR data IS NOT NULL)
		AND status <> 0 ORDER BY received_at LIMIT $3`, []any{id, millis(before), int64(limit)}, func(row scanner) (seq int64, err error) {
		file, err := scanFile(row, &seq)
		if file != nil {
			files = append(files, *file)
		}
		return seq, err
	})
	if err != nil {
		return 0, nil, err
	}
	for _, seq := range due {
		if err := t.erase(seq); err != nil {
			return 0, nil, err
		}
	}
	return len(due), files, nil
}
