package gateway_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
)

// refusesStrangers makes the network refuse first messages, until a time; zero: it does not say until when. It returns how many
// messages to new contacts it got.
func (b *bench) refusesStrangers(until time.Time, refuses *atomic.Bool) *atomic.Int64 {
	asked := new(atomic.Int64)
	b.driver.answer = func(m *parley.Message) error {
		if m.Chat == ayu {
			return nil
		}
		asked.Add(1)
		if refuses.Load() {
			return network.RefuseUntil(parley.Restricted, "New contacts are restricted.", until)
		}
		return nil
	}
	return asked
}

// TestFirstMessagesWait sends to new contacts while the network does not let the account: one is refused, the others wait, and nothing
// asks the network for them. Chats that exist go on. The restriction survives a restart.
func TestFirstMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.await(ayu, "a chat that exists", time.Second)
		before := b.lastEvent()
		var refuses atomic.Bool
		refuses.Store(true)
		asked := b.refusesStrangers(time.Now().Add(time.Hour), &refuses)
		if m := b.await(budi, "one", time.Second); m.Status != parley.Failed || m.Failure.Code != parley.Restricted {
			t.Errorf("the first is %s, %+v", m.Status, m.Failure)
		}
		second := b.accept(budi, "two")
		for i := range 5 {
			b.accept(parley.NewContactID("628120000000"+string(rune('0'+i))), "hello")
		}
		if m := b.await(ayu, "goes on", time.Second); m.Status != parley.Sent {
			t.Errorf("a chat that exists: %s", m.Status)
		}
		time.Sleep(time.Minute)
		b.restart()
		time.Sleep(50 * time.Minute)
		m := b.load(second)
		if w := b.g.Waiting(t.Context(), &m); asked.Load() != 1 || w == nil || w.Reason != parley.WaitsForRestriction || w.Until.IsZero() {
			t.Errorf("the network was asked for %d messages; the second waits for %+v", asked.Load(), w)
		}
		refuses.Store(false)
		time.Sleep(10 * time.Minute)
		if m := b.load(second); m.Status != parley.Sent || asked.Load() != 7 {
			t.Errorf("then it is %s, of %d", m.Status, asked.Load())
		}
		var data []string
		for _, e := range b.events(before) {
			if e.Type == parley.ChannelRestricted {
				data = append(data, string(e.Data))
			}
		}
		if len(data) != 1 {
			t.Errorf("the events are %q", data)
		}
	})
}

// TestRestrictionWithoutEnd tries one first message every 15 minutes, until the network takes it.
func TestRestrictionWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var refuses atomic.Bool
		refuses.Store(true)
		asked := b.refusesStrangers(time.Time{}, &refuses)
		var all []parley.Message
		b.await(budi, "the first", time.Second)
		for i := range 6 {
			all = append(all, b.accept(parley.NewContactID("628120000000"+string(rune('0'+i))), "hello"))
		}
		for n := 1; n <= 3; n++ {
			time.Sleep(time.Minute)
			if asked.Load() != int64(n) {
				t.Errorf("after %d tries the network was asked %d times", n, asked.Load())
			}
			time.Sleep(14 * time.Minute)
		}
		refuses.Store(false)
		time.Sleep(16 * time.Minute)
		var statuses []parley.Status
		for _, m := range all {
			statuses = append(statuses, b.load(m).Status)
		}
		slices.Sort(statuses)
		if active, _ := b.g.Restriction("demo"); active || slices.Index(statuses, parley.Pending) >= 0 {
			t.Errorf("restricted %t, statuses %v", active, statuses)
		}
	})
}

// TestHeldMessagesExpire ends first messages that waited until they expired as restricted.
func TestHeldMessagesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.TTL = parley.Duration(time.Hour) }); err != nil {
			t.Fatal(err)
		}
		b.give(network.Restriction{Active: true, Until: time.Now().Add(72 * time.Hour)})
		m := b.accept(budi, "hello")
		time.Sleep(61 * time.Minute)
		if m := b.load(m); m.Status != parley.Failed || m.Failure == nil || m.Failure.Code != parley.Restricted {
			t.Errorf("it is %s, %+v", m.Status, m.Failure)
		}
		m = b.accept(budi, "again")
		b.give(network.Restriction{})
		time.Sleep(time.Minute)
		if m := b.load(m); m.Status != parley.Sent {
			t.Errorf("after the end it is %s", m.Status)
		}
	})
}

// TestSentOnPhone stores what the owner of the account wrote on the phone as sent, once. It is no login and nothing of it is sent.
func TestSentOnPhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		link, prompt := b.link(b.verify())
		before := b.lastEvent()
		for range 2 {
			b.give(network.Message{From: ayu, Own: true, ID: "P1", Content: parley.Text{Body: prompt}, At: time.Now()})
		}
		var types []parley.EventType
		for _, e := range b.events(before) {
			types = append(types, e.Type)
		}
		if !slices.Equal(types, []parley.EventType{parley.MessageSentOnPhone}) {
			t.Errorf("the events are %v", types)
		}
		m := b.load(parley.Message{Chat: ayu, ID: "P1", FromMe: true})
		if m.Status != parley.Sent || !m.SentOnPhone() || b.g.QueueDepth("demo") != 0 {
			t.Errorf("it is %s, of %d that wait", m.Status, b.g.QueueDepth("demo"))
		}
		if own := b.await(ayu, "of the channel", time.Second); own.SentOnPhone() {
			_ = link
			t.Error("a message of the channel counts as one of the phone")
		}
	})
}

// TestPaceAfterBan begins at a tenth of the pace, which doubles every hour.
func TestPaceAfterBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		pace := parley.Duration(time.Second)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Pace = &pace }); err != nil {
			t.Fatal(err)
		}
		b.give(network.Ban{Until: time.Now()})
		paces := []time.Duration{10 * time.Second, 5 * time.Second, 2500 * time.Millisecond, 1250 * time.Millisecond, time.Second}
		for hour, want := range paces {
			b.restart()
			b.await(ayu, "first", time.Minute)
			begun := time.Now()
			b.await(ayu, "second", time.Minute)
			if took := time.Since(begun); took < want-100*time.Millisecond || took > want+100*time.Millisecond {
				t.Errorf("after %d hours a pause is %s, want %s", hour, took, want)
			}
			time.Sleep(time.Hour)
		}
	})
}
