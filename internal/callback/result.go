package callback

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"parley"
	"parley/internal/wait"
)

// result is what an attempt comes to, and what is to be stored because of it.
type result struct {
	endpoint parley.Endpoint
	delivery parley.Delivery // without an id: none is meant

	// Of an attempt that came back.
	job     job
	ep      *endpoint
	attempt Attempt
	err     error // nothing was sent, because of a failure of our own

	// Of a webhook.
	webhook      parley.WebhookID // whose health is to be stored; empty: none
	healthy      bool             // it works, or begins anew
	failingSince time.Time
	failingFor   time.Duration
	failures     int
	hurry        bool   // everything that waits becomes due
	disable      string // why it is switched off; empty: it is not
	url          string // that the attempt was made at
}

// start makes an attempt in a goroutine of its own.
func (e *Engine) start(ctx context.Context, ep *endpoint, j job, now time.Time) {
	r := result{endpoint: ep.key, ep: ep, job: j, url: ep.webhook.URL}
	ep.inFlight++
	ep.startedAt = now
	e.inFlight++
	e.busy[ep] = true
	e.sends.Go(func() {
		r.attempt, r.err = e.attempt(ctx, r.url, &j)
		e.mu.Lock()
		e.done = append(e.done, r)
		e.mu.Unlock()
		wait.Notify(e.wake)
	})
}

// attempt sends one delivery. An error means that nothing can be said about the endpoint.
func (e *Engine) attempt(ctx context.Context, webhookURL string, j *job) (Attempt, error) {
	owner, timeout := parley.WebhookSecret(j.Webhook), WebhookTimeout
	if j.Webhook == "" {
		owner, timeout = parley.ChannelSecret(j.Channel), callbackTimeout
	}
	keys, err := e.Secrets.KeysOf(ctx, owner)
	if err != nil {
		return Attempt{}, err
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := Attempt{RequestID: requestOf(&j.event), At: time.Now()}
	if j.Webhook == "" {
		req, err := callbackRequest(within, &j.Delivery, &j.event, keys, a.At)
		a = e.exchange(req, err, cancel, a)
	} else {
		req, err := e.webhookRequest(within, webhookURL, &j.event, keys, a.At)
		a = e.exchange(req, err, cancel, a)
	}
	if a.Code == 0 && ctx.Err() != nil {
		return Attempt{}, ctx.Err() // stopped in the middle: that is not the endpoint's fault
	}
	return a, nil
}

// settle takes back an attempt, decides what follows, and hands it to the recorder.
func (e *Engine) settle(r result, now time.Time) {
	ep := r.ep
	ep.inFlight--
	e.inFlight--
	if ep.inFlight == 0 {
		delete(e.busy, ep)
	}
	if e.endpoints[ep.key] == ep {
		e.active[ep] = true
	}
	if r.err != nil {
		delete(ep.known, r.job.ID)
		if !errors.Is(r.err, context.Canceled) {
			e.trouble(context.Background(), ep, r.err, now)
		}
		return
	}
	ep.broken = false
	wasOpen := ep.isOpen()
	recovered, disable := ep.judge(&r.attempt, now)
	if !wasOpen && ep.isOpen() {
		ep.putBack()
	}
	r.delivery = settled(r.job, r.attempt, now)
	if ep.isWebhook() {
		r.webhook, r.healthy = ep.webhook.ID, ep.failures == 0
		r.failingSince, r.failingFor, r.failures = ep.failingSince, ep.failingFor, ep.failures
		r.hurry, r.disable = recovered, disable
	}
	if disable != "" {
		ep.off = true // at once, and for all when it is recorded
	}
	e.measures.attempted(&r)
	e.report(&r, wasOpen)
	r.job, r.ep = job{}, nil
	e.recorder.push(r)
}

// settled is a delivery after an attempt.
func settled(j job, a Attempt, now time.Time) parley.Delivery {
	d := j.Delivery
	d.MakeRoom()
	d.TriedAt, d.Took, d.Code, d.Problem, d.Answer = a.At, a.Took, a.Code, a.Problem, a.Response
	if a.Succeeded() {
		d.Attempts++
		d.State, d.EndedAt = parley.DeliveryDone, now
		return d
	}
	if j.probe && d.NextAt.After(a.At) {
		return d // it was not due, so it has lost nothing
	}
	d.Attempts++
	wait, ok := nextTry(&d, d.Attempts)
	if !ok {
		d.State, d.EndedAt = parley.DeliveryFailed, now
		return d
	}
	d.NextAt = now.Add(max(wait, a.retryAfter))
	return d
}

// report logs what an operator may have to know. Addresses are told by their host alone, because the
// rest may hold secrets.
func (e *Engine) report(r *result, wasOpen bool) {
	attrs := []any{"delivery", r.delivery.ID, "event", r.delivery.EventID, "host", hostOf(cmp.Or(r.url, r.job.URL)), "request_id", r.attempt.RequestID,
		"code", r.attempt.Code, "took", r.attempt.Took.Round(time.Millisecond).String()}
	if r.webhook != "" {
		attrs = append(attrs, "webhook", r.webhook)
	}
	if r.attempt.Succeeded() {
		e.Log.Debug("delivered", attrs...)
		if r.hurry {
			e.Log.Info("the webhook works again", "webhook", r.webhook, "host", hostOf(r.url))
		}
		return
	}
	attrs = append(attrs, "problem", r.attempt.Problem, "attempts", r.delivery.Attempts)
	if r.delivery.State == parley.DeliveryFailed {
		e.Log.Warn("a delivery failed for good", attrs...)
	} else {
		e.Log.Info("a delivery failed and is tried again", attrs...)
	}
	if r.disable != "" {
		e.Log.Error("the webhook is switched off", "webhook", r.webhook, "host", hostOf(r.url), "reason", r.disable)
	} else if !wasOpen && r.failures >= openAfter {
		e.Log.Warn("the webhook only fails and is tried once a minute", "webhook", r.webhook, "host", hostOf(r.url), "failures", r.failures)
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
