package store

import (
	"context"
	"time"

	"parley"
)

// StoredFile is a file in the storage. The messages and uploads of a channel with the same content share one.
type StoredFile struct {
	Key     string // the name that it is stored under
	Channel parley.ChannelCode
	SHA256  []byte
	Size    int64
	At      time.Time // when it was stored
}

// Upload is a file that a caller sent for later messages.
type Upload struct {
	Key      string // of its id
	Channel  parley.ChannelCode
	File     string // the key of the stored file
	MIME     string
	Filename string
	Size     int64
	At       time.Time // when it was uploaded or last used: it is removed UploadLife later
	Used     bool      // a message was made of it, so it does not count any more
}

// UploadLife is how long an upload stays after it was last used.
const UploadLife = 24 * time.Hour

func (u *Upload) ID() parley.MediaID { return parley.UploadID(u.Key) }

// AddUpload stores that a file was uploaded.
func (t *Tx) AddUpload(_ context.Context, u Upload) error {
	channel, err := t.channelID(u.Channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO upload (id, channel, file, mime, filename, size, at, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		u.Key, channel, u.File, u.MIME, u.Filename, u.Size, millis(u.At), flag(u.Used))
}

// Upload finds an upload of a channel.
func (r Reader) Upload(ctx context.Context, channel parley.ChannelCode, key string) (Upload, error) {
	u := Upload{Key: key, Channel: channel}
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
