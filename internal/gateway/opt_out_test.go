package gateway_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
)

// set changes settings of the channel.
func (b *bench) set(change func(*parley.ChannelSettings)) {
	b.t.Helper()
	if _, err := b.g.UpdateChannel(b.t.Context(), "demo", func(c *parley.Channel) { change(&c.Settings) }); err != nil {
		b.t.Fatal(err)
	}
}

// TestOptOut lets a contact ask for no more messages, and for messages again. What comes twice, from history, in a group or as a part
// of a text changes nothing.
func TestOptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set(func(s *parley.ChannelSettings) {
			s.OptOut = &parley.OptOut{Words: []string{"Stop", "berhenti"}, Reply: "Bye."}
		})
		says := func(id parley.MessageID, text string, change func(*network.Message)) {
			m := network.Message{From: ayu, ID: id, Content: parley.Text{Body: text}, At: time.Now()}
			if change != nil {
				change(&m)
			}
			b.give(m)
		}
		sends := func(why string, want parley.Status) {
			t.Helper()
			if m := b.await(ayu, "news", time.Second); m.Status != want || want == parley.Failed && m.Failure.Code != parley.OptedOut {
				t.Errorf("%s: the message is %s, %+v", why, m.Status, m.Failure)
			}
		}
		sends("at first", parley.Sent)
		says("A1", "Please stop.", nil)
		says("A2", "stop", func(m *network.Message) { m.Group = "120363020000000001@g.us" })
		says("A3", "stop", func(m *network.Message) { m.Past = true })
		says("A4", "stop", func(m *network.Message) { m.Past, m.History = true, true })
		says("A5", "stop", func(m *network.Message) { m.Own = true })
		sends("after what asks for nothing", parley.Sent)

		before := b.lastEvent()
		b.states("", parley.ChannelReconnecting)
		waiting := b.accept(ayu, "accepted before")
		says("B1", " STOP\n", nil)
		says("B1", " STOP\n", nil)
		b.states("", parley.ChannelWorking)
		time.Sleep(time.Second)
		if m := b.load(waiting); m.Status != parley.Failed || m.Failure.Code != parley.OptedOut {
			t.Errorf("what waited is %s, %+v", m.Status, m.Failure)
		}
		sends("after STOP", parley.Failed)
		says("B2", "berhenti", nil) // it has stopped already: no second reply
		if got := b.driver.texts("demo", ayu); slices.Index(got, "Bye.") != len(got)-1 || slices.Contains(got, "accepted before") {
			t.Errorf("the contact got %q", got)
		}
		code := gateway.Draft{To: ayu, Content: parley.Text{Body: "a code"}, Priority: parley.PriorityStranger}
		if ms, err := b.g.Send(t.Context(), "demo", []gateway.Draft{code}, gateway.SendOptions{Wait: time.Second}); err != nil ||
			ms[0].Status != parley.Sent {
			t.Errorf("a code: %v, %v", ms, err)
		}
		if m := b.await(budi, "another contact", time.Second); m.Status != parley.Sent {
			t.Errorf("another contact: %s", m.Status)
		}
		b.restart()
		sends("after a restart", parley.Failed)
		says("B3", "start", nil)
		says("B1", " STOP\n", nil) // the network sends it again
		sends("after START", parley.Sent)
		var types []parley.EventType
		for _, e := range b.events(before) {
			if e.Type == parley.ContactOptedOut || e.Type == parley.ContactOptedIn {
				types = append(types, e.Type)
			}
		}
		if !slices.Equal(types, []parley.EventType{parley.ContactOptedOut, parley.ContactOptedIn}) {
			t.Errorf("the events are %v", types)
		}
	})
}

// TestOptOutByRequest opts contacts out by any spelling of their number. Without the setting a text changes nothing.
func TestOptOutByRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.give(network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "STOP"}, At: time.Now()})
		if m := b.await(ayu, "hello", time.Second); m.Status != parley.Sent {
			t.Errorf("without the setting it is %s", m.Status)
		}
		const other = "628129999999@c.us"
		for _, step := range []struct {
			contact parley.ContactID
			out     bool
			changed int
			want    parley.Status
		}{{ayu, true, 1, parley.Failed}, {ayu, true, 0, parley.Failed}, {other, false, 1, parley.Sent}, {other, true, 1, parley.Failed}} {
			if step.contact == other {
				b.give(network.Alias{Asked: other, Contact: ayu})
			}
			changed, err := b.g.SetOptedOut(t.Context(), "demo", []parley.ContactID{step.contact}, step.out)
			if m := b.await(ayu, "hello", time.Second); err != nil || changed != step.changed || m.Status != step.want {
				t.Errorf("%+v: %d changed, %v, and a message is %s", step, changed, err, m.Status)
			}
		}
	})
}
