package store

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// A stored file has a row, and a channel has one row for each content: messages and uploads with the same content name the
// same file. Who names it is read from them, so there is no count that could be wrong.

// AddFile adds a stored file, unless the channel has one with the same content. It returns the key of the one that it has.
func (t *Tx) AddFile(_ context.Context, f parley.StoredFile) (key string, err error) {
	channel, err := t.channelID(f.Channel)
	if err != nil {
		return "", err
	}
	if err := t.exec(`INSERT INTO file (key, channel, sha256, size, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		f.Key, channel, f.SHA256, f.Size, millis(f.At)); err != nil {
		return "", err
	}
	return key, t.row(`SELECT key FROM file WHERE channel = $1 AND sha256 = $2`, []any{channel, f.SHA256}, &key)
}

// FileWith finds the file of a channel with a content.
func (r Reader) FileWith(ctx context.Context, channel parley.ChannelCode, sha256 []byte) (key string, err error) {
	return key, r.with(ctx).row(`SELECT key FROM file WHERE `+ofChannel+` AND sha256 = $2`, []any{string(channel), sha256}, &key)
}

// File finds a stored file. Those of earlier versions have no row.
func (r Reader) File(ctx context.Context, key string) (parley.StoredFile, error) {
	f := parley.StoredFile{Key: key}
	var at int64
	err := r.with(ctx).row(`SELECT code, sha256, size, at FROM file JOIN channel ON channel.id = file.channel WHERE key = $1`,
		[]any{key}, &f.Channel, &f.SHA256, &f.Size, &at)
	f.At = moment(at)
	return f, err
}

// UseFile must be called in the transaction that names a file. It fails if the file was removed since it was found, and
// holds up those who are about to remove it.
func (t *Tx) UseFile(_ context.Context, key string) error {
	n, err := t.sql.Exec(`UPDATE file SET at = at WHERE key = $1`, key)
	if err == nil && n == 0 {
		err = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second, Message: "The file was removed meanwhile. Try again."}
	}
	return err
}

// ReleaseFiles deletes the rows of files that nothing names any more, and returns their keys. They are to be removed from
// the storage after the commit.
func (t *Tx) ReleaseFiles(_ context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	// The rows are locked before anybody looks who names them: on PostgreSQL another node may be about to.
	for some := range slices.Chunk(keys, maxList) {
		in, args := inList(1, some)
		if err := t.exec(`UPDATE file SET at = at WHERE key IN `+in, args...); err != nil {
			return nil, err
		}
	}
	named, err := t.namedFiles(keys)
	if err != nil {
		return nil, err
	}
	free := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(named, key) })
	for some := range slices.Chunk(free, maxList) {
		in, args := inList(1, some)
		if err := t.exec(`DELETE FROM file WHERE key IN `+in, args...); err != nil {
			return nil, err
		}
	}
	return free, nil
}

// NamedFiles returns those of some keys that messages or uploads name.
func (r Reader) NamedFiles(ctx context.Context, keys []string) ([]string, error) {
	return r.with(ctx).namedFiles(keys)
}

func (r Reader) namedFiles(keys []string) ([]string, error) {
	key := `json_extract(data, '$.media.key')`
	if r.conn.IsPostgres() {
		key = `(data::json #>> '{media,key}')`
	}
	messages, err := listIn(r, `SELECT `+key+` FROM message WHERE kind IN ('image', 'video', 'file', 'voice', 'sticker') AND `+key+` IN `, ``,
		nil, keys, sqldb.ScanOne[string])
	if err != nil {
		return nil, err
	}
	uploads, err := listIn(r, `SELECT file FROM upload WHERE file IN `, ``, nil, keys, sqldb.ScanOne[string])
	return append(messages, uploads...), err
}
