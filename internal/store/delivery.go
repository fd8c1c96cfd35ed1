package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	deliveryColumns = `delivery.seq, endpoint, url, event, event_id, type, coalesce(channel.code, ''), chat, state, attempts,
		delivery.created_at, next_at, tried_at, ended_at, took, delivery.code, problem, response, earlier`
	// Deliveries of deleted channels are hidden. Channel 0 means that the event belongs to no channel.
	readDeliveries = `SELECT ` + deliveryColumns + ` FROM delivery LEFT JOIN channel ON channel.id = delivery.channel
		WHERE (channel.id IS NOT NULL OR delivery.channel = 0) AND `
)

func scanDelivery(row scanner) (parley.Delivery, error) {
	var d parley.Delivery
	var seq, created, next, tried, ended, took int64
	var earlier []byte
	err := row.Scan(&seq, &d.Webhook, &d.URL, &d.Event, &d.EventID, &d.Type, &d.Channel, &d.Chat, &d.State, &d.Attempts, &created, &next,
		&tried, &ended, &took, &d.Code, &d.Problem, &d.Response, &earlier)
	if err != nil {
		return d, err
	}
	if d.URL != "" {
		d.Webhook = "" // a callback
	}
	d.ID = parley.NewDeliveryID(seq)
	d.NextAt, d.CreatedAt, d.TriedAt, d.EndedAt = moment(next), moment(created), moment(tried), moment(ended)
	d.Took = time.Duration(took) * time.Microsecond
	d.Earlier, err = decodeAttempts(earlier)
	return d, err
}

// first is the condition of the index delivery_due: the first waiting delivery of each chat.
const first = `state = 0 AND held = 0`

// DueDeliveries lists the deliveries to an endpoint that are due, in the order of events.
func (r Reader) DueDeliveries(ctx context.Context, endpoint parley.Endpoint, now time.Time, limit int) ([]parley.Delivery, error) {
	return list(r.with(ctx), readDeliveries+first+` AND endpoint = $1 AND next_at <= $2 ORDER BY event LIMIT $3`,
		[]any{string(endpoint), millis(now), int64(limit)}, scanDelivery)
}

// purgePause is when to look again for deliveries that are hidden while a purge gives them the new number of their channel.
const purgePause = time.Second

// NextDelivery is when the next delivery to an endpoint is due after a time.
func (r Reader) NextDelivery(ctx context.Context, endpoint parley.Endpoint, after time.Time) (time.Time, error) {
	return r.with(ctx).moment(`SELECT CASE WHEN EXISTS
			(SELECT 1 FROM delivery WHERE state = 0 AND endpoint = $1 AND channel IN (SELECT id FROM deletion WHERE purged = 0)) THEN $3
		ELSE coalesce((SELECT min(next_at) FROM delivery WHERE `+first+` AND endpoint = $1 AND next_at > $2), 0) END`,
		string(endpoint), millis(after), millis(after.Add(purgePause)))
}

// OldestDelivery finds the waiting delivery to a webhook with the oldest event. It is the first of its chat, so it is not
// held.
func (r Reader) OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error) {
	query := readDeliveries + first + ` AND endpoint = $1`
	if untried {
		query += ` AND tried_at = 0`
	}
	return one(r.with(ctx), query+` ORDER BY event LIMIT 1`, []any{string(webhook)}, scanDelivery)
}

// WaitingEndpoints lists the endpoints for which deliveries wait.
func (r Reader) WaitingEndpoints(ctx context.Context) ([]WaitingEndpoint, error) {
	return list(r.with(ctx), `SELECT endpoint, min(next_at) FROM delivery INDEXED BY delivery_due WHERE `+first+` GROUP BY endpoint`, nil,
		func(row scanner) (e WaitingEndpoint, err error) {
			var due int64
			err = row.Scan(&e.Endpoint, &due)
			e.DueAt = moment(due)
			return e, err
		})
}

// WaitingEndpoint is where deliveries wait to be sent, and when the first of them is due.
type WaitingEndpoint struct {
	Endpoint parley.Endpoint
	DueAt    time.Time
}

// CallbackEndpoints lists the endpoints of waiting callbacks of later events than one, and the last of these events. A callback
// is stored together with its event, and events appear in their order, so a later call can continue from there.
func (r Reader) CallbackEndpoints(ctx context.Context, after int64) (all []WaitingEndpoint, last int64, err error) {
	last = after
	err = each(r.with(ctx), `SELECT endpoint, min(next_at), max(event) FROM delivery INDEXED BY delivery_callback
		WHERE state = 0 AND url <> '' AND event > $1 GROUP BY endpoint ORDER BY endpoint`, []any{after}, func(row scanner) error {
		var e WaitingEndpoint
		var due, event int64
		err := row.Scan(&e.Endpoint, &due, &event)
		e.DueAt, last = moment(due), max(last, event)
		all = append(all, e)
		return err
	})
	return all, last, err
}

// CountWaiting counts the waiting deliveries of a webhook, or of all.
func (r Reader) CountWaiting(ctx context.Context, webhook parley.WebhookID) (n int64, err error) {
	r = r.with(ctx)
	if webhook == "" {
		return n, r.row(`SELECT count(*) FROM delivery WHERE state = 0`, nil, &n)
	}
	return n, r.row(`SELECT count(*) FROM delivery WHERE state = 0 AND endpoint = $1`, []any{string(webhook)}, &n)
}

// isHeld is SQL for whether another delivery of the same chat is waiting. The first of its four arguments is 0 for a
// callback, which is never held.
const isHeld = `CASE WHEN $%d = 1 AND EXISTS
	(SELECT 1 FROM delivery WHERE state = 0 AND endpoint = $%d AND channel = $%d AND chat = $%d) THEN 1 ELSE 0 END`

const newDelivery = `endpoint, url, event, event_id, type, channel, chat, state, attempts, created_at, next_at, tried_at, ended_at, took,
	code, problem, response, earlier`

// addDelivery adds deliveries, which are held while another one of their chat waits. The last argument is 0 for callbacks, which are never
// held. A second delivery of an event to the same endpoint is ignored: its seq is 0. Subqueries that return a row keep PostgreSQL from
// reading all that wait once, to look up each in it.
var addDelivery = sqldb.Many{
	One: `INSERT INTO delivery (` + newDelivery + `, held)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, ` + fmt.Sprintf(isHeld, 19, 1, 6, 7) + `)
		ON CONFLICT DO NOTHING`,
	Postgres: `WITH given AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[],
			$8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[],
			$17::text[], $18::text[], $19::bigint[]) WITH ORDINALITY AS given (` + newDelivery + `, webhook, n)),
		fresh AS MATERIALIZED (SELECT DISTINCT ON (event, endpoint) * FROM given WHERE (SELECT seq FROM delivery
			WHERE delivery.event = given.event AND delivery.endpoint || '' = given.endpoint) IS NULL ORDER BY event, endpoint, n),
		placed AS MATERIALIZED (SELECT *, count(*) FILTER (WHERE state = 0) OVER (PARTITION BY endpoint, channel, chat ORDER BY n
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM fresh),
		stored AS (INSERT INTO delivery (` + newDelivery + `, held) SELECT ` + newDelivery + `,
			CASE WHEN webhook = 1 AND (before > 0 OR (SELECT seq FROM delivery WHERE delivery.state = 0 AND
				delivery.endpoint = placed.endpoint AND delivery.channel = placed.channel AND delivery.chat = placed.chat LIMIT 1) > 0)
				THEN 1 ELSE 0 END
			FROM placed ORDER BY n ON CONFLICT DO NOTHING RETURNING seq, event, endpoint)
		SELECT coalesce(seq, 0) FROM given LEFT JOIN fresh USING (n)
			LEFT JOIN stored ON stored.event = fresh.event AND stored.endpoint = fresh.endpoint ORDER BY n`,
}

// AddDeliveries stores new deliveries of webhooks that the caller has locked, and sets their ids after the commit. A second delivery
// of an event to the same endpoint is ignored.
func (t *Tx) AddDeliveries(_ context.Context, ds []parley.Delivery) error {
	seqs := make([]int64, len(ds))
	for i := range ds {
		args, err := t.deliveryArgs(&ds[i])
		if err != nil {
			return err
		}
		if err := t.sql.ManyThen(&addDelivery, args, &seqs[i]); err != nil {
			return err
		}
	}
	t.OnCommit(func() {
		for i, seq := range seqs {
			ds[i].ID = parley.NewDeliveryID(seq)
		}
	})
	return nil
}

// AddCallback stores a callback of an event that the same transaction adds.
func (t *Tx) AddCallback(_ context.Context, e *parley.Event, address string, contact parley.ContactID) error {
	d := parley.NewCallback(e, address, contact)
	args, err := t.deliveryArgs(&d)
	t.ending.after = append(t.ending.after, func() error {
		args[2], args[3] = e.Seq, string(e.ID)
		return t.sql.ManyThen(&addDelivery, args, new(int64))
	})
	return err
}

func (t *Tx) deliveryArgs(d *parley.Delivery) ([]any, error) {
	earlier, err := encodeAttempts(d.Earlier)
	if err != nil {
		return nil, err
	}
	channel, err := t.channelNumber(d.Channel)
	if d.CreatedAt.IsZero() {
		d.CreatedAt = time.Now()
	}
	return []any{string(d.Endpoint()), d.URL, d.Event, string(d.EventID), string(d.Type), channel, string(d.Chat),
		int64(d.State), int64(d.Attempts), millis(d.CreatedAt), millis(d.NextAt), millis(d.TriedAt), millis(d.EndedAt),
		d.Took.Microseconds(), int64(d.Code), d.Problem, d.Response, earlier, flag(d.Webhook != "")}, err
}

// DeliveryResult is a delivery after an attempt. Before is how many attempts it had.
type DeliveryResult struct {
	parley.Delivery
	Before int
}

// UpdateDeliveries stores the outcomes of attempts. If another attempt was stored meanwhile, because another node took the endpoint
// over, an outcome is ignored. When a delivery has finished, the next one of its chat is not held any more.
func (t *Tx) UpdateDeliveries(_ context.Context, results []DeliveryResult) error {
	seqs, webhooks := make([]int64, len(results)), make([]parley.WebhookID, len(results))
	for i := range results {
		seqs[i], webhooks[i] = results[i].ID.Number(), results[i].Webhook
	}
	if _, err := t.LockWebhooks(webhooks); err != nil {
		return err
	}
	before := map[int64]int{} // of those that wait
	_, err := listIn(t.Reader, `SELECT seq, attempts FROM delivery WHERE state < 1 AND seq IN `, ``, nil, seqs,
		func(row scanner) (seq int64, err error) {
			var attempts int
			err = row.Scan(&seq, &attempts)
			before[seq] = attempts
			return seq, err
		})
	if err != nil {
		return err
	}
	var finished []int64
	for i := range results {
		d := &results[i].Delivery
		if was, waits := before[seqs[i]]; !waits || was != results[i].Before {
			continue
		}
		if err := t.updateDelivery(d, results[i].Before); err != nil {
			return err
		}
		if d.Webhook != "" && d.State != parley.DeliveryWaiting {
			finished = append(finished, seqs[i])
		}
	}
	next, err := listIn(t.Reader, `SELECT (SELECT seq FROM delivery AS next WHERE state = 0 AND endpoint = ended.endpoint AND
			channel = ended.channel AND chat = ended.chat ORDER BY event LIMIT 1)
		FROM delivery AS ended WHERE seq IN `, ``, nil, finished, func(row scanner) (seq int64, err error) {
		var found any
		err = row.Scan(&found)
		seq, _ = found.(int64)
		return seq, err
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(next, maxList) {
		in, args := inList(1, some)
		if err := t.exec(`UPDATE delivery SET held = 0 WHERE held = 1 AND seq IN `+in, args...); err != nil {
			return err
		}
	}
	return nil
}

// updateDelivery stores the outcome of an attempt. "state < 1", here and above, keeps PostgreSQL from using an index of all that wait.
var updateDelivery = sqldb.Many{
	One: `UPDATE delivery SET state = $1, attempts = $2, next_at = $3, tried_at = $4, ended_at = $5,
		took = $6, code = $7, problem = $8, response = $9, earlier = $10 WHERE seq = $11 AND state < 1 AND attempts = $12`,
	Postgres: `WITH stored AS (UPDATE delivery SET state = new.state, attempts = new.attempts, next_at = new.next_at, tried_at = new.tried_at,
			ended_at = new.ended_at, took = new.took, code = new.code, problem = new.problem, response = new.response, earlier = new.earlier
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[],
				$10::text[], $11::bigint[], $12::bigint[]) AS new (state, attempts, next_at, tried_at, ended_at, took, code, problem, response,
				earlier, seq, before)
			WHERE delivery.seq = new.seq AND delivery.state < 1 AND delivery.attempts = new.before)
		SELECT 0 FROM unnest($11::bigint[])`,
}

func (t *Tx) updateDelivery(d *parley.Delivery, attempts int) error {
	earlier, err := encodeAttempts(d.Earlier)
	if err != nil {
		return err
	}
	err = t.sql.ManyThen(&updateDelivery, []any{int64(d.State), int64(d.Attempts), millis(d.NextAt), millis(d.TriedAt), millis(d.EndedAt),
		d.Took.Microseconds(), int64(d.Code), d.Problem, d.Response, earlier, d.ID.Number(), int64(attempts)}, new(int64))
	if err != nil || d.Webhook == "" {
		return err
	}
	channel, err := t.channelNumber(d.Channel)
	if err != nil && err != parley.ErrNotFound {
		return err
	}
	t.countAttempt(channel, d)
	return nil
}

// moveDeliveries gives some deliveries of a number another one, and returns how many. The first of each chat is not held any
// more: the one before it may have finished under the other number.
func (t *Tx) moveDeliveries(from, to int64, limit int) (int64, error) {
	var webhooks []parley.WebhookID // and hosts of callbacks, which are not locked
	seqs, err := list(t.Reader, `SELECT seq, endpoint FROM delivery WHERE channel = $1 ORDER BY seq LIMIT $2`, []any{from, int64(limit)},
		func(row scanner) (seq int64, err error) {
			var endpoint parley.WebhookID
			err = row.Scan(&seq, &endpoint)
			webhooks = append(webhooks, endpoint)
			return seq, err
		})
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	if _, err := t.LockWebhooks(webhooks); err != nil {
		return 0, err
	}
	in, args := inList(2, seqs)
	args = append([]any{to}, args...)
	return int64(len(seqs)), t.execAll([]string{
		`UPDATE delivery SET channel = $1 WHERE seq IN ` + in,
		`UPDATE delivery SET held = 0 WHERE seq IN ` + in + ` AND state = 0 AND held = 1 AND NOT EXISTS
			(SELECT 1 FROM delivery AS earlier WHERE earlier.state = 0 AND earlier.endpoint = delivery.endpoint
			AND earlier.channel = $1 AND earlier.chat = delivery.chat AND earlier.event < delivery.event)`,
	}, args...)
}

// RetryDeliveries makes all waiting deliveries of a webhook due now. A held one has no time of its own.
func (t *Tx) RetryDeliveries(_ context.Context, webhook parley.WebhookID, now time.Time) error {
	return t.exec(`UPDATE delivery SET next_at = $1 WHERE `+first+` AND endpoint = $2 AND next_at > $1`, millis(now), string(webhook))
}

// RetryDelivery makes a waiting delivery due now. For a held one it makes the first of its chat due.
func (t *Tx) RetryDelivery(_ context.Context, d parley.Delivery, now time.Time) error {
	if d.Webhook == "" { // a callback is never held
		return t.exec(`UPDATE delivery SET next_at = $1 WHERE seq = $2 AND state = 0`, millis(now), d.ID.Number())
	}
	channel, err := t.channelNumber(d.Channel)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE delivery SET next_at = $1 WHERE `+first+` AND endpoint = $2 AND channel = $3 AND chat = $4 AND next_at > $1`,
		millis(now), string(d.Endpoint()), channel, string(d.Chat))
}

// PurgeDeliveries deletes up to limit deliveries of a state that finished before a time, the oldest first. The state is part
// of the text: a statement whose index depends on a parameter is prepared again for every call.
func (t *Tx) PurgeDeliveries(_ context.Context, state parley.DeliveryState, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM delivery WHERE seq IN
		(SELECT seq FROM delivery WHERE state = `+strconv.Itoa(int(state))+` AND state > 0 AND ended_at < $1 ORDER BY ended_at LIMIT $2)`,
		millis(before), int64(limit))
	return int(n), err
}

// storedAttempt is an attempt as stored with its delivery. The names are in the database and must not change.
type storedAttempt struct {
	Number  int    `json:"n"`
	At      int64  `json:"at"`   // milliseconds since 1970
	Took    int64  `json:"took"` // microseconds
	Code    int    `json:"code,omitempty"`
	Problem string `json:"problem,omitempty"`
	Answer  string `json:"answer,omitempty"`
}

// encodeAttempts encodes the earlier attempts of a delivery. Most deliveries have none.
func encodeAttempts(all []parley.DeliveryAttempt) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	stored := make([]storedAttempt, len(all))
	for i, a := range all {
		stored[i] = storedAttempt{a.Number, millis(a.At), a.Took.Microseconds(), a.Code, a.Problem, a.Response}
	}
	encoded, err := json.Marshal(stored)
	return string(encoded), err
}

func decodeAttempts(encoded []byte) ([]parley.DeliveryAttempt, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	var stored []storedAttempt
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return nil, fmt.Errorf("attempts of a delivery: %w", err)
	}
	all := make([]parley.DeliveryAttempt, len(stored))
	for i, a := range stored {
		all[i] = parley.DeliveryAttempt{Number: a.Number, At: moment(a.At), Took: time.Duration(a.Took) * time.Microsecond,
			Code: a.Code, Problem: a.Problem, Response: a.Answer}
	}
	return all, nil
}
