package whatsapp

import (
	"math/rand/v2"
	"time"
)

const (
	// lossBurst is how many connections in a row may be lost after a login and made again at once.
	lossBurst = 16
	// lossRefill is after how long one more may be.
	lossRefill = 10 * time.Second
	// lossJitter spreads the channels that lost their connections together.
	lossJitter = 50 * time.Millisecond
	// firstBackoff is how long to wait after the first dial or login that failed. It doubles from there.
	firstBackoff = time.Second
	// queuedBackoff is the longest wait while messages wait for the connection, and idleBackoff otherwise.
	queuedBackoff = 10 * time.Second
	idleBackoff   = time.Minute
)

// reconnects decides how long to wait before the next connection. A connection that was logged in and is lost
// is made again at once; a token bucket keeps a server that ends every connection from being dialled in a
// loop. Only dials and logins that fail back off.
type reconnects struct {
	now    func() time.Time
	random func(time.Duration) time.Duration // uniform below its argument

	used     int       // tokens that are missing in the bucket
	since    time.Time // when the refill of the next one began
	failures int       // dials and logins since the last success
}

func newReconnects() *reconnects { return &reconnects{now: time.Now, random: rand.N[time.Duration]} }

// lost returns the wait after the loss of a connection that was logged in.
func (r *reconnects) lost() time.Duration {
	r.failures = 0
	now := r.now()
	if r.used == 0 {
		r.since = now
	}
	refilled := min(int(now.Sub(r.since)/lossRefill), r.used)
	r.used -= refilled
	r.since = r.since.Add(time.Duration(refilled) * lossRefill)
	if r.used == 0 {
		r.since = now
	}
	wait := r.random(lossJitter)
	if r.used == lossBurst { // empty: wait for the next token, and use that
		wait += r.since.Add(lossRefill).Sub(now)
		r.since = r.since.Add(lossRefill)
		return wait
	}
	r.used++
	return wait
}

// failed returns the wait after a dial or a login that failed.
func (r *reconnects) failed() time.Duration {
	most := min(firstBackoff<<min(r.failures, 6), idleBackoff)
	r.failures++
	return most/2 + r.random(most/2)
}

// backoffLeft is how much of a wait is left after some of it passed.
func backoffLeft(wait, passed time.Duration, queued bool) time.Duration {
	if queued {
		wait = min(wait, queuedBackoff)
	}
	return wait - passed
}
