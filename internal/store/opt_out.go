package store

import (
	"context"
	"math"
	"time"

	"parley"
)

// OptOut is a contact that wants no messages of a channel.
type OptOut struct {
	Contact parley.ContactID
	At      time.Time
	Cursor  parley.ChatCursor
}

// SetOptedOut stores since when a contact wants no messages of a channel; zero: it may get them. It reports whether it was otherwise.
func (t *Tx) SetOptedOut(_ context.Context, code parley.ChannelCode, contact parley.ContactID, since time.Time) (changed bool, err error) {
	channel, err := t.channelID(code)
	if err == nil && !since.IsZero() {
		_, err = t.openChat(channel, contact)
	}
	if err != nil {
		return false, err
	}
	otherwise := ` AND opted_out_at = 0`
	if since.IsZero() {
		otherwise = ` AND opted_out_at > 0`
	}
	n, err := t.sql.Exec(`UPDATE chat SET opted_out_at = $1 WHERE id = `+chatIDFrom(`$2`, `$3`)+otherwise,
		millis(since), string(contact), channel)
	return n > 0, err
}

// IsOptedOut reports whether a contact wants no messages of a channel.
func (r Reader) IsOptedOut(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (bool, error) {
	var at int64
	err := r.with(ctx).optional(`SELECT opted_out_at FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`)),
		[]any{string(contact), string(channel)}, &at)
	return at > 0, err
}

// OptOuts lists the contacts that want no messages of a channel, newest first, after a cursor; zero: from the newest on.
func (r Reader) OptOuts(ctx context.Context, channel parley.ChannelCode, after parley.ChatCursor, limit int) ([]OptOut, error) {
	if after == (parley.ChatCursor{}) {
		after.At = math.MaxInt64
	}
	return list(r.with(ctx), `SELECT contact, opted_out_at, id FROM chat WHERE `+ofChannel+` AND opted_out_at > 0
		AND (opted_out_at, id) < ($2, $3) ORDER BY opted_out_at DESC, id DESC LIMIT $4`,
		[]any{string(channel), after.At, after.ID, int64(limit)}, func(row scanner) (o OptOut, err error) {
			err = row.Scan(&o.Contact, &o.Cursor.At, &o.Cursor.ID)
			o.At = moment(o.Cursor.At)
			return o, err
		})
}

// CountOptOuts counts them.
func (r Reader) CountOptOuts(ctx context.Context, channel parley.ChannelCode) (n int64, err error) {
	return n, r.with(ctx).row(`SELECT count(*) FROM chat WHERE `+ofChannel+` AND opted_out_at > 0`, []any{string(channel)}, &n)
}

// SetCallText stores that a caller is sent the text of a channel, unless that happened after a time.
func (t *Tx) SetCallText(_ context.Context, code parley.ChannelCode, contact parley.ContactID, at, after time.Time) (may bool, err error) {
	channel, err := t.channelID(code)
	if err != nil {
		return false, err
	}
	chat, err := t.openChat(channel, contact)
	if err != nil {
		return false, err
	}
	n, err := t.sql.Exec(`UPDATE chat SET call_text_at = $1 WHERE id = $2 AND call_text_at <= $3`, millis(at), chat, millis(after))
	return n > 0, err
}
