package gateway

import (
	"testing"
	"time"
)

// fakeClock is a clock that can be set while the process runs on.
type fakeClock struct {
	clockGuard
	shows  time.Time
	ran    time.Duration
	agrees bool
}

func newFakeClock(trusted time.Time, shows time.Time) *fakeClock {
	c := &fakeClock{shows: shows}
	c.wall = func() time.Time { return c.shows }
	c.running = func() time.Duration { return c.ran }
	c.confirms = func(time.Time, time.Duration) bool { return c.agrees }
	c.load(trusted)
	return c
}

func (c *fakeClock) pass(d time.Duration) { c.shows, c.ran = c.shows.Add(d), c.ran+d }
func (c *fakeClock) set(d time.Duration)  { c.shows = c.shows.Add(d) }

func (c *fakeClock) wants(t *testing.T, what string, want bool) {
	t.Helper()
	if got, lead, _ := c.check(); got != want {
		t.Errorf("%s: trusted is %t, the clock leads by %s", what, got, lead)
	}
}

var stored = time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)

func TestClockIsTrustedWithinADay(t *testing.T) {
	c := newFakeClock(time.Time{}, stored)
	c.wants(t, "a new database", true)
	c = newFakeClock(stored, stored.Add(maxLead))
	c.wants(t, "a day after the newest stored time", true)
	c = newFakeClock(stored, stored.Add(-30*maxLead))
	c.wants(t, "before it", true)
	c.set(30 * maxLead)
	c.wants(t, "set right after a start in the past", true)
	for range 100 { // nobody writes anything meanwhile
		c.pass(23 * time.Hour)
	}
	c.wants(t, "after months of running", true)
	if (&clockGuard{}).mayTrust() {
		t.Error("it is trusted before the newest stored time was read")
	}
}

func (c *clockGuard) mayTrust() bool {
	trusts, _, _ := c.check()
	return trusts
}

func TestClockThatLeadsIsDoubtedForAnHour(t *testing.T) {
	c := newFakeClock(stored, stored.Add(maxLead+time.Second))
	c.wants(t, "at the start", false)
	c.pass(confirmedAfter - time.Second)
	c.wants(t, "after almost an hour", false)
	if _, due := c.toStore(); due {
		t.Error("a time is stored that is not trusted")
	}
	c.pass(time.Second)
	c.wants(t, "after an hour", true)
	if at, due := c.toStore(); !due || !at.Equal(c.shows) {
		t.Errorf("the time to store is %s, %t", at, due)
	}
	c.set(30 * maxLead)
	c.wants(t, "set ahead while it runs", false)
	c.pass(time.Minute)
	c.set(-30 * maxLead)
	c.wants(t, "set right again", true)
	c.set(30 * maxLead)
	c.wants(t, "set ahead once more", false)
	c.pass(confirmedAfter / 2)
	c.set(30 * maxLead)
	c.wants(t, "and further ahead", false)
	c.pass(confirmedAfter / 2)
	c.wants(t, "after half an hour of that", false)
	c.pass(confirmedAfter / 2)
	c.wants(t, "after an hour of that", true)
}

func TestNetworkConfirmsTheClock(t *testing.T) {
	c := newFakeClock(stored, stored.Add(3*maxLead))
	c.wants(t, "before the network reported its time", false)
	c.agrees = true
	c.wants(t, "when the network agrees", true)
	c.agrees = false
	c.pass(time.Hour)
	c.wants(t, "from then on", true)
}

func TestStepsOfATrustedClock(t *testing.T) {
	leads := func(c *fakeClock, what string, want time.Duration) {
		t.Helper()
		c.wants(t, what, true)
		if got := c.mayLead(); got != want {
			t.Errorf("%s: the clock may lead by %s, want %s", what, got, want)
		}
	}
	c := newFakeClock(stored, stored.Add(storeTrustedEvery))
	leads(c, "a restart", 0)
	c.pass(time.Hour)
	leads(c, "an hour", 0)
	c.set(23 * time.Hour)
	leads(c, "set ahead", 23*time.Hour)
	c.pass(23 * time.Hour)
	leads(c, "for most of a day", 23*time.Hour)
	c.pass(2 * time.Hour)
	leads(c, "after a day", 0)
	c.set(-23 * time.Hour)
	leads(c, "set right", 0)
	c.pass(25 * time.Hour)
	c.set(23 * time.Hour)
	leads(c, "set ahead to a time that was trusted", 23*time.Hour)
	c.set(-23 * time.Hour)
	leads(c, "set right again", 0)
	for range 5 { // a machine that sleeps
		c.pass(time.Hour)
		c.set(10 * time.Hour)
		c.check()
	}
	leads(c, "after many steps", maxLead)
	leads(newFakeClock(stored, stored.Add(20*time.Hour)), "a start", 20*time.Hour)
}
