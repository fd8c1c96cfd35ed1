package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
)

// Deliveries lists deliveries, newest first unless the query says otherwise, and returns their number.
func (r Reader) Deliveries(ctx context.Context, q parley.DeliveryQuery, page parley.Page) ([]parley.Delivery, int64, error) {
	r = r.with(ctx)
	total, err := r.countDeliveries(q)
	if err != nil || page.Limit < 1 {
		return nil, total, err
	}
	found, err := r.ListDeliveries(ctx, q, page)
	return found, total, err
}

// ListDeliveries is Deliveries without counting them.
func (r Reader) ListDeliveries(ctx context.Context, q parley.DeliveryQuery, page parley.Page) ([]parley.Delivery, error) {
	r = r.with(ctx)
	where, args, err := r.conditions(q)
	if err != nil {
		return nil, err
	}
	beyond, order := ` AND delivery.seq < `, ` ORDER BY delivery.seq DESC LIMIT `
	args = append(args, before(page), int64(page.Limit))
	if q.OldestFirst {
		beyond, order, args[len(args)-2] = ` AND delivery.seq > `, ` ORDER BY delivery.seq LIMIT `, page.Beyond
	}
	read := strings.Replace(readDeliveries, `FROM delivery`, `FROM delivery`+rareIndex(q), 1)
	return list(r, read+where+beyond+param(len(args)-1)+order+param(len(args)), args, scanDelivery)
}

// before is the seq before which a page begins, of a list with the newest first.
func before(page parley.Page) int64 { return cmp.Or(page.Beyond, math.MaxInt64) }

// countDeliveries counts deliveries. No index has the delivered ones, which are the most. Their number is that of all
// deliveries without the waiting and failed ones.
func (r Reader) countDeliveries(q parley.DeliveryQuery) (n int64, err error) {
	if q.State == nil || *q.State != parley.DeliveryDone {
		where, args, err := r.conditions(q)
		if err != nil {
			return 0, err
		}
		return n, r.row(`SELECT count(*) FROM delivery`+rareIndex(q)+` WHERE `+where, args, &n)
	}
	waiting, failed := parley.DeliveryWaiting, parley.DeliveryFailed
	var counts [3]int64
	for i, state := range []*parley.DeliveryState{nil, &waiting, &failed} {
		q.State = state
		if counts[i], err = r.countDeliveries(q); err != nil {
			return 0, err
		}
	}
	return counts[0] - counts[1] - counts[2], nil
}

// ReplayDeliveries makes finished deliveries wait again.
func (t *Tx) ReplayDeliveries(_ context.Context, q parley.DeliveryQuery, now time.Time, limit int) (int, error) {
	if q.State != nil && *q.State == parley.DeliveryWaiting {
		return 0, nil
	}
	where, args, err := t.conditions(q)
	if err != nil {
		return 0, err
	}
	if q.State == nil {
		where += ` AND +state > 0` // the plus: in the order of the list
	}
	some, err := list(t.Reader, readDeliveries+where+` ORDER BY delivery.seq LIMIT `+param(len(args)+1),
		append(args, int64(limit)), scanDelivery)
	if err != nil || len(some) == 0 {
		return 0, err
	}
	// In the order of events: the first of a chat must not be held by the others.
	slices.SortStableFunc(some, func(a, b parley.Delivery) int { return cmp.Compare(a.Event, b.Event) })
	for i := range some {
		d := &some[i]
		d.SaveAttempt()
		earlier, err := encodeAttempts(d.Earlier)
		if err != nil {
			return 0, err
		}
		channel, err := t.channelNumber(d.Channel)
		if err != nil {
			return 0, err
		}
		if err := t.change(replayDelivery, flag(d.Webhook != ""), string(d.Endpoint()), channel, string(d.Chat),
			millis(now), earlier, d.ID.Number()); err != nil {
			return 0, err
		}
	}
	return len(some), t.revised(WebhookChange, q.Webhook, nil)
}

var replayDelivery = `UPDATE delivery SET held = ` + fmt.Sprintf(isHeld, 1, 2, 3, 4) + `, state = 0, attempts = 0, next_at = $5,
	tried_at = 0, ended_at = 0, took = 0, code = 0, problem = '', response = '', earlier = $6 WHERE seq = $7`

// rareIndex names the index of some events, or of waiting or failed deliveries, if only they can match. They are few, and without the
// hint the database would walk over all of a channel, or over all delivered ones. Empty: the database may choose.
func rareIndex(q parley.DeliveryQuery) string {
	switch {
	case len(q.IDs) > 0:
	case len(q.Events) > 0:
		return ` INDEXED BY delivery_event`
	case q.State == nil:
	case *q.State == parley.DeliveryWaiting:
		return ` INDEXED BY delivery_chat`
	case *q.State == parley.DeliveryFailed:
		return ` INDEXED BY delivery_failed`
	}
	return ""
}

// conditions writes a query as SQL. States are part of the text, because a partial index needs that. Deliveries of deleted
// webhooks are left out.
func (r Reader) conditions(q parley.DeliveryQuery) (where string, args []any, err error) {
	all, plus := []string{`true`}, ""
	if rareIndex(q) != "" || len(q.IDs) > 0 {
		plus = `+` // prevents the use of the index of channels
	}
	var retired bool
	if err := r.row(`SELECT EXISTS (SELECT 1 FROM retired_webhook)`, nil, &retired); err != nil {
		return "", nil, err
	}
	if retired {
		all = append(all, `endpoint NOT IN (SELECT id FROM retired_webhook)`)
	}
	and := func(condition string, arg any) {
		args = append(args, arg)
		all = append(all, condition+param(len(args)))
	}
	if len(q.IDs) > 0 {
		numbers := make([]int64, len(q.IDs))
		for i, id := range q.IDs {
			numbers[i] = id.Number()
		}
		in, more := inList(len(args)+1, numbers)
		all, args = append(all, `delivery.seq IN `+in), append(args, more...)
	}
	if len(q.Events) > 0 {
		in, more := inList(len(args)+1, q.Events)
		all, args = append(all, `event IN `+in), append(args, more...)
	}
	if q.Webhook != "" {
		and(`endpoint = `, string(q.Webhook))
	}
	if q.Channel != "" {
		args = append(args, string(q.Channel))
		all = append(all, plus+`delivery.channel = (SELECT id FROM channel WHERE code = `+param(len(args))+`)`)
	}
	if q.State != nil {
		all = append(all, `state = `+strconv.Itoa(int(*q.State)))
	}
	if q.Tried {
		all = append(all, `attempts > 0`)
	}
	if !q.Since.IsZero() {
		and(`delivery.created_at >= `, millis(q.Since))
	}
	if !q.Until.IsZero() {
		and(`delivery.created_at < `, millis(q.Until))
	}
	if !q.EndedBefore.IsZero() {
		and(`ended_at < `, millis(q.EndedBefore))
	}
	return strings.Join(all, ` AND `), args, nil
}
