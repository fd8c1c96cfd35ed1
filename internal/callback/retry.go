package callback

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"parley"
	"parley/internal/store"
)

// The delays after each failed attempt. After the last one the delivery fails.
var (
	webhookDelays = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	callbackDelays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute,
		10 * time.Minute, time.Hour, 6 * time.Hour}
)

const (
	// jitter spreads the attempts of webhooks, so that an endpoint that was down does not get all at once.
	jitter = 0.2

	// WebhookTimeout bounds one attempt.
	WebhookTimeout  = 15 * time.Second
	callbackTimeout = 10 * time.Second

	// MaxRetryPeriod is longer than all attempts of a delivery to a webhook. Events must be stored at least so long.
	MaxRetryPeriod = 4 * 24 * time.Hour

	minRetryAfter, maxRetryAfter = time.Second, 24 * time.Hour
)

// nextDelay is the delay after a number of failed attempts; ok is false after the last one.
func nextDelay(d *parley.Delivery, attempts int) (wait time.Duration, ok bool) {
	delays := webhookDelays
	if d.Webhook == "" {
		delays = callbackDelays
	}
	if attempts > len(delays) {
		return 0, false
	}
	wait = delays[attempts-1]
	if d.Webhook != "" {
		wait += time.Duration((2*rand.Float64() - 1) * jitter * float64(wait))
	}
	return wait, true
}

// retryAfter is the pause that an endpoint requests; zero: none.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0
	}
	header := resp.Header.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	} else {
		return 0
	}
	return min(max(wait, minRetryAfter), maxRetryAfter)
}

// ErrFinished says that a delivery does not wait: it can be replayed, not retried.
var ErrFinished = parley.Errorf(parley.BadRequest, "The delivery is finished: it does not wait for a retry. Replay it instead.")

var ErrDisabled = parley.Errorf(parley.BadRequest, "The webhook is switched off. Enable it to retry its waiting deliveries.")

// Retry attempts a waiting delivery now, and returns it as it was before.
func (e *Engine) Retry(ctx context.Context, id parley.DeliveryID) (d parley.Delivery, err error) {
	err = e.config.Store.Tx(ctx, func(tx *store.Tx) error {
		found, _, err := tx.Deliveries(ctx, parley.DeliveryQuery{IDs: []parley.DeliveryID{id}}, parley.Page{Limit: 1})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return parley.ErrNotFound
		}
		if d = found[0]; d.State != parley.DeliveryWaiting {
			return ErrFinished
		}
		if d.Webhook != "" {
			if err := checkEnabled(ctx, tx, d.Webhook); err != nil {
				return err
			}
		}
		d.NextAt = time.Now()
		return tx.RetryDelivery(ctx, d, d.NextAt)
	})
	if err == nil {
		e.inRun(func(time.Time) { e.endpoint(d.Endpoint()).retry() })
	}
	return d, err
}

// RetryWebhook attempts all waiting deliveries of a webhook now, and returns their number.
func (e *Engine) RetryWebhook(ctx context.Context, id parley.WebhookID) (waiting int64, err error) {
	err = e.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if err := checkEnabled(ctx, tx, id); err != nil {
			return err
		}
		if waiting, err = tx.CountWaiting(ctx, id); err != nil {
			return err
		}
		return tx.RetryDeliveries(ctx, id, time.Now())
	})
	if err == nil {
		e.inRun(func(time.Time) { e.endpoint(parley.Endpoint(id)).retry() })
	}
	return waiting, err
}

func checkEnabled(ctx context.Context, tx *store.Tx, id parley.WebhookID) error {
	w, err := tx.Webhook(ctx, id)
	if err == nil && !w.IsEnabled() {
		err = ErrDisabled
	}
	return err
}
