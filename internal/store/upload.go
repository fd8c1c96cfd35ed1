package store

import (
	"context"
	"time"

	"parley"
)

// AddUpload stores that a file was uploaded.
func (t *Tx) AddUpload(_ context.Context, u parley.Upload) error {
	channel, err := t.channelID(u.Channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO upload (id, channel, file, mime, filename, size, at, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.Key, channel, u.File, u.MIME, u.Filename, u.Size, millis(u.At), flag(u.Used))
}

// Upload finds an upload of a channel.
func (r Reader) Upload(ctx context.Context, channel parley.ChannelCode, key string) (parley.Upload, error) {
	u := parley.Upload{Key: key, Channel: channel}
	var at int64
	err := r.with(ctx).row(`SELECT file, mime, filename, size, at, used FROM upload WHERE `+ofChannel+` AND id = $2`,
		[]any{string(channel), key}, &u.File, &u.MIME, &u.Filename, &u.Size, &at, &u.Used)
	u.At = moment(at)
	return u, err
}

// UnusedUploads counts the uploads of a channel that no message was made of, and returns when the oldest was uploaded.
func (r Reader) UnusedUploads(ctx context.Context, channel parley.ChannelCode) (files, bytes int64, oldest time.Time, err error) {
	var at int64
	err = r.with(ctx).row(`SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT), coalesce(min(at), 0) FROM upload
		WHERE `+ofChannel+` AND used = 0`, []any{string(channel)}, &files, &bytes, &at)
	return files, bytes, moment(at), err
}

// UseUpload stores that a message was made of an upload. A missing one is not an error.
func (t *Tx) UseUpload(_ context.Context, key string, at time.Time) error {
	return t.exec(`UPDATE upload SET used = 1, at = $1 WHERE id = $2`, millis(at), key)
}

// PurgeUploads deletes up to limit uploads that were last used before a time, and returns their files.
func (t *Tx) PurgeUploads(_ context.Context, before time.Time, limit int) ([]parley.Media, error) {
	var ids []string
	files, err := list(t.Reader, `SELECT id, file FROM upload WHERE at < $1 ORDER BY at LIMIT $2`, []any{millis(before), int64(limit)},
		func(row scanner) (m parley.Media, err error) {
			var id string
			err = row.Scan(&id, &m.Key)
			ids = append(ids, id)
			return m, err
		})
	for _, id := range ids {
		if err := t.exec(`DELETE FROM upload WHERE id = $1`, id); err != nil {
			return nil, err
		}
	}
	return files, err
}
