package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/feed"
	"parley/internal/network"
	"parley/internal/store"
)

// TestPairingSteps tells the steps of a pairing: in memory, as activity, and in the log, which has the code
// only encrypted and only while it is of use.
func TestPairingSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, ok := b.g.Pairing("demo"); ok {
			t.Error("a channel that is not being paired has a step")
		}
		happens, unsubscribe := b.g.Activity()
		defer unsubscribe()
		before := b.lastEvent()
		sink := b.driver.session("demo").sink
		tell := func(p network.Pairing) {
			t.Helper()
			p.At = time.Now()
			if err := sink(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if a := <-happens; a.Pairing != p.Step || strings.Contains(fmt.Sprintf("%+v", a), "SECRET") {
				t.Errorf("the activity is %+v", a)
			}
		}
		tell(network.Pairing{Step: parley.StartingStep})
		tell(network.Pairing{Step: parley.QRStep, Code: "SECRET", ExpiresAt: time.Now().Add(time.Minute), N: 1, Of: 6})
		if p, ok := b.g.Pairing("demo"); !ok || p.Code != "SECRET" || p.N != 1 || p.Of != 6 {
			t.Errorf("the step is %+v", p)
		}
		reader := feed.New(feed.Config{Store: b.store, Keyring: b.keyring})
		lastEvent := func() string {
			t.Helper()
			events := b.events(before)
			last := events[len(events)-1]
			if strings.Contains(string(last.Data), "SECRET") {
				t.Errorf("the log has the code: %s", last.Data)
			}
			body, err := reader.Render(&last, parley.MediaLinks{}.Plain)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if got := lastEvent(); !strings.Contains(got, `"data":{"step":"qr","code":"SECRET","expires_at":"`) ||
			!strings.Contains(got, `"n":1,"of":6}`) {
			t.Errorf("the event is %s", got)
		}
		time.Sleep(61 * time.Second)
		if p, ok := b.g.Pairing("demo"); !ok || p.Code != "" {
			t.Errorf("after its time the step is %+v", p)
		}
		if got := lastEvent(); strings.Contains(got, "SECRET") || !strings.Contains(got, `"step":"qr"`) {
			t.Errorf("after its time the event is %s", got)
		}
		tell(network.Pairing{Step: parley.PairedStep})
		if p, ok := b.g.Pairing("demo"); !ok || p.Step != parley.PairedStep {
			t.Errorf("the step is %+v", p)
		}
		time.Sleep(6 * time.Minute)
		if p, ok := b.g.Pairing("demo"); ok {
			t.Errorf("long after, the step is %+v", p)
		}
		tell(network.Pairing{Step: parley.FailedStep, Reason: "No."})
		if _, err := b.g.StopChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if p, ok := b.g.Pairing("demo"); ok {
			t.Errorf("of a stopped channel, the step is %+v", p)
		}
	})
}

func TestPairingByCodeNeedsANetworkThatHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.g.PairChannel(t.Context(), "demo", "6281234567890"); parley.ToCode(err) != parley.NotSupported {
			t.Errorf("got %v", err)
		}
		if _, ok := b.g.Evidence("demo"); ok {
			t.Error("a network that cannot tell gave evidence")
		}
	})
}

// TestAHangingChannelStopsNoOther starts many channels of which one does not open: the others work
// soon, and can be stopped and started. When that one opens at last, it is as it should be by then.
func TestAHangingChannelStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		b.tx(func(tx *store.Tx) error {
			for i := range 300 {
				c := parley.Channel{Code: parley.ChannelCode(fmt.Sprintf("c%d", i)), Network: parley.WhatsApp}
				c.Begin(time.Now())
				if err := tx.AddChannel(t.Context(), c); err != nil {
					return err
				}
			}
			return nil
		})
		b.driver.hang, b.driver.hold = "c150", make(chan struct{})
		begun := time.Now()
		b.start()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the start took %s", took)
		}
		working := 0
		for _, c := range b.g.Channels() {
			if c.State.Status == parley.ChannelWorking {
				working++
			}
		}
		if working != 300 { // with the demo channel, without the one that hangs
			t.Errorf("%d channels work", working)
		}
		if c, err := b.g.StopChannel(t.Context(), "c7"); err != nil || c.State.Status != parley.ChannelStopped {
			t.Errorf("another channel is %s, %v", c.State.Status, err)
		}
		if c, err := b.g.StopChannel(t.Context(), "c150"); err != nil || c.State.Status != parley.ChannelStarting {
			t.Errorf("the channel that hangs is %s, %v", c.State.Status, err)
		}
		close(b.driver.hold)
		synctest.Wait()
		if c, _ := b.g.Channel("c150"); c.State.Status != parley.ChannelStopped || !b.driver.session("c150").closed {
			t.Errorf("when it opened at last, it became %s", c.State.Status)
		}
		if c, err := b.g.StartChannel(t.Context(), "c150"); err != nil || c.State.Status != parley.ChannelWorking {
			t.Errorf("started again it is %s, %v", c.State.Status, err)
		}
	})
}

// TestHistoryIsStoredAndNotPublished gives a channel what was said before it was linked.
func TestHistoryIsStoredAndNotPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.lastEvent()
		happens, unsubscribe := b.g.Activity()
		defer unsubscribe()
		for range 2 { // networks give it again
			for i := range 3 {
				m := network.Message{From: ayu, ID: parley.MessageID(fmt.Sprintf("OLD%d", i)), Content: parley.Text{Body: "old"},
					At: time.Now().Add(-time.Hour), Past: true, History: true}
				if err := b.driver.session("demo").sink(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		page, total, err := b.g.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		if err != nil || total != 3 || page[0].Content.Text() != "old" || page[0].Status != parley.Received {
			t.Errorf("the history is %+v, %v", page, err)
		}
		if events := b.events(before); len(events) != 0 {
			t.Errorf("published %+v", events)
		}
		select {
		case a := <-happens:
			t.Errorf("shown %+v", a)
		default:
		}
	})
}
