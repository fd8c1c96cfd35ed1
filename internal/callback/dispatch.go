package callback

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/wait"
)

// read reads the endpoints if webhooks have changed or deliveries were replayed, and again after it failed.
func (e *Engine) read(ctx context.Context, now time.Time) {
	e.mu.Lock()
	reload := e.reload
	e.reload = false
	e.mu.Unlock()
	if !reload && (!e.broken || now.Before(e.readAt.Add(blink))) {
		return
	}
	e.readAt = now
	e.works(ctx, e.readEndpoints(ctx))
}

// measure counts the webhooks that count as broken.
func (e *Engine) measure() {
	open := 0
	for _, ep := range e.endpoints {
		if ep.isOpen() && !ep.off {
			open++
		}
	}
	e.measures.open.Set(float64(open))
}

// works logs, once, that the store does not work, or that it does again.
func (e *Engine) works(ctx context.Context, err error) {
	if ctx.Err() != nil || (err != nil) == e.broken {
		return
	}
	if e.broken = err != nil; e.broken {
		e.Log.Error("deliveries cannot be read: webhooks and callbacks stand still", "error", err)
	} else {
		e.Log.Info("deliveries can be read again")
	}
}

// readEndpoints brings the endpoints up to date.
func (e *Engine) readEndpoints(ctx context.Context) error {
	webhooks, err := e.Store.Webhooks(ctx)
	if err != nil {
		return err
	}
	callbacks, err := e.Store.CallbackEndpoints(ctx)
	if err != nil {
		return err
	}
	there := map[parley.Endpoint]bool{}
	for _, w := range webhooks {
		key := parley.Endpoint(w.ID)
		there[key] = true
		e.readWebhook(key, w)
	}
	for _, key := range callbacks {
		e.endpoint(key).look = true
	}
	for key, ep := range e.endpoints {
		if ep.isWebhook() && !there[key] {
			ep.off = true
			ep.putBack()
			delete(e.endpoints, key)
			delete(e.active, ep)
		}
	}
	return nil
}

// readWebhook takes over what the store says of a webhook.
func (e *Engine) readWebhook(key parley.Endpoint, w parley.Webhook) {
	ep, known := e.endpoints[key]
	if !known {
		ep = e.endpoint(key)
		ep.failures, ep.failingSince, ep.failingFor = w.Failures, w.FailingSince, w.FailingFor // as the last process left it; the first probe is due
	} else if w.IsEnabled() && (ep.off || ep.webhook.URL != w.URL || ep.isOpen() && w.Failures == 0) {
		ep.forgive()
		e.recorder.push(result{endpoint: key, webhook: w.ID, healthy: true, hurry: true})
	}
	ep.webhook, ep.off = w, !w.IsEnabled()
	ep.putBack() // it may have been read for another address
	e.active[ep] = true
}

// endpoint finds an endpoint or makes it, to be looked at.
func (e *Engine) endpoint(key parley.Endpoint) *endpoint {
	ep := e.endpoints[key]
	if ep == nil {
		ep = newEndpoint(key)
		e.endpoints[key] = ep
	}
	e.active[ep] = true
	return ep
}

// takeIn takes in what others handed over.
func (e *Engine) takeIn(now time.Time) {
	e.mu.Lock()
	looks, retries, done, recorded := e.looks, e.retries, e.done, e.recorded
	e.looks, e.retries, e.done, e.recorded = map[parley.Endpoint]bool{}, map[parley.Endpoint]bool{}, nil, nil
	e.mu.Unlock()
	for key := range retries {
		e.endpoint(key).forgive()
	}
	for _, r := range done {
		e.settle(r, now)
	}
	for _, r := range recorded {
		if ep := e.endpoints[r.endpoint]; ep != nil {
			delete(ep.known, r.delivery.ID)
			ep.look = true // the next one of its chat, or itself at a later time
			e.active[ep] = true
		}
	}
	for key := range looks {
		if e.endpoints[key] == nil && isWebhook(key) {
			e.mu.Lock()
			e.reload = true // a new webhook: read it at once
			e.mu.Unlock()
			wait.Notify(e.wake)
			continue
		}
		e.endpoint(key).look = true
	}
	if !e.nextLook.IsZero() && !now.Before(e.nextLook) {
		e.nextLook = time.Time{}
		for _, ep := range e.endpoints {
			e.remind(ep, now)
		}
	}
}

// isWebhook tells the two kinds of endpoints apart.
func isWebhook(key parley.Endpoint) bool { return len(key) > 4 && key[:4] == "whk_" }

// remind has an endpoint looked at when what it waits for comes.
func (e *Engine) remind(ep *endpoint, now time.Time) {
	at := ep.waitsFor(now)
	switch {
	case at.IsZero():
	case !now.Before(at):
		if !ep.dueAt.IsZero() && !now.Before(ep.dueAt) {
			ep.look = true
		}
		e.active[ep] = true
	case e.nextLook.IsZero() || at.Before(e.nextLook):
		e.nextLook = at
	}
}

// dispatch starts as much as may be under way. Endpoints come in no order, so that none is favoured.
func (e *Engine) dispatch(ctx, sending context.Context, now time.Time) {
	for ep := range e.active {
		if e.inFlight >= inAll {
			return
		}
		if ep.off {
			delete(e.active, ep)
			continue
		}
		more, err := e.serve(ctx, sending, ep, now)
		e.trouble(ctx, ep, err, now)
		if more {
			continue
		}
		delete(e.active, ep)
		if ep.isIdle(now) {
			delete(e.endpoints, ep.key)
			continue
		}
		e.remind(ep, now)
	}
}

// trouble rests an endpoint that cannot be served for a reason of our own, and logs that once.
func (e *Engine) trouble(ctx context.Context, ep *endpoint, err error, now time.Time) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !ep.broken {
		ep.broken = true
		e.Log.Error("deliveries cannot be made", "endpoint", ep.key, "error", err)
	}
	ep.pause, ep.look = now.Add(blink), true
}

// serve starts what an endpoint may have under way, and reports whether it could use more when others
// leave room.
func (e *Engine) serve(ctx, sending context.Context, ep *endpoint, now time.Time) (more bool, err error) {
	if now.Before(ep.pause) {
		return false, nil
	}
	if ep.isOpen() {
		if !e.hasRoom(ep, now) {
			return true, nil
		}
		return false, e.probe(ctx, sending, ep, now)
	}
	for ep.inFlight < ep.limit() {
		if !e.hasRoom(ep, now) {
			return true, nil
		}
		if len(ep.ready) == 0 && ep.look {
			if err := e.fill(ctx, ep, now); err != nil {
				return false, err
			}
		}
		if len(ep.ready) == 0 {
			return false, nil
		}
		next := ep.ready[0]
		ep.ready = ep.ready[1:]
		e.start(sending, ep, next, now)
	}
	return false, nil
}

// hasRoom reports whether an endpoint may have one more attempt under way beside those of all others.
func (e *Engine) hasRoom(ep *endpoint, now time.Time) bool {
	switch {
	case e.inFlight >= inAll, ep.inFlight > 0 && e.inFlight >= half:
		return false
	case e.inFlight < half || !ep.isSuspect(now):
		return true
	}
	suspect := 0
	for other := range e.busy {
		if other.isSuspect(now) {
			suspect += other.inFlight
		}
	}
	return suspect < half
}

// fill reads ahead what is due at an endpoint.
func (e *Engine) fill(ctx context.Context, ep *endpoint, now time.Time) error {
	limit := readAtOnce + len(ep.known)
	due, err := e.Store.DueDeliveries(ctx, ep.key, now, limit)
	if err != nil {
		return err
	}
	if len(due) < limit {
		if ep.dueAt, err = e.Store.NextDelivery(ctx, ep.key, now); err != nil {
			return err
		}
		ep.look = false
	}
	due = fresh(due, ep.known)
	ep.ready, err = e.withEvents(ctx, ep, due, now)
	return err
}

// fresh leaves out what is known already.
func fresh(due []parley.Delivery, known map[parley.DeliveryID]bool) []parley.Delivery {
	kept := due[:0]
	for _, d := range due {
		if !known[d.ID] {
			kept = append(kept, d)
		}
	}
	return kept
}

// withEvents reads what deliveries are to tell. Those whose event is gone have failed.
func (e *Engine) withEvents(ctx context.Context, ep *endpoint, ds []parley.Delivery, now time.Time) ([]job, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(ds))
	for i := range ds {
		seqs[i] = ds[i].Event
	}
	events, err := e.Store.EventsAt(ctx, seqs)
	if err != nil {
		return nil, err
	}
	bySeq := make(map[int64]parley.Event, len(events))
	for _, event := range events {
		bySeq[event.Seq] = event
	}
	var jobs []job
	for _, d := range ds {
		ep.known[d.ID] = true
		event, ok := bySeq[d.Event]
		if !ok || event.ID != d.EventID {
			d.MakeRoom()
			d.State, d.EndedAt, d.Problem = parley.DeliveryFailed, now, "gone: The event is gone."
			e.measures.ended(&d)
			e.recorder.push(result{endpoint: ep.key, delivery: d})
			continue
		}
		jobs = append(jobs, job{Delivery: d, event: event})
	}
	return jobs, nil
}

// probe tries a webhook that counts as broken, if it is time: with its oldest delivery and, every other
// time, with the oldest that was never tried, should it be the deliveries that are bad and not the
// endpoint.
func (e *Engine) probe(ctx, sending context.Context, ep *endpoint, now time.Time) error {
	if ep.inFlight > 0 || now.Before(ep.probeAt) {
		return nil
	}
	ep.probeAt = now.Add(probeEvery)
	ep.putBack()
	untried := ep.probes%2 == 1
	ep.probes++
	d, err := e.Store.OldestDelivery(ctx, ep.webhook.ID, untried)
	if untried && errors.Is(err, parley.ErrNotFound) {
		d, err = e.Store.OldestDelivery(ctx, ep.webhook.ID, false)
	}
	if errors.Is(err, parley.ErrNotFound) || err == nil && ep.known[d.ID] {
		return nil
	}
	if err != nil {
		return err
	}
	jobs, err := e.withEvents(ctx, ep, []parley.Delivery{d}, now)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		ep.probeAt = now.Add(blink) // with the next one, when it is recorded that this one is gone
		return nil
	}
	jobs[0].probe = true
	e.start(sending, ep, jobs[0], now)
	return nil
}
