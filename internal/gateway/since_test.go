package gateway_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

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
		b.states("6281211112222", parley.Reconnecting, parley.Working)
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
		b.states("6281211112222", parley.Reconnecting, parley.Working)
		if got := since(); !got.Equal(time.Now()) {
			t.Errorf("after a loss it works since %s, want now, %s", got, time.Now())
		}
	})
}
