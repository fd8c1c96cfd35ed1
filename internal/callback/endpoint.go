package callback

import (
	"time"

	"parley"
)

const (
	perEndpoint = 4  // attempts under way at one endpoint
	perFailing  = 1  // at one that fails: it is not helped by more
	inAll       = 64 // attempts under way in all
	// half of them may be at endpoints that are slow or fail; and only while less than half are under way
	// does an endpoint get more than one. So there is room for those that work, however many do not.
	half   = inAll / 2
	isSlow = 2 * time.Second // an attempt that takes longer is slow

	// openAfter is how many failures in a row make a webhook count as broken. Then it gets one attempt
	// in probeEvery, until one works.
	openAfter  = 10
	probeEvery = time.Minute
	// giveUpAfter is how long a webhook may only fail before it is switched off. Between two failures of one process
	// time counts up to longestGap, which no retry waits for longer: after that, nothing was tried.
	giveUpAfter = 120 * time.Hour
	longestGap  = 30 * time.Hour
	// maxPause is how long a whole webhook is left alone because it asked for that. The delivery that
	// it answered so waits as long as it was asked to.
	maxPause = time.Minute

	readAtOnce = 64 // deliveries that are read ahead for one endpoint
)

// endpoint is what the dispatcher knows of a webhook, or of a server that callbacks go to.
type endpoint struct {
	key     parley.Endpoint
	webhook parley.Webhook // of a webhook; else zero
	off     bool           // the webhook is disabled or gone

	ready     []job
	known     map[parley.DeliveryID]bool // ready, under way, or not recorded yet
	inFlight  int
	startedAt time.Time // the last attempt
	look      bool      // the store may have something due
	dueAt     time.Time // when the next delivery falls due; zero: none is known to
	pause     time.Time // until when nothing is sent
	slow      bool      // the last attempt was
	broken    bool      // it could not be served, for a reason of our own

	failures     int // in a row
	failingSince time.Time
	failingFor   time.Duration // of the time since then, what counts towards switching it off
	failedAt     time.Time     // the last failure in this process; zero: none since the last success
	probes       int
	probeAt      time.Time // when the next probe is due, while the webhook counts as broken
}

// job is a delivery with what it tells.
type job struct {
	parley.Delivery
	event parley.Event
	probe bool // an attempt at a webhook that counts as broken
}

func newEndpoint(key parley.Endpoint) *endpoint {
	return &endpoint{key: key, known: map[parley.DeliveryID]bool{}, look: true}
}

func (ep *endpoint) isWebhook() bool { return ep.webhook.ID != "" }

// isOpen reports whether the endpoint counts as broken. Callbacks go to addresses that differ from
// request to request: there the failures of some say little about the others.
func (ep *endpoint) isOpen() bool { return ep.isWebhook() && ep.failures >= openAfter }

// isSuspect reports whether attempts may be expected to take long or to be in vain.
func (ep *endpoint) isSuspect(now time.Time) bool {
	return ep.slow || ep.failures > 0 || ep.inFlight > 0 && now.Sub(ep.startedAt) > isSlow
}

// limit is how many attempts may be under way.
func (ep *endpoint) limit() int {
	if ep.isWebhook() && ep.failures > 0 {
		return perFailing
	}
	return perEndpoint
}

// isIdle reports whether there is nothing to remember of the endpoint.
func (ep *endpoint) isIdle(now time.Time) bool {
	return !ep.isWebhook() && !ep.look && len(ep.known) == 0 && ep.dueAt.IsZero() && !now.Before(ep.pause)
}

// waitsFor is when the endpoint may have something to send if nothing happens before; zero: never.
func (ep *endpoint) waitsFor(now time.Time) time.Time {
	at := ep.dueAt
	switch {
	case ep.off || ep.inFlight >= ep.limit():
		return time.Time{} // what comes back wakes it
	case ep.isOpen():
		return ep.probeAt
	case ep.look || len(ep.ready) > 0:
		at = now
	}
	if !at.IsZero() && at.Before(ep.pause) {
		return ep.pause
	}
	return at
}

// judge takes an attempt into account and returns what follows for the webhook.
func (ep *endpoint) judge(a *Attempt, now time.Time) (recovered bool, disable string) {
	ep.slow = a.Took > isSlow
	if a.Succeeded() {
		recovered = ep.isOpen()
		ep.pause = time.Time{}
		ep.noFailures()
		return recovered, ""
	}
	ep.fail(a.At)
	ep.probeAt = now.Add(probeEvery)
	if !ep.isWebhook() {
		return false, ""
	}
	if wait := min(a.retryAfter, maxPause); wait > 0 {
		ep.pause = now.Add(wait)
	}
	switch {
	case a.Code == 410:
		disable = "The endpoint answered 410 Gone: it wants to be told no more."
	case ep.failingFor >= giveUpAfter:
		disable = "Every attempt failed for 120 hours. The last one: " + a.Problem
	}
	return false, disable
}

// fail counts a failed attempt. The time since the one before counts towards switching the webhook off if this
// process made both: while no process ran, nothing was tried.
func (ep *endpoint) fail(at time.Time) {
	ep.failures++
	if ep.failingSince.IsZero() {
		ep.failingSince = at
	}
	if gap := at.Sub(ep.failedAt); !ep.failedAt.IsZero() && gap > 0 && gap <= longestGap {
		ep.failingFor += gap
	}
	ep.failedAt = at
}

func (ep *endpoint) noFailures() {
	ep.failures, ep.failingSince, ep.failingFor, ep.failedAt = 0, time.Time{}, 0, time.Time{}
}

// forgive forgets all failures: the webhook was enabled again, or its URL changed.
func (ep *endpoint) forgive() {
	ep.noFailures()
	ep.slow, ep.pause, ep.look = false, time.Time{}, true
}

// putBack drops what was read ahead; it is still in the store.
func (ep *endpoint) putBack() {
	for _, j := range ep.ready {
		delete(ep.known, j.ID)
	}
	ep.ready, ep.look = nil, true
}
