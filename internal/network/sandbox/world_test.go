package sandbox

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"parley"
	"parley/internal/network"
)

// desk is a channel with its open session, in a bubble of its own time.
type desk struct {
	t       *testing.T
	network *Network
	session *session

	mu     sync.Mutex
	events []network.Event
	refuse func(network.Event) error
}

// withDesk runs a test with the channel "test" on a network in memory, on a clock that jumps.
func withDesk(t *testing.T, run func(t *testing.T, d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, network: openNetwork(t, "memory:"+t.Name())}
		d.open()
		run(t, d)
	})
}

func (d *desk) open() {
	d.t.Helper()
	s, err := d.network.Open(d.t.Context(), parley.Channel{Code: "test", Name: "Test"}, d.sink)
	must(d.t, err)
	d.session = s.(*session)
	d.t.Cleanup(func() { s.Close() })
	synctest.Wait()
}

func (d *desk) sink(_ context.Context, e network.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		if err := d.refuse(e); err != nil {
			return err
		}
	}
	d.events = append(d.events, e)
	return nil
}

func (d *desk) refuseWith(refuse func(network.Event) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = refuse
}

func (d *desk) send(ms ...*parley.Message) []error {
	return d.session.Send(d.t.Context(), ms)
}

// came returns the events of a type that came so far.
func came[E network.Event](d *desk) []E {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []E
	for _, e := range d.events {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// receipts returns the ids for which receipts of a status came, in order.
func (d *desk) receipts(status parley.Status) []parley.MessageID {
	var ids []parley.MessageID
	for _, r := range came[network.Receipt](d) {
		if r.Status == status {
			ids = append(ids, r.IDs...)
		}
	}
	return ids
}

func (d *desk) messages(number string, q Query) []Message {
	d.t.Helper()
	page, err := d.network.Messages(d.t.Context(), "test", number, q)
	must(d.t, err)
	return page.Messages
}

func (d *desk) patch(number string, patch PhonePatch) {
	d.t.Helper()
	_, err := d.network.UpdatePhone(d.t.Context(), "test", number, patch)
	must(d.t, err)
}

// readNumber returns a channel's own number.
func readNumber(t *testing.T, n *Network, channel parley.ChannelCode) string {
	t.Helper()
	w, err := n.world(t.Context(), channel)
	must(t, err)
	return w.number
}

const (
	ayu  = "6281234567890"
	budi = "6281234567891"
)

func TestNewWorldHasTwoPhonesAndAGroup(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		phones, err := d.network.Phones(t.Context(), "test")
		must(t, err)
		if len(phones) != 2 || phones[0].Name != "Ayu" || phones[0].Number != ayu || phones[1].Name != "Budi" || phones[1].Number != budi {
			t.Errorf("phones are %+v", phones)
		}
		contacts, total, err := d.session.Contacts(t.Context(), parley.Page{Limit: 10})
		if err != nil || total != 2 || contacts[0].Name != "Ayu" || contacts[1].Name != "Budi" {
			t.Errorf("contacts are %+v (%v)", contacts, err)
		}
		groups, total, err := d.session.Groups(t.Context(), parley.Page{Limit: 10})
		if err != nil || total != 1 || groups[0].ParticipantCount != 3 {
			t.Errorf("groups are %+v (%v)", groups, err)
		}
		states := came[network.State](d)
		last := states[len(states)-1]
		if last.Status != parley.ChannelWorking || last.Phone.Number[:3] != "999" || last.Phone.Name != "Test" {
			t.Errorf("the state is %+v", last)
		}
	})
}

func TestWorldsDoNotSeeEachOther(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "hi"))
		other, err := d.network.Messages(t.Context(), "other", ayu, Query{})
		must(t, err)
		if len(other.Messages) != 0 {
			t.Errorf("another channel's phone shows %+v", other.Messages)
		}
		if ours := readNumber(t, d.network, "test"); ours == readNumber(t, d.network, "other") {
			t.Errorf("two channels have the number %s", ours)
		}
	})
}

func TestResetMakesTheWorldNew(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		number := readNumber(t, d.network, "test")
		d.send(text(ayu, "hi"), text("6285550001", "hi"))
		before, err := d.network.Cursor(ctx, "test")
		must(t, err)
		must(t, d.network.AddFault(ctx, "test", Fault{Fault: FaultRefuse}))
		must(t, d.session.Logout(ctx))
		d.patch(ayu, PhonePatch{Blocks: new(true)})

		must(t, d.network.Reset(ctx, "test"))
		phones, err := d.network.Phones(ctx, "test")
		must(t, err)
		if len(phones) != 2 || phones[0].Blocks {
			t.Errorf("phones are %+v", phones)
		}
		if got := d.messages(ayu, Query{}); len(got) != 0 {
			t.Errorf("the phone shows %+v", got)
		}
		if err := d.send(text(ayu, "again"))[0]; err != nil {
			t.Errorf("after the reset: %v", err)
		}
		if got := d.messages(ayu, Query{After: before}); len(got) != 1 || got[0].Body != "again" {
			t.Errorf("after the old cursor there is %+v", got)
		}
		if same := readNumber(t, d.network, "test"); same != number {
			t.Errorf("the number became %s", same)
		}
	})
}

func TestDeletedChannelIsNew(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		d.send(text(ayu, "hi"))
		if err := d.network.DeleteChannel(ctx, "test"); err == nil {
			t.Error("a channel with an open session was deleted")
		}
		must(t, d.session.Close())
		must(t, d.network.DeleteChannel(ctx, "test"))
		if got := d.messages(ayu, Query{}); len(got) != 0 {
			t.Errorf("the phone shows %+v", got)
		}
	})
}

func TestOneSessionAtATime(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		if _, err := d.network.Open(t.Context(), parley.Channel{Code: "test"}, d.sink); err == nil {
			t.Error("a second session was opened")
		}
		must(t, d.session.Close())
		d.open()
	})
}

func TestStateIsToldAgain(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		must(t, d.session.Close())
		d.events = nil
		tries := 0
		d.refuseWith(func(network.Event) error {
			if tries++; tries <= 3 {
				return context.DeadlineExceeded
			}
			return nil
		})
		d.open()
		waitFor(t, lastRetry)
		var got []parley.ChannelStatus
		for _, state := range came[network.State](d) {
			got = append(got, state.Status)
		}
		if want := []parley.ChannelStatus{parley.ChannelStarting, parley.ChannelWorking}; !slices.Equal(got, want) {
			t.Errorf("states are %s, want %s", got, want)
		}
	})
}
