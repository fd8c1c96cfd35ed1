package gateway

import (
	"context"
	"sync"
	"time"

	"parley/internal/store"
)

// ClockAhead is how far the clock of this machine is ahead of a network's, by the latest observation; false: there is none.
func (g *Gateway) ClockAhead() (ahead time.Duration, known bool) {
	var last time.Time
	for _, c := range g.List().Observed {
		if e, ok := g.Evidence(c.Code); ok && e.ClockSeen.After(last) {
			last, ahead = e.ClockSeen, e.ClockAhead
		}
	}
	return ahead, !last.IsZero()
}

const (
	// maxLead is how far the clock may be ahead of the newest trusted time.
	maxLead = 24 * time.Hour
	// confirmedAfter is how long a process must run with a doubted clock before it trusts it.
	confirmedAfter = time.Hour
	// maxWeeklyLead is the largest lead that a network can confirm whose clock is known modulo one week.
	maxWeeklyLead = 7 * 24 * time.Hour / 2
	// clockTolerance is how far two clocks may differ that agree.
	clockTolerance = 5 * time.Minute
	// storeTrustedEvery is how often the trusted time is stored.
	storeTrustedEvery = 10 * time.Minute
	// leastStep is how far a clock that was set moves at least. A restart looks like a smaller step.
	leastStep = storeTrustedEvery + clockTolerance
)

// clockGuard decides whether the clock of this machine may be used to erase or expire by age. A clock that is weeks ahead
// for a moment, as after a boot, must not erase everything. So a clock more than maxLead ahead of the newest trusted time
// is doubted until a network or an hour of running confirms it.
type clockGuard struct {
	wall    func() time.Time     // the clock of the machine
	running func() time.Duration // how long this process runs, by the monotonic clock
	// confirms reports whether a network confirms the clock and its lead.
	confirms func(now time.Time, lead time.Duration) bool

	mu       sync.Mutex
	loaded   bool // until then nothing is trusted
	trusted  moment
	stored   time.Time // the trusted time in the store
	doubting bool
	doubted  moment // when the doubt began

	last    moment        // what the clock showed at the latest check
	ahead   time.Duration // how far it may have been set ahead in the last maxLead of running, by steps that were trusted
	stepped time.Duration // how long the process had run at the latest step
}

// moment is a time on the clock, and how long the process had run by then.
type moment struct {
	at  time.Time
	ran time.Duration
}

// until is the time on a correct clock after the process ran that long.
func (m moment) until(ran time.Duration) time.Time { return m.at.Add(ran - m.ran) }

// load sets the newest trusted time in the store; zero: the database is new, and there is nothing to erase.
func (c *clockGuard) load(stored time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded, c.stored, c.trusted = true, stored, moment{stored, c.running()}
	if stored.IsZero() {
		c.trusted.at = c.wall().Round(0)
	}
	c.last = c.trusted
}

// check returns whether the clock is trusted, how far it leads, and whether trust changed with this call.
func (c *clockGuard) check() (trusts bool, lead time.Duration, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		return false, 0, false
	}
	now, ran := c.wall().Round(0), c.running() // Round removes the monotonic reading
	c.noteStep(now, ran)
	lead = now.Sub(c.trusted.until(ran))
	was := c.doubting
	c.doubting = lead > maxLead && !c.confirmed(now, ran, lead)
	if !c.doubting {
		if expected := c.trusted.until(ran); now.Before(expected) { // it never moves back
			now = expected
		}
		c.trusted = moment{now, ran}
	}
	return !c.doubting, lead, was != c.doubting
}

// noteStep adds up by how much the clock moved ahead of the time that passed. A longer step than maxLead is doubted and then confirmed,
// so it does not count. It is called with the lock held.
func (c *clockGuard) noteStep(now time.Time, ran time.Duration) {
	step := now.Sub(c.last.until(ran))
	if step.Abs() > leastStep && step <= maxLead {
		c.ahead, c.stepped = min(max(0, c.ahead+step), maxLead), ran
	}
	if ran-c.stepped > maxLead {
		c.ahead = 0
	}
	c.last = moment{now, ran}
}

// mayLead is how far the clock may be ahead of what it showed within the last maxLead.
func (c *clockGuard) mayLead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// KeyExpired reports whether an idempotency key from a time has expired now.
func (g *Gateway) KeyExpired(from, now time.Time) bool {
	age := now.Sub(from)
	return age >= IdempotencyRetention && g.ClockTrusted() && age-g.clock.mayLead() >= IdempotencyRetention
}

// confirmed reports whether a clock that leads is right. It is called with the lock held.
func (c *clockGuard) confirmed(now time.Time, ran, lead time.Duration) bool {
	if !c.doubting || now.Sub(c.doubted.until(ran)).Abs() > maxLead { // doubt begins, or the clock was set meanwhile
		c.doubted = moment{now, ran}
	}
	return ran-c.doubted.ran >= confirmedAfter || c.confirms(now, lead)
}

func (c *clockGuard) toStore() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.loaded && !c.doubting && c.trusted.at.Sub(c.stored) >= storeTrustedEvery
	return c.trusted.at, due
}

// ClockTrusted reports whether data may be erased or expired by age now.
func (g *Gateway) ClockTrusted() bool {
	trusts, lead, changed := g.clock.check()
	if changed && !trusts {
		g.config.Log.Warn("the clock is more than a day ahead of the newest stored time: nothing is erased or expires by age "+
			"until the network's clock or one hour of running confirms it", "ahead", lead.Round(time.Second).String())
	}
	if changed && trusts {
		g.config.Log.Info("the clock is trusted again: erasing by age goes on")
	}
	return trusts
}

func (g *Gateway) networkConfirms(now time.Time, lead time.Duration) bool {
	for _, c := range g.List().Observed {
		e, ok := g.Evidence(c.Code)
		if !ok {
			continue
		}
		if !e.NetworkTime.IsZero() && now.Sub(e.NetworkTime) <= maxLead {
			return true
		}
		if !e.ClockSeen.IsZero() && e.ClockAhead.Abs() <= clockTolerance && lead < maxWeeklyLead {
			return true
		}
	}
	return false
}

func (g *Gateway) storeClock(ctx context.Context) {
	at, due := g.clock.toStore()
	if !due {
		return
	}
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetTrustedTime(ctx, at) })
	if err == nil {
		g.clock.mu.Lock()
		g.clock.stored = at
		g.clock.mu.Unlock()
	} else if ctx.Err() == nil {
		g.config.Log.Error("store the trusted time", "error", err)
	}
}
