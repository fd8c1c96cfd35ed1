package whatsapp

import (
	"context"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// fakeReconnects is a policy on a clock that the test moves, with the longest jitter.
func fakeReconnects() (*reconnects, func(time.Duration)) {
	now := time.Unix(1_700_000_000, 0)
	r := &reconnects{now: func() time.Time { return now }, random: func(n time.Duration) time.Duration { return n }}
	return r, func(d time.Duration) { now = now.Add(d) }
}

// TestLossesReconnectAtOnce loses connections that were logged in: the first ones come back at once, and no
// more than one in ten seconds after that.
func TestLossesReconnectAtOnce(t *testing.T) {
	r, pass := fakeReconnects()
	for i := range lossBurst {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d waits %s", i+1, wait)
		}
	}
	pass(4 * time.Second)
	if wait := r.lost(); wait != lossRefill-4*time.Second+lossJitter {
		t.Errorf("beyond the bucket a loss waits %s", wait)
	}
	pass(6*time.Second + lossJitter)
	if wait := r.lost(); wait != lossRefill {
		t.Errorf("the next one waits %s", wait)
	}
	pass(10*time.Second + 3*lossRefill)
	for i := range 3 {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d after a quiet time waits %s", i+1, wait)
		}
	}
	if wait := r.lost(); wait <= lossJitter {
		t.Errorf("more came back at once than were refilled")
	}
	pass(time.Hour)
	for i := range lossBurst {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d after an hour waits %s", i+1, wait)
		}
	}
	if wait := r.lost(); wait <= lossJitter {
		t.Errorf("the bucket holds more than %d", lossBurst)
	}
}

// TestFailuresBackOff doubles the wait after failed dials up to a minute, and begins again after a login.
func TestFailuresBackOff(t *testing.T) {
	r, _ := fakeReconnects()
	for i, most := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if wait := r.failed(); wait != most*time.Second {
			t.Errorf("failure %d waits %s, want %d s", i+1, wait, most)
		}
	}
	r.lost()
	if wait := r.failed(); wait != time.Second {
		t.Errorf("after a login the first failure waits %s", wait)
	}
	real := newReconnects()
	for range 100 {
		real.failures = 3
		if wait := real.failed(); wait < 4*time.Second || wait > 8*time.Second {
			t.Errorf("the fourth failure waits %s", wait)
		}
	}
}

// TestQueueShortensBackoff waits no longer than ten seconds while messages wait, also for those that came
// after the wait began.
func TestQueueShortensBackoff(t *testing.T) {
	for _, test := range []struct {
		wait, passed time.Duration
		queued       bool
		left         time.Duration
	}{
		{60 * time.Second, 0, false, 60 * time.Second},
		{60 * time.Second, 0, true, 10 * time.Second},
		{60 * time.Second, 30 * time.Second, true, -20 * time.Second},
		{2 * time.Second, time.Second, true, time.Second},
	} {
		if left := backoffLeft(test.wait, test.passed, test.queued); left != test.left {
			t.Errorf("%+v: %s", test, left)
		}
	}
	w := newWorld(t)
	s, _ := w.start()
	depth := 0
	s.(network.QueueAware).WatchQueue(func() int { return depth })
	if s.(*session).hasQueue() {
		t.Error("an empty queue counts")
	}
	depth = 1
	if !s.(*session).hasQueue() {
		t.Error("a queue does not count")
	}
}

// TestComesBackAgainAndAgain loses the connection more often in a row than any backoff would bear, with the
// policy as it is in production.
func TestComesBackAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	w.driver.maxBackoff = idleBackoff
	s, in := w.paired()
	for range 10 {
		skip := in.count()
		w.link.End(whatsapptest.Cut)
		in.statusAfter(skip, parley.Reconnecting)
		in.statusAfter(skip, parley.Working)
	}
	w.sent(s, w.text(friendID, "still here"))
}

// TestDeadConnectionIsPinged finds a connection dead on which a send waits: nothing comes after a ping.
func TestDeadConnectionIsPinged(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.driver.silentFor, w.driver.pingTimeout = 20*time.Millisecond, 200*time.Millisecond
	live := s.(*session).up.Load()
	watched := &line{s: live.s, client: live.client, news: make(chan any, newsRoom)} // whose news only we read
	watched.ctx, watched.cancel = context.WithCancel(t.Context())
	watched.taking, watched.leave = context.WithCancel(watched.ctx)
	t.Cleanup(watched.errands.Wait)
	t.Cleanup(watched.cancel)
	watched.s.d.pingTimeout = patience
	if !watched.answers() {
		t.Fatal("a live connection does not answer")
	}
	watched.s.d.pingTimeout = 200 * time.Millisecond
	w.link.Stall()
	done := watched.awaitNetwork()
	defer done()
	select {
	case evt := <-watched.news:
		if _, dead := evt.(*events.KeepAliveTimeout); !dead {
			t.Errorf("the news are %T", evt)
		}
	case <-within(t).Done():
		t.Error("nobody noticed")
	}
}

// TestCATRefusal refuses a login with the codes that another product uses: only this channel ends.
func TestCATRefusal(t *testing.T) {
	for _, reason := range []int{413, 414} {
		w := newWorld(t)
		_, in := w.paired()
		skip := in.count()
		w.owner.RefuseLogin(whatsapptest.Refusal{Reason: reason})
		w.link.End(whatsapptest.Cut)
		in.statusAfter(skip, parley.Failed)
	}
}
