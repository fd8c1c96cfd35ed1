package callback

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
)

func (e *Engine) readEndpoints(ctx context.Context, now time.Time) {
	if !e.reload && len(e.changed) == 0 || e.reading.failing && now.Before(e.readAt.Add(storeErrorPause)) {
		return
	}
	e.readAt = now
	if err := e.updateEndpoints(ctx, now); ctx.Err() == nil {
		e.reading.report(e.config.Log, err, "deliveries cannot be read: webhooks and callbacks wait", "deliveries can be read again")
		if err == nil {
			e.reload = false
			clear(e.changed)
		}
	}
}

// updateEndpoints reads all webhooks and callbacks, or the webhooks that changed. Those that wait for nothing are not asked again.
func (e *Engine) updateEndpoints(ctx context.Context, now time.Time) error {
	if !e.reload {
		for id := range e.changed {
			w, err := e.config.Store.Webhook(ctx, id)
			if err != nil && !errors.Is(err, parley.ErrNotFound) {
				return err
			}
			if err == nil && e.config.owns(string(id)) {
				e.updateWebhook(parley.Endpoint(id), w)
			} else if ep := e.endpoints[parley.Endpoint(id)]; ep != nil {
				e.drop(ep)
			}
		}
		return nil
	}
	webhooks, err := e.config.Store.Webhooks(ctx)
	if err != nil {
		return err
	}
	waiting, err := e.config.Store.WaitingEndpoints(ctx)
	if err != nil {
		return err
	}
	exists := map[parley.Endpoint]bool{}
	for _, w := range webhooks {
		if !e.config.owns(string(w.ID)) {
			continue
		}
		exists[parley.Endpoint(w.ID)] = true
		e.updateWebhook(parley.Endpoint(w.ID), w)
		e.endpoints[parley.Endpoint(w.ID)].mayBeDue = false
	}
	e.deliveriesWait(waiting, now)
	for key, ep := range e.endpoints {
		if ep.isWebhook() && !exists[key] || !e.config.owns(string(key)) {
			e.drop(ep)
		}
	}
	return nil
}

func (e *Engine) drop(ep *endpoint) {
	ep.off = true
	ep.dropReady()
	delete(e.endpoints, ep.key)
	delete(e.active, ep)
}

func (e *Engine) updateWebhook(key parley.Endpoint, w parley.Webhook) {
	ep, known := e.endpoints[key]
	if !known { // with the failures that the last process stored; the first probe is due
		ep = e.endpoint(key)
		ep.failures = w.Failures
	} else {
		if w.IsEnabled() && (ep.off || ep.webhook.URL != w.URL || ep.isBroken() && w.Failures == 0) {
			ep.restart()
			e.results.add(result{endpoint: key, webhook: parley.Webhook{ID: w.ID}, retryAll: true})
		}
		w.Failures, w.FailingSince, w.FailingFor = ep.webhook.Failures, ep.webhook.FailingSince, ep.webhook.FailingFor
	}
	ep.webhook, ep.off = w, !w.IsEnabled()
	ep.dropReady() // the URL may have changed
	e.active[ep] = true
}

func (e *Engine) endpoint(key parley.Endpoint) *endpoint {
	ep := e.endpoints[key]
	if ep == nil {
		ep = &endpoint{key: key, known: map[parley.DeliveryID]bool{}}
		e.endpoints[key] = ep
	}
	e.active[ep] = true
	return ep
}

func (e *Engine) countBroken() {
	broken := 0
	for _, ep := range e.endpoints {
		if ep.isBroken() && !ep.off {
			broken++
		}
	}
	e.metrics.broken.Set(float64(broken))
}

func (e *Engine) activateDue(now time.Time) {
	if !e.nextCheck.IsZero() && !now.Before(e.nextCheck) {
		e.nextCheck = time.Time{}
		for _, ep := range e.endpoints {
			e.scheduleCheck(ep, now)
		}
	}
}

func (e *Engine) scheduleCheck(ep *endpoint, now time.Time) {
	at := ep.nextCheck(now)
	switch {
	case at.IsZero():
	case !now.Before(at):
		if !ep.dueAt.IsZero() && !now.Before(ep.dueAt) {
			ep.mayBeDue = true
		}
		e.active[ep] = true
	case e.nextCheck.IsZero() || at.Before(e.nextCheck):
		e.nextCheck = at
	}
}

// dispatch starts as many attempts as allowed. The random order of the map favours no endpoint.
func (e *Engine) dispatch(ctx, sending context.Context, now time.Time) {
	for ep := range e.active {
		if e.inFlight >= e.config.AtOnce {
			return
		}
		if ep.off {
			delete(e.active, ep)
			continue
		}
		more, err := e.startAttempts(ctx, sending, ep, now)
		e.pauseAfterError(ctx, ep, err, now)
		if more {
			continue
		}
		delete(e.active, ep)
		if ep.isIdle(now) {
			delete(e.endpoints, ep.key)
			continue
		}
		e.scheduleCheck(ep, now)
	}
}

func (e *Engine) pauseAfterError(ctx context.Context, ep *endpoint, err error, now time.Time) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !ep.errorLogged {
		ep.errorLogged = true
		e.config.Log.Error("deliveries cannot be made", "endpoint", ep.key, "error", err)
	}
	ep.pausedUntil, ep.mayBeDue = now.Add(storeErrorPause), true
}

// startAttempts starts attempts at an endpoint. It reports whether the endpoint could use more once others finish.
func (e *Engine) startAttempts(ctx, sending context.Context, ep *endpoint, now time.Time) (more bool, err error) {
	if now.Before(ep.pausedUntil) {
		return false, nil
	}
	if ep.isBroken() {
		if !e.hasRoom(ep, now) {
			return true, nil
		}
		return false, e.probe(ctx, sending, ep, now)
	}
	for ep.inFlight < ep.limit() {
		if !e.hasRoom(ep, now) {
			return true, nil
		}
		if len(ep.ready) == 0 && ep.mayBeDue {
			if err := e.readAhead(ctx, ep, now); err != nil {
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

func (e *Engine) hasRoom(ep *endpoint, now time.Time) bool {
	half := (e.config.AtOnce + 1) / 2
	switch {
	case e.inFlight >= e.config.AtOnce, ep.inFlight > 0 && e.inFlight >= half:
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

func (e *Engine) readAhead(ctx context.Context, ep *endpoint, now time.Time) error {
	limit := readAheadSize + len(ep.known)
	due, err := e.config.Store.DueDeliveries(ctx, ep.key, now, limit)
	if err != nil {
		return err
	}
	if len(due) < limit {
		if ep.dueAt, err = e.config.Store.NextDelivery(ctx, ep.key, now); err != nil {
			return err
		}
		ep.mayBeDue = false
	}
	due = slices.DeleteFunc(due, func(d parley.Delivery) bool { return ep.known[d.ID] })
	ep.ready, err = e.withEvents(ctx, ep, due, now)
	return err
}

// withEvents reads the events of deliveries. A delivery whose event was purged fails.
func (e *Engine) withEvents(ctx context.Context, ep *endpoint, ds []parley.Delivery, now time.Time) ([]job, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(ds))
	for i := range ds {
		seqs[i] = ds[i].Event
	}
	events, err := e.config.Store.EventsAt(ctx, seqs)
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
			d.SaveAttempt()
			d.State, d.EndedAt, d.Problem = parley.DeliveryFailed, now, "gone: The event is gone."
			e.metrics.finished(&d)
			e.results.add(result{endpoint: ep.key, delivery: d, attempts: d.Attempts})
			continue
		}
		jobs = append(jobs, job{Delivery: d, event: event})
	}
	return jobs, nil
}

// probe attempts one delivery to a broken webhook when it is time. It alternates between the oldest delivery and the
// oldest without an attempt: the deliveries may be bad and not the endpoint.
func (e *Engine) probe(ctx, sending context.Context, ep *endpoint, now time.Time) error {
	if ep.inFlight > 0 || now.Before(ep.probeAt) {
		return nil
	}
	ep.probeAt = now.Add(probeEvery)
	ep.dropReady()
	untried := ep.probes%2 == 1
	ep.probes++
	d, err := e.config.Store.OldestDelivery(ctx, ep.webhook.ID, untried)
	if untried && errors.Is(err, parley.ErrNotFound) {
		d, err = e.config.Store.OldestDelivery(ctx, ep.webhook.ID, false)
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
	if len(jobs) == 0 { // its event is gone: continue with the next one when that is stored
		ep.probeAt = now.Add(storeErrorPause)
		return nil
	}
	jobs[0].probe = true
	e.start(sending, ep, jobs[0], now)
	return nil
}

func (e *Engine) start(ctx context.Context, ep *endpoint, j job, now time.Time) {
	w := ep.webhook
	ep.inFlight++
	ep.startedAt = now
	e.inFlight++
	e.busy[ep] = true
	e.sends.Go(func() {
		a, err := e.attempt(ctx, &w, &j)
		e.inRun(func(now time.Time) { e.finishAttempt(ep, j, w.URL, a, err, now) })
	})
}
