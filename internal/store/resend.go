package store

import (
	"context"
	"time"

	"parley"
)

// SetResend stores the encrypted text of a message whose channel stores no text, so that it can be sent again.
func (t *Tx) SetResend(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, encrypted []byte, at time.Time) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	_, err = t.sql.Exec(`INSERT INTO resend (seq, sealed, at) VALUES ($1, $2, $3) ON CONFLICT (seq) DO UPDATE SET sealed = excluded.sealed, at = excluded.at`,
		seq, encrypted, millis(at))
	return err
}

// Resend reads what SetResend stored of a message.
func (r Reader) Resend(ctx context.Context, seq int64) (encrypted []byte, err error) {
	r = r.with(ctx)
	err = r.row(`SELECT sealed FROM resend WHERE seq = $1`, []any{seq}, &encrypted)
	return encrypted, err
}

// PurgeResends removes what was stored before a time.
func (t *Tx) PurgeResends(_ context.Context, before time.Time) error {
	_, err := t.sql.Exec(`DELETE FROM resend WHERE at < $1`, millis(before))
	return err
}
