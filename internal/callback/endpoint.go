package callback

import (
	"time"

	"parley"
)

const (
	// DefaultAtOnce is how many attempts there may be at a time, unless Config says so. Half of them may be at endpoints that are slow or
	// fail. An endpoint gets more than one only while fewer than that are in flight. So there is room for endpoints that work.
	DefaultAtOnce  = 64
	maxPerEndpoint = 4
	maxPerFailing  = 1
	slowAfter      = 2 * time.Second

	// brokenAfter failures in a row make a webhook broken. Then it gets one attempt in probeEvery until one succeeds.
	brokenAfter = 10
	probeEvery  = time.Minute
	// disableAfter is how long a webhook may fail before it is disabled. A gap between two failures counts only up to
	// maxFailureGap, which is longer than any retry delay: after that, nothing was attempted.
	disableAfter  = 120 * time.Hour
	maxFailureGap = 30 * time.Hour
	// maxPause is how long Retry-After pauses a whole webhook. The delivery itself waits as long as requested.
	maxPause = time.Minute

	readAheadSize = 64 // deliveries of one endpoint
)

// endpoint is the dispatcher's state of a webhook, or of a server that receives callbacks.
type endpoint struct {
	key     parley.Endpoint
	webhook parley.Webhook // with its current failures; for callbacks nothing but these
	off     bool           // the webhook is disabled or deleted

	ready       []job
	known       map[parley.DeliveryID]bool // ready, in flight, or not stored yet
	inFlight    int
	startedAt   time.Time // of the last attempt
	mayBeDue    bool      // the store may have a due delivery
	dueAt       time.Time // of the next delivery; zero: unknown
	pausedUntil time.Time
	slow        bool // the last attempt was
	errorLogged bool // an internal error

	failedAt time.Time // last failure in this process; zero: none since the last success
	failures int       // in a row, since somebody last requested a retry
	probes   int
	probeAt  time.Time // of the next probe, while broken
}

type job struct {
	parley.Delivery
	event parley.Event
	probe bool // an attempt at a broken webhook
}

func (ep *endpoint) isWebhook() bool { return ep.webhook.ID != "" }

// isBroken never applies to callbacks: their addresses differ, so failures of one say little about the others.
func (ep *endpoint) isBroken() bool { return ep.isWebhook() && ep.failures >= brokenAfter }

// isSuspect reports whether attempts will probably be slow or fail.
func (ep *endpoint) isSuspect(now time.Time) bool {
	return ep.slow || ep.failures > 0 || ep.inFlight > 0 && now.Sub(ep.startedAt) > slowAfter
}

func (ep *endpoint) limit() int {
	if ep.isWebhook() && ep.failures > 0 {
		return maxPerFailing
	}
	return maxPerEndpoint
}

func (ep *endpoint) isIdle(now time.Time) bool {
	return !ep.isWebhook() && !ep.mayBeDue && len(ep.known) == 0 && ep.dueAt.IsZero() && !now.Before(ep.pausedUntil)
}

// nextCheck is when the endpoint may have something to send without further input; zero: never.
func (ep *endpoint) nextCheck(now time.Time) time.Time {
	at := ep.dueAt
	switch {
	case ep.off || ep.inFlight >= ep.limit():
		return time.Time{} // a returning attempt wakes it
	case ep.isBroken():
		return ep.probeAt
	case ep.mayBeDue || len(ep.ready) > 0:
		at = now
	}
	if !at.IsZero() && at.Before(ep.pausedUntil) {
		return ep.pausedUntil
	}
	return at
}

// update applies an attempt. It reports whether the webhook works again, and why it must be disabled, if so.
func (ep *endpoint) update(a *Attempt, now time.Time) (recovered bool, disable string) {
	ep.slow = a.Took > slowAfter
	if a.Succeeded() {
		recovered = ep.isBroken()
		ep.pausedUntil = time.Time{}
		ep.clearFailures()
		return recovered, ""
	}
	ep.fail(a.At)
	ep.probeAt = now.Add(probeEvery)
	if !ep.isWebhook() {
		return false, ""
	}
	if wait := min(a.retryAfter, maxPause); wait > 0 {
		ep.pausedUntil = now.Add(wait)
	}
	switch {
	case a.Code == 410:
		disable = "The endpoint responded 410 Gone: it wants no more events."
	case ep.webhook.FailingFor >= disableAfter:
		disable = "Every attempt failed for 120 hours. The last one: " + a.Problem
	}
	return false, disable
}

// fail counts a failure. The time since the previous one counts only if this process saw both: without a process,
// nothing was attempted.
func (ep *endpoint) fail(at time.Time) {
	ep.failures++
	ep.webhook.Failures++
	if ep.webhook.FailingSince.IsZero() {
		ep.webhook.FailingSince = at
	}
	if gap := at.Sub(ep.failedAt); !ep.failedAt.IsZero() && gap > 0 && gap <= maxFailureGap {
		ep.webhook.FailingFor += gap
	}
	ep.failedAt = at
}

func (ep *endpoint) clearFailures() {
	ep.webhook.ClearFailures()
	ep.failures, ep.failedAt = 0, time.Time{}
}

// restart clears all failures: the webhook was enabled, or its URL changed.
func (ep *endpoint) restart() {
	ep.clearFailures()
	ep.retry()
}

// retry attempts everything at full speed again. Whether that helps is not known yet, so what is shown of the failures stays
// until an attempt succeeds.
func (ep *endpoint) retry() {
	ep.failures = 0
	ep.slow, ep.pausedUntil, ep.mayBeDue = false, time.Time{}, true
}

// dropReady drops deliveries that were read ahead; they are still in the store.
func (ep *endpoint) dropReady() {
	for _, j := range ep.ready {
		delete(ep.known, j.ID)
	}
	ep.ready, ep.mayBeDue = nil, true
}
