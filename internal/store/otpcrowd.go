package store

import (
	"context"
	"strings"
	"time"

	"parley"
)

// alikeDigits is how many digits at its end a number may differ in from another that is alike: those
// that an operator hands out in one block.
const alikeDigits = 4

// Crowd reads to whom a channel sent codes since a time.
func (r reader) Crowd(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, since time.Time, limit int) (parley.OTPCrowd, error) {
	r = r.with(ctx)
	var c parley.OTPCrowd
	var among int64
	err := r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM otp_crowd WHERE channel = $1 AND contact = $2 AND at > $3) THEN 1 ELSE 0 END`,
		[]any{string(channel), string(contact), millis(since)}, &among)
	if err != nil || among != 0 {
		c.Among = among != 0
		return c, err
	}
	c.Fresh, err = list(r, `SELECT at FROM otp_crowd WHERE channel = $1 AND at > $2 AND fresh = 1 ORDER BY at DESC LIMIT $3`,
		[]any{string(channel), millis(since), int64(limit)}, scanMoment)
	if err != nil {
		return c, err
	}
	number, rest, _ := strings.Cut(string(contact), "@")
	block := number[:max(0, len(number)-alikeDigits)]
	// Digits come right before the colon, so this range is all that begins with the block.
	c.Alike, err = list(r, `SELECT at FROM otp_crowd WHERE channel = $1 AND contact >= $2 AND contact < $3 AND length(contact) = $4 AND at > $5
		ORDER BY at DESC LIMIT $6`,
		[]any{string(channel), block + strings.Repeat("0", alikeDigits), block + ":", int64(len(number) + len("@") + len(rest)), millis(since), int64(limit)}, scanMoment)
	return c, err
}

func scanMoment(row scanner) (time.Time, error) {
	var at int64
	err := row.Scan(&at)
	return moment(at), err
}

// JoinCrowd notes that a channel sends a code to a contact.
func (t *tx) JoinCrowd(_ context.Context, channel parley.ChannelCode, contact parley.ContactID, fresh bool, at, since time.Time) error {
	if _, err := t.Exec(`DELETE FROM otp_crowd WHERE channel = $1 AND at <= $2`, string(channel), millis(since)); err != nil {
		return err
	}
	var isFresh int64
	if fresh {
		isFresh = 1
	}
	_, err := t.Exec(`INSERT INTO otp_crowd (channel, contact, at, fresh) VALUES ($1, $2, $3, $4) ON CONFLICT (channel, contact) DO NOTHING`,
		string(channel), string(contact), millis(at), isFresh)
	return err
}
