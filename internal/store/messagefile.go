package store

import (
	"context"
	"fmt"

	"parley"
)

// filesAtOnce bounds how many messages one call of MessageFiles looks at, so that none is a long read.
const filesAtOnce = 5000

// MessageFiles lists the files that messages name which come after one, and the last message that it looked at.
func (r Reader) MessageFiles(ctx context.Context, after int64) (keys []string, last int64, err error) {
	r = r.with(ctx)
	var newest int64
	if err := r.row(`SELECT coalesce(max(seq), 0) FROM message`, nil, &newest); err != nil {
		return nil, after, err
	}
	last = max(after, min(newest, after+filesAtOnce))
	rows, err := r.conn.Query(`SELECT kind, data FROM message WHERE seq > $1 AND seq <= $2 AND data IS NOT NULL
		AND kind IN ($3, $4, $5, $6)`, after, last,
		string(parley.KindImage), string(parley.KindVideo), string(parley.KindFile), string(parley.KindVoice))
	if err != nil {
		return nil, after, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		var data []byte
		if err := rows.Scan(&kind, &data); err != nil {
			return nil, after, err
		}
		content, err := parley.DecodeContent(parley.Kind(kind), "", data)
		if err != nil {
			return nil, after, fmt.Errorf("file of a message: %w", err)
		}
		if file := parley.MediaOf(content); file != nil {
			keys = append(keys, file.Key, file.ID) // an inbound file is there under its id before it gets its key
		}
	}
	return keys, last, rows.Err()
}
