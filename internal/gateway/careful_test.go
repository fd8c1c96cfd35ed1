package gateway_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
)

func stranger(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("62812000%05d@c.us", i)) }

// count counts messages by status.
func (b *bench) count(ms []parley.Message) map[parley.Status]int {
	n := map[parley.Status]int{}
	for _, m := range ms {
		n[b.load(m).Status]++
	}
	return n
}

// TestCarefulChannel lets a few first messages leave in a day, over a restart, and the rest on the next days, the oldest first.
func TestCarefulChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.await(ayu, "a chat that exists", time.Second)
		b.set(func(s *parley.ChannelSettings) {
			s.Careful, s.TTL = &parley.Careful{FirstContacts: 3}, parley.Duration(60*time.Hour)
		})
		time.Sleep(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour))) // noon
		var all []parley.Message
		for i := range 8 {
			all = append(all, b.accept(stranger(i), "hello"))
		}
		time.Sleep(time.Second)
		if n := b.count(all); n[parley.Sent] != 3 {
			t.Errorf("on the first day: %v", n)
		}
		b.restart()
		time.Sleep(time.Hour)
		if n := b.count(all); n[parley.Sent] != 3 {
			t.Errorf("after a restart: %v", n)
		}
		m := b.load(all[7])
		if w := b.g.Waiting(t.Context(), &m); w == nil || w.Reason != parley.WaitsForQuota || w.Until.Hour() != 0 {
			t.Errorf("the last one waits for %+v", w)
		}
		if again := b.await(stranger(0), "a second message", time.Second); again.Status != parley.Sent {
			t.Errorf("a second message to a contact is %s", again.Status)
		}
		if m := b.await(ayu, "goes on", time.Second); m.Status != parley.Sent {
			t.Errorf("a chat that exists: %s", m.Status)
		}
		time.Sleep(12 * time.Hour)                                                             // after midnight
		if n := b.count(all); n[parley.Sent] != 6 || b.load(all[7]).Status != parley.Pending { // two are on their way at a time
			t.Errorf("on the second day: %v, and the last is %s", n, b.load(all[7]).Status)
		}
		b.set(func(s *parley.ChannelSettings) { s.Careful = nil })
		time.Sleep(time.Second)
		if n := b.count(all); n[parley.Sent] != 8 {
			t.Errorf("without caps: %v", n)
		}
	})
}

// TestCarefulExemptions reaches the cap on messages. Replies, groups and codes leave nevertheless, and do not count. Others expire.
func TestCarefulExemptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set(func(s *parley.ChannelSettings) {
			s.Careful, s.TTL = &parley.Careful{Messages: 2}, parley.Duration(time.Hour)
		})
		time.Sleep(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)))
		b.give(network.Message{From: budi, ID: "B1", Content: parley.Text{Body: "Hi"}, At: time.Now()})
		want := func(why string, to parley.ContactID, priority parley.Priority, status parley.Status) parley.Message {
			t.Helper()
			draft := gateway.Draft{To: to, Content: parley.Text{Body: why}, Priority: priority}
			ms, err := b.g.Send(t.Context(), "demo", []gateway.Draft{draft}, gateway.SendOptions{Wait: time.Second})
			if err != nil || ms[0].Status != status {
				t.Fatalf("%s: %v, %v", why, ms, err)
			}
			return ms[0]
		}
		for range 3 {
			want("a reply", budi, parley.PriorityNormal, parley.Sent)
			want("a code", stranger(1), parley.PriorityStranger, parley.Sent)
			want("a group", "120363020000000001@g.us", parley.PriorityNormal, parley.Sent)
		}
		var fails atomic.Bool
		fails.Store(true)
		b.driver.answer = func(*parley.Message) error {
			if fails.Swap(false) {
				return fmt.Errorf("try again")
			}
			return nil
		}
		retried := b.accept(ayu, "is counted once, though it is tried twice")
		time.Sleep(time.Minute)
		if m := b.load(retried); m.Status != parley.Sent {
			t.Errorf("what was tried again is %s", m.Status)
		}
		want("the second", ayu, parley.PriorityNormal, parley.Sent)
		late := want("the third", ayu, parley.PriorityNormal, parley.Pending)
		want("a reply after that", budi, parley.PriorityNormal, parley.Sent)
		time.Sleep(2 * time.Hour)
		if m := b.load(late); m.Status != parley.Failed || m.Failure.Code != parley.QuotaReached {
			t.Errorf("what expired is %s, %+v", m.Status, m.Failure)
		}
	})
}

// TestCarefulNightAndTyping lets nothing leave at night, and shows typing before a text.
func TestCarefulNightAndTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.types = true
		b.restart()
		b.set(func(s *parley.ChannelSettings) {
			s.Careful = &parley.Careful{Night: &parley.Night{From: "22:00", To: "06:00"}, Typing: true}
		})
		time.Sleep(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(23 * time.Hour))) // 23:00
		m := b.accept(ayu, "good morning")
		time.Sleep(6*time.Hour + 59*time.Minute)
		if now := b.load(m); now.Status != parley.Pending {
			t.Errorf("at night it is %s", now.Status)
		}
		time.Sleep(2 * time.Minute)
		if now := b.load(m); now.Status != parley.Sent {
			t.Errorf("in the morning it is %s", now.Status)
		}
		begun := time.Now()
		b.await(ayu, "fifty characters, which somebody types for a while", time.Minute)
		if took := time.Since(begun); took != 2*time.Second || b.driver.typed.Load() != 2 {
			t.Errorf("it took %s, and typing was shown %d times", took, b.driver.typed.Load())
		}
	})
}

// TestNewNumberKeepsItsAge pairs a channel with the same number again, and with another one.
func TestNewNumberKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		paired := func() time.Time {
			c, _ := b.g.Channel("demo")
			return c.PairedAt
		}
		first := paired()
		time.Sleep(24 * time.Hour)
		b.states("99900000001", parley.ChannelLoggedOut, parley.ChannelWorking)
		b.restart()
		if first.IsZero() || !paired().Equal(first) {
			t.Errorf("paired at %s, then at %s", first, paired())
		}
		b.states("99900000002", parley.ChannelLoggedOut, parley.ChannelWorking)
		if age := time.Since(paired()); age > time.Minute {
			t.Errorf("another number is %s old", age)
		}
		other := paired()
		for i, want := range []time.Time{first, other, first} {
			time.Sleep(24 * time.Hour)
			b.states([]string{"99900000001", "99900000002"}[i%2], parley.ChannelLoggedOut, parley.ChannelWorking)
			if !paired().Equal(want) {
				t.Errorf("change %d: paired at %s, want %s", i, paired(), want)
			}
		}
	})
}
