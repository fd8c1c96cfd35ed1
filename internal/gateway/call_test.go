package gateway_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
)

// TestUnreadable publishes that a message cannot be shown, and the message if it comes later.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.lastEvent()
		b.give(network.Unreadable{From: ayu, ID: "3A01", Reason: parley.Undecryptable, At: time.Now()})
		b.give(network.Unreadable{From: ayu, Group: "120363020000000001@g.us", ID: "3A02", Reason: parley.ViewOnce, At: time.Now()})
		b.give(network.Message{From: ayu, ID: "3A01", Content: parley.Text{Body: "hello"}, At: time.Now()})
		var got []string
		for _, e := range b.events(before) {
			got = append(got, string(e.Type)+string(e.Data)+string(e.Chat))
		}
		want := []string{`message.unreadable{"message_id":"false_` + string(ayu) + `_3A01","id":"3A01","contact_id":"` +
			string(ayu) + `","reason":"undecryptable"}` + string(ayu),
			`message.unreadable{"message_id":"false_120363020000000001@g.us_3A02","id":"3A02","contact_id":"` + string(ayu) +
				`","group_id":"120363020000000001@g.us","reason":"view_once"}120363020000000001@g.us`, "message.received" + string(ayu)}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestCalls publishes calls once, rejects them if the channel does, and sends the text at most once an hour to a caller.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.types = true // its sessions can also reject calls
		b.restart()
		before := b.lastEvent()
		wants := func(why string, want ...string) {
			t.Helper()
			var got []string
			for _, e := range b.events(before) {
				if e.Type == parley.CallReceived || e.Type == parley.CallEnded {
					got = append(got, string(e.Type)+string(e.Data))
				}
			}
			before = b.lastEvent()
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", why, got, want)
			}
		}
		call := func(id string, from parley.ContactID, change func(*network.PhoneCall)) {
			c := network.PhoneCall{ID: id, From: from, At: time.Now()}
			if change != nil {
				change(&c)
			}
			b.give(c)
		}
		ends := func(c *network.PhoneCall) { c.Ended = parley.CallOver }
		call("C1", ayu, func(c *network.PhoneCall) { c.Video = true })
		call("C1", ayu, func(c *network.PhoneCall) { c.Video = true })
		call("C1", ayu, ends)
		call("C1", ayu, ends)
		wants("a call that rings", `call.received{"id":"C1","contact_id":"`+string(ayu)+`","video":true}`,
			`call.ended{"id":"C1","contact_id":"`+string(ayu)+`","reason":"ended"}`)

		b.set(func(s *parley.ChannelSettings) { s.Calls = &parley.CallSettings{Reject: true, Text: "Please write."} })
		call("C2", ayu, nil)
		call("C2", ayu, ends)
		wants("a call that is rejected", `call.received{"id":"C2","contact_id":"`+string(ayu)+`","video":false}`,
			`call.ended{"id":"C2","contact_id":"`+string(ayu)+`","reason":"rejected"}`)
		b.restart()
		time.Sleep(50 * time.Minute)
		call("C3", ayu, nil)
		call("C4", budi, func(c *network.PhoneCall) { c.At = c.At.Add(-time.Hour) })
		call("C5", budi, func(c *network.PhoneCall) { c.Group = "120363020000000001@g.us" })
		time.Sleep(time.Second)
		if n := b.driver.rejected.Load(); n != 2 || len(b.driver.texts("demo", ayu)) != 1 || len(b.driver.texts("demo", budi)) != 0 {
			t.Errorf("%d calls were rejected, and the callers got %q and %q", n, b.driver.texts("demo", ayu), b.driver.texts("demo", budi))
		}
		time.Sleep(11 * time.Minute)
		call("C6", ayu, nil)
		time.Sleep(time.Second)
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"Please write.", "Please write."}) {
			t.Errorf("after an hour the caller got %q", got)
		}
	})
}
