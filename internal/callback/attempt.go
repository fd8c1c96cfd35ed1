package callback

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/safehttp"
)

const (
	// MaxResponse is how much of a response is read, so that its connection can be reused.
	MaxResponse = 64 << 10
	// maxStoredResponse is how much of the response to a failed attempt is stored.
	maxStoredResponse = 1 << 10
	// drainTime is how long the rest of a response may take.
	drainTime = time.Second
)

type Attempt struct {
	RequestID string // sent as X-Request-Id
	At        time.Time
	Took      time.Duration
	Code      int    // HTTP status; zero: there was no response
	Problem   string // why it failed: a code of safehttp, a colon and a sentence; empty: it succeeded
	Response  string // the beginning of the response to a failed attempt

	retryAfter time.Duration // that the endpoint requested
}

func (a *Attempt) Succeeded() bool { return a.Problem == "" }

// attempt sends one delivery. An error is an internal one and says nothing about the endpoint.
func (e *Engine) attempt(ctx context.Context, w *parley.Webhook, j *job) (Attempt, error) {
	client, timeout := e.config.Client, WebhookTimeout
	if j.Webhook == "" {
		client, timeout = e.config.Callers, callbackTimeout
	}
	keys, err := e.Secrets.Keys(ctx, secretOwner(&j.Delivery))
	if err != nil {
		return Attempt{}, err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a := Attempt{RequestID: toRequestID(&j.event), At: time.Now()}
	req, err := e.newRequest(limited, w, &j.Delivery, &j.event, keys, a.At)
	a = e.exchange(client, req, err, cancel, a)
	if a.Code == 0 && ctx.Err() != nil {
		return Attempt{}, ctx.Err() // the engine stops; not the endpoint's fault
	}
	return a, nil
}

// TestEvent is the type of the event that SendTest sends. It is in no log and on no list.
const TestEvent parley.EventType = "webhook.test"

// SendTest sends a test event to a webhook once, enabled or not. It does not affect the webhook's health.
func (e *Engine) SendTest(ctx context.Context, w parley.Webhook) (Attempt, error) {
	data, err := json.Marshal(map[string]any{"webhook_id": w.ID, "message": "This is a test of the webhook."})
	if err != nil {
		return Attempt{}, err
	}
	now := time.Now()
	event := &parley.Event{ID: parley.NewEventID(now, rand.Uint32(), 0), Type: TestEvent, Channel: w.Channel, At: now, Data: data}
	return e.SendOnce(ctx, w, parley.WebhookSecret(w.ID), event)
}

// SendOnce sends an event that is in no log to an address, signed with the secret of an owner, with the checks of every webhook.
func (e *Engine) SendOnce(ctx context.Context, w parley.Webhook, owner parley.SecretOwner, event *parley.Event) (Attempt, error) {
	keys, err := e.Secrets.Keys(ctx, owner)
	if err != nil {
		return Attempt{}, err
	}
	a := Attempt{RequestID: newRequestID(), At: time.Now()}
	limited, cancel := context.WithTimeout(ctx, WebhookTimeout)
	defer cancel()
	req, err := e.webhookRequest(limited, &w, event, keys, a.At)
	return e.exchange(e.config.Client, req, err, cancel, a), nil
}

// exchange sends a request and evaluates the response. err is the error of making the request. cancel aborts reading the
// rest of the response.
func (e *Engine) exchange(client HTTPClient, req *http.Request, err error, cancel func(), begun Attempt) (a Attempt) {
	a = begun
	defer func() { a.Took = time.Since(a.At) }()
	if err != nil {
		a.Problem = problem(err)
		return a
	}
	req.Header.Set("User-Agent", "parley/"+e.config.Version)
	req.Header.Set("X-Request-Id", a.RequestID)
	resp, err := client.Do(req)
	if err != nil {
		a.Problem = problem(err)
		return a
	}
	defer resp.Body.Close()
	defer time.AfterFunc(drainTime, cancel).Stop()
	a.Code = resp.StatusCode
	if a.Code >= 200 && a.Code <= 299 {
		io.Copy(io.Discard, io.LimitReader(resp.Body, MaxResponse)) // an error costs the connection and nothing else
		return a
	}
	a.Problem = fmt.Sprintf("%s: The server answered %s.", safehttp.HTTPStatus, statusText(a.Code))
	a.Response = beginning(resp.Body)
	a.retryAfter = retryAfter(resp, time.Now())
	return a
}

func statusText(code int) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
	if code >= 300 && code <= 399 {
		text += ", and redirects are not followed"
	}
	return text
}

func beginning(body io.Reader) string {
	read, _ := io.ReadAll(io.LimitReader(body, maxStoredResponse)) // on an error, store what was read
	io.Copy(io.Discard, io.LimitReader(body, MaxResponse-maxStoredResponse))
	return strings.Map(func(r rune) rune {
		if r == 0 || r == utf8.RuneError {
			return -1
		}
		return r
	}, string(read))
}

func problem(err error) string {
	if p, ok := errors.AsType[*safehttp.Problem](err); ok {
		return string(p.Code) + ": " + p.Sentence
	}
	if bad, ok := errors.AsType[*safehttp.BadURL](err); ok {
		return "bad_url: " + bad.Sentence
	}
	return "internal: The request could not be made."
}

// finishAttempt updates the endpoint and the delivery. err is internal: nothing was sent.
func (e *Engine) finishAttempt(ep *endpoint, j job, address string, a Attempt, err error, now time.Time) {
	ep.inFlight--
	e.inFlight--
	if ep.inFlight == 0 {
		delete(e.busy, ep)
	}
	if e.endpoints[ep.key] == ep {
		e.active[ep] = true
	}
	if err != nil {
		delete(ep.known, j.ID)
		if !errors.Is(err, context.Canceled) {
			e.pauseAfterError(context.Background(), ep, err, now)
		}
		return
	}
	ep.errorLogged = false
	wasBroken := ep.isBroken()
	recovered, disable := ep.update(&a, now)
	broke := !wasBroken && ep.isBroken()
	if broke {
		ep.dropReady()
	}
	if disable != "" {
		ep.off = true // at once; the store follows
	}
	r := result{endpoint: ep.key, delivery: afterAttempt(j, a, now), attempts: j.Attempts, webhook: ep.webhook, retryAll: recovered,
		disable: disable, url: address}
	e.metrics.attempted(&j.Delivery, &r.delivery, &a)
	e.logAttempt(&r, &a, broke)
	e.results.add(r)
}

func afterAttempt(j job, a Attempt, now time.Time) parley.Delivery {
	d := j.Delivery
	d.SaveAttempt()
	d.TriedAt, d.Took, d.Code, d.Problem, d.Response = a.At, a.Took, a.Code, a.Problem, a.Response
	if a.Succeeded() {
		d.Attempts++
		d.State, d.EndedAt = parley.DeliveryDone, now
		return d
	}
	if j.probe && d.NextAt.After(a.At) {
		return d // it was not due, so this attempt does not count
	}
	d.Attempts++
	wait, ok := nextDelay(&d, d.Attempts)
	if !ok {
		d.State, d.EndedAt = parley.DeliveryFailed, now
		return d
	}
	d.NextAt = now.Add(max(wait, a.retryAfter))
	return d
}

func (e *Engine) logAttempt(r *result, a *Attempt, broke bool) {
	host, webhook := toHost(r.url), r.webhook.ID
	attrs := []any{"delivery", r.delivery.ID, "event", r.delivery.EventID, "host", cmp.Or(host, toHost(r.delivery.URL)),
		"request_id", a.RequestID, "code", a.Code, "took", a.Took.Round(time.Millisecond).String()}
	if webhook != "" {
		attrs = append(attrs, "webhook", webhook)
	}
	if a.Succeeded() {
		e.config.Log.Debug("delivered", attrs...)
		if r.retryAll {
			e.config.Log.Info("the webhook works again", "webhook", webhook, "host", host)
		}
		return
	}
	attrs = append(attrs, "problem", a.Problem, "attempts", r.delivery.Attempts)
	if r.delivery.State == parley.DeliveryFailed {
		e.config.Log.Warn("a delivery failed", attrs...)
	} else {
		e.config.Log.Info("an attempt failed; the delivery is retried", attrs...)
	}
	if r.disable != "" {
		e.config.Log.Error("the webhook is switched off", "webhook", webhook, "host", host, "reason", r.disable)
	} else if broke {
		e.config.Log.Warn("the webhook only fails and is tried once a minute", "webhook", webhook, "host", host, "failures", r.webhook.Failures)
	}
}

func toHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
