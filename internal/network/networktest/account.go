package networktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"parley"
	"parley/internal/network"
)

func testStates(t *fixture) {
	states := of[network.State](t.in.all())
	if states[0].Status != parley.ChannelStarting {
		t.Errorf("the first state is %+v, want STARTING", states[0])
	}
	working, at := t.in.awaitState(t, parley.ChannelWorking, 0)
	if working.Phone.Number == "" || strings.Trim(working.Phone.Number, "0123456789") != "" {
		t.Errorf("a working channel has the number %q", working.Phone.Number)
	}
	t.must(t.pairer.Logout(t.Context()))
	out, at := t.in.awaitState(t, parley.ChannelLoggedOut, at)
	if out.Reason == "" {
		t.Error("a logout has no reason")
	}
	t.Pair(t, t.s)
	t.in.awaitState(t, parley.ChannelWorking, at)
	t.send(t.outgoing(t.phone.Contact(), parley.Text{Body: "back"}))
	t.expectBodies(t.phone, "back")
}

func testLogoutStays(t *fixture) {
	t.must(t.pairer.Logout(t.Context()))
	t.in.awaitState(t, parley.ChannelLoggedOut, 0)
	t.must(t.s.Close())
	in := newInbox()
	s, err := t.Driver.Open(t.Context(), t.Channel, in.sink)
	t.must(err)
	defer s.Close()
	in.awaitState(t, parley.ChannelLoggedOut, 0)
	for _, state := range of[network.State](in.all()) {
		if state.Status == parley.ChannelWorking {
			t.Error("a channel that is logged out works")
		}
	}
}

func testReconnect(t *fixture) {
	t.Disconnect(t, t.s)
	_, at := t.in.awaitState(t, parley.ChannelReconnecting, 0)
	t.in.awaitState(t, parley.ChannelWorking, at)
	m := t.outgoing(t.phone.Contact(), parley.Text{Body: "back"})
	t.send(m)
	t.in.awaitStatus(t, parley.Delivered, m.ID)
}

func testClose(t *fixture) {
	inside := make(chan struct{})
	var left atomic.Bool
	t.in.refuseWith(func(ctx context.Context, e network.Event) error {
		if _, ok := e.(network.Message); ok {
			close(inside)
			<-ctx.Done() // the session is being closed
			left.Store(true)
		}
		return nil
	})
	t.phone.Send(t, parley.Text{Body: "1"}, nil, "")
	<-inside
	t.must(t.s.Close())
	if !left.Load() {
		t.Error("close did not wait for the sink")
	}
	t.in.refuseWith(nil)
	before := len(t.in.all())
	t.phone.Send(t, parley.Text{Body: "2"}, nil, "")
	if err := t.s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if got := len(t.in.all()); got != before {
		t.Errorf("%d events came after close", got-before)
	}
}

func testContacts(t *fixture) {
	all, total, err := t.directory.Contacts(t.Context(), parley.Page{Limit: 100})
	t.must(err)
	if int64(len(all)) != total || total < 2 {
		t.Fatalf("%d contacts of %d, want at least the two of the harness", len(all), total)
	}
	inOrder := slices.IsSortedFunc(all, func(a, b parley.Contact) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.ID.Number(), b.ID.Number())
	})
	if !inOrder {
		t.Errorf("contacts are not by name and number: %+v", all)
	}
	second, total2, err := t.directory.Contacts(t.Context(), parley.Page{Limit: 1, Offset: 1})
	if err != nil || len(second) != 1 || second[0].ID != all[1].ID || total2 != total {
		t.Errorf("the second contact alone is %+v of %d (%v), want %s", second, total2, err, all[1].ID)
	}
	none, _, err := t.directory.Contacts(t.Context(), parley.Page{Limit: 10, Offset: 1 << 40})
	if err != nil || len(none) != 0 {
		t.Errorf("far beyond the end there are %+v (%v)", none, err)
	}
	known, err := t.directory.Contact(t.Context(), t.phone.Contact())
	if err != nil || known.ID != t.phone.Contact() || !known.OnNetwork || known.Name == "" {
		t.Errorf("the contact is %+v (%v)", known, err)
	}
	absent, err := t.directory.Contact(t.Context(), t.Absent)
	if err != nil || absent.ID != t.Absent || absent.OnNetwork {
		t.Errorf("the absent number is %+v (%v)", absent, err)
	}
}

func testNumbers(t *fixture) {
	number := t.Phone(t, 0).Contact().Number()
	for _, spelling := range []string{number, "+" + number, "+" + number[:2] + " " + number[2:5] + "-" + number[5:]} {
		id, exists, err := t.directory.CheckNumber(t.Context(), spelling)
		if err != nil || !exists || id != parley.NewContactID(number) {
			t.Errorf("%q is %s, %t (%v)", spelling, id, exists, err)
		}
	}
	for _, absent := range []string{t.Absent.Number(), "no number", ""} {
		if _, exists, err := t.directory.CheckNumber(t.Context(), absent); err != nil || exists {
			t.Errorf("%q is on the network: %t (%v)", absent, exists, err)
		}
	}
}

func testGroups(t *fixture) {
	members := []parley.ContactID{t.Phone(t, 0).Contact(), t.Phone(t, 1).Contact()}
	made, err := t.groups.CreateGroup(t.Context(), "A group", members)
	t.must(err)
	if made.Name != "A group" || made.ParticipantCount != 3 || !made.IsOwner || made.CreatedAt.IsZero() ||
		!strings.HasSuffix(string(made.ID), "@g.us") {
		t.Errorf("the group is %+v", made)
	}
	all, total, err := t.groups.Groups(t.Context(), parley.Page{Limit: 100})
	if err != nil || int64(len(all)) != total || !slices.ContainsFunc(all, func(g parley.Group) bool { return g.ID == made.ID }) {
		t.Errorf("the groups are %+v of %d (%v)", all, total, err)
	}
	if !slices.IsSortedFunc(all, func(a, b parley.Group) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("groups are not by name: %+v", all)
	}
	inside, err := t.groups.Participants(t.Context(), made.ID)
	if err != nil || len(inside) != 3 {
		t.Fatalf("the participants are %+v (%v)", inside, err)
	}
	for _, member := range members {
		if !slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.ID == member && !p.IsOwner }) {
			t.Errorf("%s is not in the group: %+v", member, inside)
		}
	}
	if !slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.IsOwner && p.IsAdmin }) {
		t.Errorf("nobody owns the group: %+v", inside)
	}
	if _, err := t.groups.Participants(t.Context(), "1@g.us"); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("an unknown group: %v", err)
	}
	if _, err := t.groups.CreateGroup(t.Context(), "Nobody", []parley.ContactID{t.Absent}); network.ToClass(err) != network.Permanent {
		t.Errorf("a group with an absent number: %v", err)
	}
}

func testDeleteChannel(t *fixture) {
	t.send(t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"}))
	if t.groups != nil {
		t.newGroup()
	}
	t.must(t.s.Close())
	for range 2 {
		t.must(t.Driver.DeleteChannel(t.Context(), t.Channel.Code))
	}
}
