package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
	"parley/internal/wire"
)

func toDelivery(d parley.Delivery, webhooks map[parley.WebhookID]string) wire.Delivery {
	row := wire.Delivery{
		ID: d.ID, Webhook: wire.Text(d.Webhook), URL: d.URL, EventID: d.EventID, Type: d.Type, Channel: d.Channel,
		ContactID: wire.Text(d.Chat), State: d.State.String(), Attempts: d.Attempts, CreatedAt: wire.At(d.CreatedAt),
		TriedAt: wire.At(d.TriedAt), Result: toResult(d.Code, d.Took, d.Problem),
	}
	if d.Webhook != "" {
		row.URL = webhooks[d.Webhook]
	}
	if d.State == parley.DeliveryWaiting {
		row.NextAt = wire.At(d.NextAt)
	}
	return row
}

// delivery is one as the caller may see it.
func (r *request) delivery(d parley.Delivery, webhooks map[parley.WebhookID]string) wire.Delivery {
	row := toDelivery(d, webhooks)
	row.URL = r.shownAddress(row.URL)
	return row
}

func toResult(code int, took time.Duration, problem string) wire.Result {
	r := wire.Result{TookMS: took.Milliseconds(), Problem: problem}
	if code != 0 {
		r.Code = &code
	}
	return r
}

func (s *server) listDeliveries(ctx context.Context, r *request) (any, error) {
	q, page := deliveryQuery(r.Form, "waiting", retrying, "delivered", "failed"), seqPage(r.Form)
	q.OldestFirst = r.Choice("order", false, "newest", "oldest") == "oldest"
	if r.Has("event_id") {
		q.Events = append(q.Events, eventSeq(r.Form, "event_id"))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	rows, total, err := s.deliveries(ctx, r, q, page)
	rows, meta := cutPage(rows, page, total, func(d wire.Delivery) int64 { return d.ID.Number() })
	return envelope{Success: true, Message: "OK", Data: rows, Meta: meta}, err
}

func (s *server) deliveries(ctx context.Context, r *request, q parley.DeliveryQuery, page parley.Page) ([]wire.Delivery, int64, error) {
	found, total, err := s.config.Store.Deliveries(ctx, q, page)
	if err != nil {
		return nil, 0, err
	}
	addresses, err := s.addresses(ctx)
	return mapped(found, func(d parley.Delivery) wire.Delivery { return r.delivery(d, addresses) }), total, err
}

func (s *server) addresses(ctx context.Context) (map[parley.WebhookID]string, error) {
	webhooks, err := s.config.Store.Webhooks(ctx)
	by := make(map[parley.WebhookID]string, len(webhooks))
	for _, w := range webhooks {
		by[w.ID] = w.URL
	}
	return by, err
}

func deliveryQuery(f form.Form, states ...string) parley.DeliveryQuery {
	q := parley.DeliveryQuery{
		Webhook: parley.WebhookID(f.OptionalText("webhook", 1, 100)),
		Channel: parley.ChannelCode(f.OptionalText("channel", 1, 100)),
		Since:   f.Time("since"), Until: f.Time("until"),
	}
	if f.Has("state") {
		word := f.Choice("state", true, states...)
		if word == retrying {
			word, q.Tried = parley.DeliveryWaiting.String(), true
		}
		if state, known := parley.ParseDeliveryState(word); known {
			q.State = &state
		}
	}
	return q
}

// retrying are the waiting deliveries with a failed attempt.
const retrying = "retrying"

func eventSeq(f form.Form, name string) int64 {
	parse := func(id string) (int64, error) { return parley.EventID(id).Seq() }
	seq, _ := form.Parse(f, name, parse, "the id of an event: evt_ and 26 letters and digits")
	return seq
}

func (s *server) readDelivery(ctx context.Context, r *request) (any, error) {
	id := parley.DeliveryID(r.http.PathValue("id"))
	found, _, err := s.config.Store.Deliveries(ctx, parley.DeliveryQuery{IDs: []parley.DeliveryID{id}}, parley.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNoDelivery
	}
	addresses, err := s.addresses(ctx)
	if err != nil {
		return nil, err
	}
	d := found[0]
	body, err := s.config.Callbacks.DeliveryBody(ctx, d)
	if err != nil {
		return nil, err
	}
	w, err := s.config.Store.Webhook(ctx, d.Webhook)
	if err = parley.IgnoreNotFound(err); err != nil {
		return nil, err
	}
	request, err := s.deliveryRequest(ctx, r, d, w)
	history := mapped(d.History(), func(a parley.DeliveryAttempt) wire.DeliveryAttempt {
		return wire.DeliveryAttempt{Number: a.Number, At: wire.At(a.At), Attempt: wire.Attempt{Result: toResult(a.Code, a.Took, a.Problem),
			Answer: a.Response}}
	})
	return ok("OK", wire.DeliveryDetail{Delivery: r.delivery(d, addresses), Answer: d.Response, History: history, Body: body,
		Request: request}), err
}

var errNoDelivery = parley.Errorf(parley.NotFound, "This delivery does not exist.")

// deliveryRequest returns the request of the last attempt. It is signed again, so viewers see neither the signature nor the query: with
// them anybody could report a login to the application before we do.
func (s *server) deliveryRequest(ctx context.Context, r *request, d parley.Delivery, w parley.Webhook) (*wire.DeliveryRequest, error) {
	req, err := s.config.Callbacks.LastRequest(ctx, w, d)
	if err != nil || req == nil {
		return nil, err
	}
	shown := wire.DeliveryRequest{Method: req.Method, URL: r.shownAddress(req.URL.String()), Headers: map[string]string{}}
	for name := range req.Header {
		shown.Headers[strings.ToLower(name)] = req.Header.Get(name)
	}
	if !r.token.Role.Includes(parley.Operator) {
		delete(shown.Headers, "webhook-signature")
	}
	return &shown, nil
}

const (
	maxReplayed = 10_000 // in one call, which takes about a second
	// replayBatch is how many deliveries one transaction replays. Every other writer waits for it.
	replayBatch = 250
	maxNamed    = 1000 // ids in one call
)

func (s *server) replayDeliveries(ctx context.Context, r *request) (any, error) {
	q, limit := r.replay(), int(r.Whole("limit", 1000, 1, maxReplayed))
	if err := r.Err(); err != nil {
		return nil, err
	}
	var done envelope
	for replayed, more := 0, true; more && replayed < limit; {
		batch := min(replayBatch, limit-replayed)
		var n int
		err := s.tx(ctx, func(tx *store.Tx) (err error) {
			if n, err = tx.ReplayDeliveries(ctx, q, time.Now(), batch); err != nil {
				return err
			}
			done = ok(fmt.Sprintf("%d queued for replay", replayed+n), wire.Replayed{Replayed: replayed + n, More: n == batch,
				EndedBefore: parley.Stamp(q.EndedBefore)})
			if replayed == 0 { // one entry for all batches
				err = r.auditTx(ctx, tx, change{object: string(q.Webhook)})
			}
			return errors.Join(err, r.storeKey(ctx, tx, http.StatusOK, done))
		})
		if err != nil {
			return nil, err
		}
		s.config.Callbacks.Reload(q.Webhook)
		r.accepted, more = true, n == batch
		replayed += n
	}
	return done, nil
}

func (r *request) replay() parley.DeliveryQuery {
	q := deliveryQuery(r.Form, "failed", "delivered")
	r.List("ids", 1, maxNamed, false, func(f form.Form, index string) {
		q.IDs = append(q.IDs, parley.DeliveryID(f.Text(index, 1, 100)))
	})
	r.List("event_ids", 1, maxNamed, false, func(f form.Form, index string) {
		q.Events = append(q.Events, eventSeq(f, index))
	})
	if !slices.ContainsFunc([]string{"ids", "event_ids", "webhook", "channel", "state", "since", "until"}, r.Has) {
		r.Note("ids", "Select deliveries to replay by ids, event_ids, webhook, channel, state, since or until.")
	}
	if q.EndedBefore = r.Time("ended_before"); q.EndedBefore.IsZero() {
		q.EndedBefore = time.Now().Add(time.Millisecond) // times are compared in milliseconds; include what finished just now
	}
	return q
}

func (s *server) retryDelivery(ctx context.Context, r *request) (any, error) {
	d, err := s.config.Callbacks.Retry(ctx, parley.DeliveryID(r.http.PathValue("id")))
	if err != nil {
		return nil, notFoundAs(err, errNoDelivery)
	}
	addresses, err := s.addresses(ctx)
	return ok("Retrying now", toDelivery(d, addresses)), err
}

type retryData struct {
	Waiting int64 `json:"waiting"`
}

func (s *server) retryWebhook(ctx context.Context, r *request) (any, error) {
	n, err := s.config.Callbacks.RetryWebhook(ctx, r.webhookID())
	return ok(fmt.Sprintf("Retrying %d now", n), retryData{n}), notFoundAs(err, errNoWebhook)
}
