package store

import (
	"context"
	"slices"
	"time"

	"parley"
)

// A list of seqs is filled up to atOnce with its last one, so that there is one statement.
var factsMany = inMany(`SELECT seq, from_me, created_at FROM message WHERE seq IN `, 1)[atOnce]

// Facts looks up messages by their seqs.
func (r reader) Facts(ctx context.Context, seqs []int64) ([]parley.MessageFacts, error) {
	r = r.with(ctx)
	all := make([]parley.MessageFacts, 0, len(seqs))
	for some := range slices.Chunk(seqs, atOnce) {
		args := withSeqs(some)
		for len(args) < atOnce {
			args = append(args, some[len(some)-1])
		}
		found, err := list(r, factsMany, args, scanFacts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func scanFacts(row scanner) (f parley.MessageFacts, err error) {
	var fromMe, created int64
	err = row.Scan(&f.Seq, &fromMe, &created)
	f.FromMe, f.CreatedAt = fromMe != 0, moment(created)
	return f, err
}

// Secrets finds messages that carry one-time codes: by what only their data begins with.
func (r reader) Secrets(ctx context.Context, from, to int64) ([]parley.MessageFacts, error) {
	r = r.with(ctx)
	return list(r, `SELECT seq, from_me, created_at FROM message WHERE seq BETWEEN $1 AND $2 AND kind = 'text' AND substr(data, 1, 7) = CAST('{"otp":' AS BLOB)`,
		[]any{from, to}, scanFacts)
}

// Reactions lists the emojis now standing on a message.
func (r reader) Reactions(ctx context.Context, seq int64) ([]string, error) {
	r = r.with(ctx)
	return list(r, `SELECT emoji FROM reaction WHERE seq = $1 ORDER BY contact`, []any{seq},
		func(row scanner) (emoji string, err error) { return emoji, row.Scan(&emoji) })
}

const (
	maxKeys = 5000 // requests that are looked at to find the one that sent a message
	// keyBefore is how long a request may have been under way when its message was taken: it may have had
	// a file to fetch.
	keyBefore = 2 * time.Minute
	keyAfter  = time.Second // and the clocks of both may have been read in another order
)

// KeyOf finds the idempotency key of the request that sent a message.
func (r reader) KeyOf(ctx context.Context, m *parley.Message) (key string, err error) {
	r = r.with(ctx)
	err = r.row(`SELECT key FROM (SELECT key, messages, channel FROM answer WHERE created_at BETWEEN $1 AND $2 ORDER BY created_at DESC LIMIT $3) AS near
		WHERE channel = $4 AND messages LIKE $5 LIMIT 1`,
		[]any{millis(m.CreatedAt.Add(-keyBefore)), millis(m.CreatedAt.Add(keyAfter)), int64(maxKeys), string(m.Channel), "%" + string(m.ID) + "%"}, &key)
	return key, err
}
