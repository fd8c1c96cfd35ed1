package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// A stored file has a row, and a channel has one row for each content: messages and uploads with the same content name the
// same file. Who names it is read from them, so there is no count that could be wrong.

// AddFile adds a stored file, unless the channel has one with the same content. It returns the key of the one that it has.
func (t *Tx) AddFile(_ context.Context, f StoredFile) (key string, err error) {
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

// File finds a stored file.
func (r Reader) File(ctx context.Context, key string) (StoredFile, error) {
	f := StoredFile{Key: key}
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
	messages, err := listIn(r, `SELECT file FROM message WHERE file IN `, ``, nil, keys, sqldb.ScanOne[string])
	if err != nil {
		return nil, err
	}
	uploads, err := listIn(r, `SELECT file FROM upload WHERE file IN `, ``, nil, keys, sqldb.ScanOne[string])
	return append(messages, uploads...), err
}

// Totals of stored bytes that are not of a chat.
const (
	allFiles     = 0  // of a channel
	fromUnknowns = -1 // that came in from contacts which never got a message
)

const storedDay = 24 // hours

// CountFile adds a new file to what a channel stored within 24 hours. Above the limit it fails; zero: no limit.
func (t *Tx) CountFile(ctx context.Context, channel parley.ChannelCode, size int64, at time.Time, limit int64) error {
	if err := t.MayStore(ctx, channel, size, at, limit); err != nil {
		return err
	}
	return t.countStored(channel, allFiles, size, at)
}

// MayStore fails if a channel may not store a file of a size now.
func (r Reader) MayStore(ctx context.Context, channel parley.ChannelCode, size int64, at time.Time, limit int64) error {
	if limit == 0 {
		return nil
	}
	used, oldest, err := r.with(ctx).stored(channel, allFiles, at)
	if err != nil || used+size <= limit {
		return err
	}
	return &parley.Error{Code: parley.StorageLimit, RetryAfter: max(time.Minute, oldest.Add(storedDay*time.Hour).Sub(at)),
		Message: fmt.Sprintf("This channel stored %d MiB of files within 24 hours; the limit is %d MiB. "+
			"Try again after the time in Retry-After, or send files that it sent before.", used>>20, limit>>20)}
}

// CountInbound adds a file that came in to what a chat and its channel got from contacts that never got a message from us. It
// returns why the file is over a limit, in which case it is not counted; empty: it is not.
func (t *Tx) CountInbound(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, size int64, at time.Time,
	limits StorageLimits) (reason string, err error) {
	row, reason, err := t.inboundOver(ctx, channel, chat, size, at, limits)
	if err != nil || reason != "" || row == 0 {
		return reason, err
	}
	return "", errors.Join(t.countStored(channel, row, size, at), t.countStored(channel, fromUnknowns, size, at))
}

// InboundOver returns why a file of a size that comes in would be over a limit; empty: it would not.
func (r Reader) InboundOver(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, size int64, at time.Time,
	limits StorageLimits) (reason string, err error) {
	_, reason, err = r.inboundOver(ctx, channel, chat, size, at, limits)
	return reason, err
}

// inboundOver also returns the row of the chat; zero: no limit applies to it.
func (r Reader) inboundOver(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, size int64, at time.Time,
	limits StorageLimits) (row int64, reason string, err error) {
	r = r.with(ctx)
	if limits.PerContact == 0 && limits.PerChannel == 0 {
		return 0, "", ctx.Err()
	}
	err = r.optional(`SELECT id FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`)), []any{string(chat), string(channel)}, &row)
	if err != nil {
		return 0, "", err
	}
	if got, err := r.gotMessage(row); err != nil || got || row == 0 {
		return 0, "", err
	}
	for _, bound := range []struct {
		of, limit int64
		who       string
	}{
		{row, limits.PerContact, "This contact"},
		{fromUnknowns, limits.PerChannel, "Contacts that this channel never wrote to"},
	} {
		used, _, err := r.stored(channel, bound.of, at)
		if err != nil {
			return 0, "", err
		}
		if bound.limit > 0 && used+size > bound.limit {
			return row, fmt.Sprintf("%s sent more than %d MiB of files within 24 hours, which is the limit until the channel sends "+
				"a message to the contact. Ask for the file again after that.", bound.who, bound.limit>>20), nil
		}
	}
	return row, "", nil
}

// gotReach is how many of the first and of the last messages of a chat are read: more would take long in a long chat.
const gotReach = 1000

// gotMessage reports whether a message was sent to a chat. Statuses 1 to 4 mean that it was.
func (r Reader) gotMessage(chat int64) (bool, error) {
	var got int64
	err := r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM message WHERE chat = $1 AND position > 0
			AND position < (SELECT min(position) FROM message WHERE chat = $1) + $2 AND from_me = 1 AND status BETWEEN 1 AND 4)
		OR EXISTS (SELECT 1 FROM message WHERE chat = $1 AND position > (SELECT max(position) FROM message WHERE chat = $1) - $2
			AND from_me = 1 AND status BETWEEN 1 AND 4) THEN 1 ELSE 0 END`, []any{chat, int64(gotReach)}, &got)
	return got != 0, err
}

// stored returns what was stored within 24 hours, and when the first of it was.
func (r Reader) stored(channel parley.ChannelCode, of int64, at time.Time) (bytes int64, oldest time.Time, err error) {
	var hour int64
	// The sum keeps PostgreSQL from reading the last hours of all channels.
	err = r.row(`SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT), coalesce(min(hour), 0) FROM stored_hour WHERE `+ofChannel+`
		AND chat = $2 AND hour + 0 > $3`, []any{string(channel), of, toHour(at) - storedDay}, &bytes, &hour)
	return bytes, time.Unix(hour*3600, 0), err
}

func (t *Tx) countStored(channel parley.ChannelCode, of, size int64, at time.Time) error {
	id, err := t.channelID(channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO stored_hour (channel, chat, hour, bytes) VALUES ($1, $2, $3, $4)
		ON CONFLICT (channel, chat, hour) DO UPDATE SET bytes = stored_hour.bytes + excluded.bytes`, id, of, toHour(at), size)
}

func toHour(at time.Time) int64 { return at.Unix() / 3600 }

// PurgeStored deletes up to limit counts of stored bytes that no limit of a day needs any more.
func (t *Tx) PurgeStored(_ context.Context, now time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM stored_hour WHERE (channel, chat, hour) IN
		(SELECT channel, chat, hour FROM stored_hour WHERE hour < $1 LIMIT $2)`, toHour(now)-storedDay, int64(limit))
	return int(n), err
}
