package store

import (
	"context"
	"time"
)

// TrustedTime reads the newest time at which the clock was trusted.
func (r Reader) TrustedTime(ctx context.Context) (time.Time, error) {
	r = r.with(ctx)
	var at int64
	err := r.row(`SELECT at FROM clock`, nil, &at)
	return moment(at), err
}

// SetTrustedTime stores that the clock was trusted at a time. It never moves back.
func (t *Tx) SetTrustedTime(_ context.Context, at time.Time) error {
	_, err := t.sql.Exec(`UPDATE clock SET at = $1 WHERE at < $1`, millis(at))
	return err
}
