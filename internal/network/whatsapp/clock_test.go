package whatsapp

import (
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestClock holds that a channel sees how far the clock of this machine is off, at every connection.
func TestClock(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	for _, ahead := range []time.Duration{0, 7 * time.Second, -9 * time.Second, time.Hour, -48 * time.Hour} {
		w.SetClock(-ahead)
		must(t, s.Close())
		var in *inbox
		s, in = w.start()
		in.status(parley.ChannelWorking)
		e, ok := w.driver.Evidence(code)
		// A second is lost where times are cut off, and what the login took.
		if !ok || e.ClockSeen.IsZero() || e.ClockAhead > ahead+time.Second || e.ClockAhead < ahead-10*time.Second || ahead <= 0 &&
			e.ClockAhead < ahead-time.Second {
			t.Errorf("a clock that is %s ahead is seen as %s (%v)", ahead, e.ClockAhead, ok)
		}
	}
	w.sent(s, w.text(friendID, "still so"))
	if e, _ := w.driver.Evidence(code); e.ClockAhead > -47*time.Hour {
		t.Errorf("a confirmation changed it to %s", e.ClockAhead)
	}
	if e, _ := w.driver.Evidence(code); time.Until(e.NetworkTime) < 47*time.Hour {
		t.Errorf("the network time is %s", e.NetworkTime)
	}
	w.SetClock(0) // as if somebody put it right, little by little
	w.sent(s, w.text(friendID, "put right"))
	if e, _ := w.driver.Evidence(code); e.ClockAhead.Abs() > 10*time.Second {
		t.Errorf("after it was put right it is seen as %s", e.ClockAhead)
	}
}

// TestClockNotWorse holds that the time of a confirmation never makes a clock look worse, only better.
func TestClockNotWorse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.improve(time.Now())
		if _, seen := c.aheadBy(); !seen.IsZero() {
			t.Error("it is known without a connection")
		}
		c.ahead, c.seen = 7*time.Second, time.Now()
		c.improve(time.Now().Add(-time.Hour))
		c.improve(time.Time{})
		if ahead, seen := c.aheadBy(); ahead != 7*time.Second || seen.IsZero() {
			t.Errorf("it is %s ahead, seen at %s", ahead, seen)
		}
		c.improve(time.Now().Add(-2 * time.Second))
		if ahead, _ := c.aheadBy(); ahead != 2*time.Second {
			t.Errorf("it is %s ahead", ahead)
		}
	})
}
