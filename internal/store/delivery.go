package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"parley"
)

const (
	deliveryColumns = `delivery.seq, endpoint, url, event, event_id, type, coalesce(channel.code, ''), chat, state, attempts, delivery.created_at, next_at,
		tried_at, ended_at, took, delivery.code, problem, response, earlier`
	// Those of channels that were deleted are out of sight; those with channel 0 are of events that belong to none.
	readDeliveries = `SELECT ` + deliveryColumns + ` FROM delivery LEFT JOIN channel ON channel.id = delivery.channel
		WHERE (channel.id IS NOT NULL OR delivery.channel = 0) AND `
)

func scanDelivery(row scanner) (parley.Delivery, error) {
	var d parley.Delivery
	var seq, created, next, tried, ended, took int64
	var earlier []byte
	err := row.Scan(&seq, &d.Webhook, &d.URL, &d.Event, &d.EventID, &d.Type, &d.Channel, &d.Chat, &d.State, &d.Attempts, &created, &next,
		&tried, &ended, &took, &d.Code, &d.Problem, &d.Answer, &earlier)
	if err != nil {
		return d, err
	}
	if d.URL != "" {
		d.Webhook = "" // the endpoint of a callback is no webhook
	}
	d.ID = parley.DeliveryIDOf(seq)
	d.NextAt, d.CreatedAt, d.TriedAt, d.EndedAt = moment(next), moment(created), moment(tried), moment(ended)
	d.Took = time.Duration(took) * time.Microsecond
	d.Earlier, err = decodeAttempts(earlier)
	return d, err
}

// first is what waits behind nothing, as the index of it is defined.
const first = `state = 0 AND held = 0`

// DueDeliveries lists what may be tried now at an endpoint, in the order of events.
func (r Reader) DueDeliveries(ctx context.Context, endpoint parley.Endpoint, now time.Time, limit int) ([]parley.Delivery, error) {
	r = r.with(ctx)
	return list(r, readDeliveries+first+` AND endpoint = $1 AND next_at <= $2 ORDER BY event LIMIT $3`,
		[]any{string(endpoint), millis(now), int64(limit)}, scanDelivery)
}

// NextDelivery is when the next delivery at an endpoint falls due after a time.
func (r Reader) NextDelivery(ctx context.Context, endpoint parley.Endpoint, after time.Time) (time.Time, error) {
	r = r.with(ctx)
	var next int64
	err := r.row(`SELECT coalesce(min(next_at), 0) FROM delivery WHERE `+first+` AND endpoint = $1 AND next_at > $2`,
		[]any{string(endpoint), millis(after)}, &next)
	return moment(next), err
}

// OldestDelivery finds the delivery to a webhook that waits with the oldest event. The oldest of all
// waits behind none, because it is the oldest of its chat.
func (r Reader) OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error) {
	r = r.with(ctx)
	query := readDeliveries + first + ` AND endpoint = $1`
	if untried {
		query += ` AND tried_at = 0`
	}
	return one(r, query+` ORDER BY event LIMIT 1`, []any{string(webhook)}, scanDelivery)
}

// CallbackEndpoints lists the endpoints that callbacks wait for. It goes from each endpoint to the next
// one along the index: there are few of them, and perhaps very many deliveries.
func (r Reader) CallbackEndpoints(ctx context.Context) ([]parley.Endpoint, error) {
	r = r.with(ctx)
	var all []parley.Endpoint
	last := "http" // what every callback begins with and no webhook
	for {
		err := r.row(`SELECT endpoint FROM delivery WHERE `+first+` AND endpoint > $1 AND endpoint < $2 ORDER BY endpoint LIMIT 1`,
			[]any{last, "httq"}, &last)
		if err == parley.ErrNotFound {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, parley.Endpoint(last))
	}
}

// CountWaiting counts the deliveries that wait for a webhook, or in all.
func (r Reader) CountWaiting(ctx context.Context, webhook parley.WebhookID) (n int64, err error) {
	r = r.with(ctx)
	if webhook == "" {
		return n, r.row(`SELECT count(*) FROM delivery WHERE state = 0`, nil, &n)
	}
	return n, r.row(`SELECT count(*) FROM delivery WHERE state = 0 AND endpoint = $1`, []any{string(webhook)}, &n)
}

// CountWaitingSince counts the deliveries that were made since a time and wait. The plus sign has the
// database walk over what waits, which is little, and not over everything since then.
func (r Reader) CountWaitingSince(ctx context.Context, since time.Time) (n int64, err error) {
	r = r.with(ctx)
	return n, r.row(`SELECT count(*) FROM delivery WHERE state = 0 AND +created_at >= $1`, []any{millis(since)}, &n)
}

// isHeld tells, of its four arguments, whether something of the same chat waits already. The first one
// is 0 for a callback, which is held by nothing.
const isHeld = `CASE WHEN $%d = 1 AND EXISTS
	(SELECT 1 FROM delivery WHERE state = 0 AND endpoint = $%d AND channel = $%d AND chat = $%d) THEN 1 ELSE 0 END`

var addDelivery = `INSERT INTO delivery (endpoint, url, event, event_id, type, channel, chat, state, attempts, created_at, next_at,
	tried_at, ended_at, took, code, problem, response, earlier, held)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, ` + fmt.Sprintf(isHeld, 19, 1, 6, 7) + `)
	ON CONFLICT DO NOTHING`

// AddDeliveries stores new deliveries, which get their ids. An event goes to an endpoint once: a second delivery of it is
// left out.
func (t *Tx) AddDeliveries(_ context.Context, ds []parley.Delivery) error {
	for i := range ds {
		d := &ds[i]
		earlier, err := encodeAttempts(d.Earlier)
		if err != nil {
			return err
		}
		channel, err := t.channelNumber(d.Channel)
		if err != nil {
			return err
		}
		if d.CreatedAt.IsZero() {
			d.CreatedAt = time.Now()
		}
		seq, err := t.sql.Insert(addDelivery,
			string(d.Endpoint()), d.URL, d.Event, string(d.EventID), string(d.Type), channel, string(d.Chat),
			int64(d.State), int64(d.Attempts), millis(d.CreatedAt), millis(d.NextAt), millis(d.TriedAt), millis(d.EndedAt),
			d.Took.Microseconds(), int64(d.Code), d.Problem, d.Answer, earlier, flag(d.Webhook != ""))
		if err != nil {
			return err
		}
		d.ID = parley.DeliveryIDOf(seq)
	}
	return nil
}

// UpdateDeliveries stores what became of deliveries. Where one has ended, the next one of its chat has
// its turn.
func (t *Tx) UpdateDeliveries(_ context.Context, ds []parley.Delivery) error {
	for i := range ds {
		d := &ds[i]
		earlier, err := encodeAttempts(d.Earlier)
		if err != nil {
			return err
		}
		n, err := t.count(`UPDATE delivery SET state = $1, attempts = $2, next_at = $3, tried_at = $4, ended_at = $5,
			took = $6, code = $7, problem = $8, response = $9, earlier = $10 WHERE seq = $11`,
			int64(d.State), int64(d.Attempts), millis(d.NextAt), millis(d.TriedAt), millis(d.EndedAt),
			d.Took.Microseconds(), int64(d.Code), d.Problem, d.Answer, earlier, d.ID.Number())
		if err != nil {
			return err
		}
		if n == 0 || d.State == parley.DeliveryWaiting || d.Webhook == "" {
			continue
		}
		what := parley.CountWebhookDone
		if d.State == parley.DeliveryFailed {
			what = parley.CountWebhookFailed
		}
		channel, err := t.channelNumber(d.Channel)
		if err != nil && err != parley.ErrNotFound {
			return err
		}
		t.counting.add(channel, what, d.Webhook, 1)
		if _, err := t.sql.Exec(`UPDATE delivery SET held = 0 WHERE seq = (SELECT seq FROM delivery
			WHERE state = 0 AND endpoint = $1 AND channel = $2 AND chat = $3 ORDER BY event LIMIT 1)`,
			string(d.Webhook), channel, string(d.Chat)); err != nil {
			return err
		}
	}
	return nil
}

// RetryDeliveries makes everything that waits for a webhook due now. What is held has no time of its
// own to wait for.
func (t *Tx) RetryDeliveries(_ context.Context, webhook parley.WebhookID, now time.Time) error {
	_, err := t.sql.Exec(`UPDATE delivery SET next_at = $1 WHERE `+first+` AND endpoint = $2 AND next_at > $1`, millis(now), string(webhook))
	return err
}

// RetryDelivery makes a waiting delivery due now. One that is held gets its turn after the first of its chat.
func (t *Tx) RetryDelivery(_ context.Context, d parley.Delivery, now time.Time) error {
	if d.Webhook == "" { // a callback is held by nothing
		_, err := t.sql.Exec(`UPDATE delivery SET next_at = $1 WHERE seq = $2 AND state = 0`, millis(now), d.ID.Number())
		return err
	}
	channel, err := t.channelNumber(d.Channel)
	if err != nil {
		return err
	}
	_, err = t.sql.Exec(`UPDATE delivery SET next_at = $1 WHERE `+first+` AND endpoint = $2 AND channel = $3 AND chat = $4 AND next_at > $1`,
		millis(now), string(d.Endpoint()), channel, string(d.Chat))
	return err
}

// PurgeDeliveries removes up to limit deliveries of a state that ended before a time, the oldest first. The state is part of
// the text: a statement whose index depends on a parameter is prepared again with every call.
func (t *Tx) PurgeDeliveries(_ context.Context, state parley.DeliveryState, before time.Time, limit int) (int, error) {
	n, err := t.count(`DELETE FROM delivery WHERE seq IN
		(SELECT seq FROM delivery WHERE state = `+strconv.Itoa(int(state))+` AND state > 0 AND ended_at < $1 ORDER BY ended_at LIMIT $2)`,
		millis(before), int64(limit))
	return int(n), err
}
