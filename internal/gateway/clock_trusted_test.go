package gateway_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

// TestAClockThatIsAheadErasesNothing starts a gateway with a clock that is weeks ahead: texts, events, keys
// and the queue stay until an hour of running confirms the clock.
func TestAClockThatIsAheadErasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		day := parley.Duration(24 * time.Hour)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = &day }); err != nil {
			t.Fatal(err)
		}
		before := b.lastEvent()
		key := &store.StoredResponse{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: time.Now()}
		sent, err := b.g.Send(t.Context(), "demo", text(ayu, "old"), gateway.SendOptions{Key: key, Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		waits := b.accept(ayu, "waits")
		time.Sleep(11 * time.Minute) // until the time is stored at which the clock was trusted
		b.stop()
		b.ahead = 40 * 24 * time.Hour
		b.start() // the driver connects at once

		intact := func(when string) {
			t.Helper()
			if got := b.load(sent[0]).Content.Text(); got != "old" {
				t.Errorf("%s: the text is %q", when, got)
			}
			if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); err != nil {
				t.Errorf("%s: the key: %v", when, err)
			}
			if len(b.events(before)) < 1 {
				t.Errorf("%s: the log is empty", when)
			}
			if got := b.load(waits); got.Status != parley.Pending {
				t.Errorf("%s: the message that waits is %s", when, got.Status)
			}
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		intact("after minutes")
		if b.g.ClockTrusted() {
			t.Error("the clock is trusted")
		}
		b.restart() // a process that did not trust it leaves no trace of its time
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		intact("after a restart and almost an hour")

		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := b.load(sent[0]).Content.Text(); got != "" {
			t.Errorf("after an hour the text is still %q", got)
		}
		if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("after an hour the key is still there: %v", err)
		}
		if got := b.load(waits); got.Status != parley.Failed || got.Failure.Code != parley.Expired {
			t.Errorf("after an hour the message that waited is %s", got.Status)
		}
		if n := len(b.driver.texts("demo", ayu)); n != 1 {
			t.Errorf("%d messages were sent", n)
		}
	})
}

// TestAClockThatIsAheadKeepsKeys starts a gateway with a clock that is ahead by less than a day: a key is kept until a day has really
// passed.
func TestAClockThatIsAheadKeepsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		created := time.Now()
		key := &store.StoredResponse{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: created}
		if _, err := b.g.Send(t.Context(), "demo", text(ayu, "hello"), gateway.SendOptions{Key: key, Wait: time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		b.stop()
		b.ahead = 23 * time.Hour
		b.start()
		time.Sleep(21*time.Hour + 30*time.Minute)
		synctest.Wait()
		if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); err != nil || b.g.KeyExpired(created, time.Now().Add(b.ahead)) {
			t.Errorf("after less than a day the key is gone: %v", err)
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("after a day the key is still there: %v", err)
		}
	})
}

// TestTheNetworkConfirmsAClock has a network tell its time to a gateway that was off for long.
func TestTheNetworkConfirmsAClock(t *testing.T) {
	hour := time.Hour
	for what, c := range map[string]struct {
		off      time.Duration
		evidence func(now time.Time) network.Evidence
		trusted  bool
	}{
		"it tells nothing": {60 * hour, func(time.Time) network.Evidence { return network.Evidence{} }, false},
		"it agrees":        {60 * hour, func(now time.Time) network.Evidence { return network.Evidence{ClockSeen: now} }, true},
		"it does not": {60 * hour, func(now time.Time) network.Evidence {
			return network.Evidence{ClockSeen: now,
				ClockAhead: 60 * hour}
		}, false},
		"it agrees within a week": {7 * 24 * hour, func(now time.Time) network.Evidence { return network.Evidence{ClockSeen: now} }, false},
		"it reported a date":      {40 * 24 * hour, func(now time.Time) network.Evidence { return network.Evidence{NetworkTime: now} }, true},
		"it reported a date long ago": {40 * 24 * hour,
			func(now time.Time) network.Evidence { return network.Evidence{NetworkTime: now.Add(-40 * 24 * hour)} }, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				time.Sleep(11 * time.Minute)
				b.stop()
				b.ahead = c.off // which is quicker than sleeping for as long
				b.driver.evidence = func() network.Evidence { return c.evidence(time.Now().Add(c.off)) }
				b.start()
				if got := b.g.ClockTrusted(); got != c.trusted {
					t.Errorf("trusted is %t", got)
				}
			})
		})
	}
}
