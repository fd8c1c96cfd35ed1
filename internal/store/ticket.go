package store

import (
	"context"
	"time"

	"parley"
)

const ticketColumns = `hash, purpose, channel, created_at, expires_at, used_at`

// Ticket finds a ticket by the hash of its secret.
func (r Reader) Ticket(ctx context.Context, hash []byte) (parley.Ticket, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+ticketColumns+` FROM ticket WHERE hash = $1`, []any{hash}, scanTicket)
}

func scanTicket(row scanner) (parley.Ticket, error) {
	var t parley.Ticket
	var created, expires, used int64
	err := row.Scan(&t.Hash, &t.Purpose, &t.Channel, &created, &expires, &used)
	t.CreatedAt, t.ExpiresAt, t.UsedAt = moment(created), moment(expires), moment(used)
	return t, err
}

// AddTicket stores what is kept of a new ticket.
func (t *Tx) AddTicket(_ context.Context, k parley.Ticket) error {
	return t.add(`INSERT INTO ticket (`+ticketColumns+`) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		k.Hash, string(k.Purpose), string(k.Channel), millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.UsedAt))
}

// UseTicket marks a ticket that is still good as used: of many that try, one succeeds.
func (t *Tx) UseTicket(ctx context.Context, hash []byte, now time.Time) (parley.Ticket, error) {
	if err := t.change(`UPDATE ticket SET used_at = $1 WHERE hash = $2 AND used_at = 0 AND expires_at > $1`, millis(now), hash); err != nil {
		return parley.Ticket{}, err
	}
	return t.Ticket(ctx, hash)
}

// ExtendTicket moves the end of a ticket that was not used up.
func (t *Tx) ExtendTicket(_ context.Context, hash []byte, expiresAt time.Time) error {
	return t.change(`UPDATE ticket SET expires_at = $1 WHERE hash = $2 AND used_at = 0`, millis(expiresAt), hash)
}

// PurgeTickets removes the tickets that ended before the given time.
func (t *Tx) PurgeTickets(_ context.Context, before time.Time) error {
	_, err := t.sql.Exec(`DELETE FROM ticket WHERE expires_at < $1`, millis(before))
	return err
}
