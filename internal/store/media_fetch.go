package store

import (
	"context"
	"fmt"
	"time"

	"parley"
)

const (
	mediaFetchColumns = `media_fetch.seq, code, contact, media_fetch.attempts, next_at, media_fetch.created_at`
	fromMediaFetches  = ` FROM media_fetch JOIN chat ON chat.id = media_fetch.chat JOIN channel ON channel.id = media_fetch.channel `
)

func scanMediaFetch(row scanner) (f parley.MediaFetch, err error) {
	var next, created int64
	err = row.Scan(&f.Seq, &f.Channel, &f.Chat, &f.Attempts, &next, &created)
	f.NextAt, f.CreatedAt = moment(next), moment(created)
	return f, err
}

// AddMediaFetch schedules the fetch of a message's file.
func (t *Tx) AddMediaFetch(_ context.Context, f parley.MediaFetch) error {
	return t.exec(`INSERT INTO media_fetch (seq, channel, chat, reference, attempts, next_at, created_at)
		SELECT seq, channel, chat, $2, $3, $4, $5 FROM message WHERE seq = $1`,
		f.Seq, f.Reference, int64(f.Attempts), millis(f.NextAt), millis(f.CreatedAt))
}

// DueMediaFetches returns for each chat the oldest file that is due and not being fetched.
func (r Reader) DueMediaFetches(ctx context.Context, now, latest time.Time, running []int64) ([]parley.MediaFetch, error) {
	args, except := []any{millis(now), millis(latest)}, ""
	for _, seq := range running {
		args = append(args, seq)
		except += " AND seq <> " + param(len(args))
	}
	return list(r.with(ctx), `SELECT `+mediaFetchColumns+fromMediaFetches+`
		WHERE `+notMoving+` AND media_fetch.seq IN
			(SELECT min(seq) FROM media_fetch WHERE (next_at <= $1 OR next_at > $2)`+except+` GROUP BY chat)
		ORDER BY media_fetch.seq`, args, scanMediaFetch)
}

// NextMediaFetch is when the next file becomes due.
func (r Reader) NextMediaFetch(ctx context.Context, now time.Time) (time.Time, error) {
	return r.with(ctx).moment(`SELECT coalesce(min(next_at), 0) FROM media_fetch WHERE next_at > $1`, millis(now))
}

// MediaFetch reads a scheduled fetch.
func (r Reader) MediaFetch(ctx context.Context, seq int64) (parley.MediaFetch, error) {
	r = r.with(ctx)
	f, err := one(r, `SELECT `+mediaFetchColumns+fromMediaFetches+`WHERE media_fetch.seq = $1`,
		[]any{seq}, scanMediaFetch)
	if err != nil {
		return f, err
	}
	var kind string
	var data []byte
	if err := r.row(`SELECT reference, kind, data FROM media_fetch JOIN message ON message.seq = media_fetch.seq WHERE media_fetch.seq = $1`,
		[]any{seq}, &f.Reference, &kind, &data); err != nil {
		return f, err
	}
	content, err := parley.DecodeContent(parley.Kind(kind), "", data)
	if err != nil {
		return f, fmt.Errorf("message %d: %w", seq, err)
	}
	if media := parley.MediaIn(content); media != nil {
		f.Media = *media
	}
	return f, nil
}

// DelayMediaFetch stores that an attempt failed and when to try again.
func (t *Tx) DelayMediaFetch(_ context.Context, seq int64, attempts int, next time.Time) error {
	return t.change(`UPDATE media_fetch SET attempts = $1, next_at = $2 WHERE seq = $3`, int64(attempts), millis(next), seq)
}

// FinishMediaFetch stores the fetched file, or the claims about it with the reason why it cannot be fetched.
func (t *Tx) FinishMediaFetch(ctx context.Context, seq int64, media parley.Media) (parley.Message, error) {
	if err := t.change(`DELETE FROM media_fetch WHERE seq = $1`, seq); err != nil {
		return parley.Message{}, err
	}
	m, err := one(t.Reader, readMessages+`WHERE message.seq = $1`, []any{seq}, scanMessage)
	if err != nil {
		return m, err
	}
	if media.Key != "" {
		if err := t.UseFile(ctx, media.Key); err != nil {
			return m, err
		}
	}
	media.FetchAt = time.Time{}
	m.Content = parley.WithMedia(m.Content, media)
	data, file, err := encodeContent(m.Content)
	if err != nil {
		return m, err
	}
	return m, t.change(`UPDATE message SET data = $1, file = $2 WHERE seq = $3`, nullableText(data), nullableText(file), seq)
}
