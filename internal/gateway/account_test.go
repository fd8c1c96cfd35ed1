package gateway_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// states has the session of channel demo go through statuses, with an account.
func (b *bench) states(number string, statuses ...parley.ChannelStatus) {
	b.t.Helper()
	for _, status := range statuses {
		state := network.State{Status: status}
		if status.CanSend() {
			state.Phone = network.Phone{Name: "Toko", Number: number}
		}
		if err := b.driver.sink("demo")(b.t.Context(), state); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestAWaitingMessageLeavesFromItsOwnAccount pairs a channel with another number, and with the same one.
func TestAWaitingMessageLeavesFromItsOwnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first, second := "99900000001", "99900000002"
		b.states(first, parley.ChannelReconnecting)
		old := b.accept(ayu, "from the first")
		b.states("", parley.ChannelLoggedOut, parley.ChannelScanQRCode)
		b.states(second, parley.ChannelStarting)
		b.accept(ayu, "from the second, early")
		b.states(second, parley.ChannelWorking)
		b.accept(ayu, "from the second")
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"from the second, early", "from the second"}) {
			t.Errorf("the second account sent %v", got)
		}
		if got := b.load(old); got.Status != parley.Failed || got.Failure.Code != parley.AccountChanged {
			t.Errorf("the message of the first account is %s, %+v", got.Status, got.Failure)
		}
		if c, _ := b.g.Channel("demo"); c.Number != second {
			t.Errorf("the channel has number %s", c.Number)
		}

		b.states(second, parley.ChannelReconnecting)
		same := b.accept(ayu, "waits")
		b.states("", parley.ChannelLoggedOut, parley.ChannelScanQRCode)
		b.states(second, parley.ChannelStarting, parley.ChannelWorking)
		synctest.Wait()
		if got := b.load(same); got.Status != parley.Sent {
			t.Errorf("paired with the same number it is %s", got.Status)
		}
	})
}

// TestAChangedAccountSurvivesARestart ends the process after another account was stored and before
// the old messages failed.
func TestAChangedAccountSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.states("99900000001", parley.ChannelReconnecting)
		old := b.accept(ayu, "old")
		b.stop()
		b.tx(func(tx *store.Tx) error {
			return tx.SetChannelState(t.Context(), parley.Channel{Code: "demo", Number: "99900000002"})
		})
		b.driver.number = "99900000002"
		b.start()
		b.accept(ayu, "new")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"new"}) {
			t.Errorf("sent %v", got)
		}
		if got := b.load(old); got.Failure == nil || got.Failure.Code != parley.AccountChanged {
			t.Errorf("the old message is %s, %+v", got.Status, got.Failure)
		}
	})
}

// TestSinceSurvivesARestart: a status that a channel has again after the server was away has lasted since it began. A
// new status, also the same one after another, begins when it is reported.
func TestSinceSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		since := func() time.Time {
			t.Helper()
			synctest.Wait()
			c, ok := b.g.Channel("demo")
			if !ok {
				t.Fatal("the channel is gone")
			}
			return c.State.Since
		}
		b.states("6281211112222", parley.ChannelReconnecting, parley.ChannelWorking)
		began := since()
		for range 2 {
			time.Sleep(time.Hour)
			before := b.lastEvent()
			b.restart()
			if got := since(); !got.Equal(began) {
				t.Fatalf("it works since %s, want %s", got, began)
			}
			var last parley.Event
			for _, e := range b.events(before) {
				if e.Type == parley.ChannelStatusChanged {
					last = e
				}
			}
			var data struct{ Status, Since string }
			if err := json.Unmarshal(last.Data, &data); err != nil {
				t.Fatal(err)
			}
			if data.Status != "WORKING" || data.Since != parley.Stamp(began) || !last.At.Equal(time.Now()) {
				t.Errorf("the event of %s says %s, want one of %s", last.At, last.Data, time.Now())
			}
		}
		time.Sleep(time.Hour)
		b.states("6281211112222", parley.ChannelReconnecting, parley.ChannelWorking)
		if got := since(); !got.Equal(time.Now()) {
			t.Errorf("after a loss it works since %s, want now, %s", got, time.Now())
		}
	})
}
