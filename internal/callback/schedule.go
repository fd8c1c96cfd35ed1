package callback

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"parley"
)

// How long to wait after each failed attempt. After the last one the delivery has failed.
var (
	webhookDelays = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	callbackDelays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute,
		10 * time.Minute, time.Hour, 6 * time.Hour}
)

const (
	// jitter spreads the attempts of webhooks, so that an endpoint that was down is not hit by all at
	// the same moments.
	jitter = 0.2

	// WebhookTimeout is for one attempt in all.
	WebhookTimeout  = 15 * time.Second
	callbackTimeout = 10 * time.Second

	// MaxRetryPeriod is longer than the attempts of a delivery to a webhook last. Events must be kept at least so long.
	MaxRetryPeriod = 4 * 24 * time.Hour

	minRetryAfter, maxRetryAfter = time.Second, 24 * time.Hour
)

// nextTry is how long to wait after so many failed attempts; ok is false when there is no further one.
func nextTry(d *parley.Delivery, attempts int) (wait time.Duration, ok bool) {
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

// retryAfter is how long an endpoint asks to be left alone; zero: it does not.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0
	}
	asked := resp.Header.Get("Retry-After")
	if asked == "" {
		return 0
	}
	var wait time.Duration
	if seconds, err := strconv.ParseInt(asked, 10, 64); err == nil {
		wait = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(asked); err == nil {
		wait = at.Sub(now)
	} else {
		return 0
	}
	return min(max(wait, minRetryAfter), maxRetryAfter)
}
