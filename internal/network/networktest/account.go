package networktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
	"parley/internal/network"
)

func testStates(t *testing.T, h Harness) {
	s, in := start(t, h)
	states := of[network.State](in.all())
	if states[0].Status != parley.ChannelStarting {
		t.Errorf("the first state is %+v, want STARTING", states[0])
	}
	working, at := in.awaitState(t, parley.ChannelWorking, 0)
	if working.Phone.Number == "" || strings.Trim(working.Phone.Number, "0123456789") != "" {
		t.Errorf("a working channel has the number %q", working.Phone.Number)
	}
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, at := in.awaitState(t, parley.ChannelLoggedOut, at)
	if out.Reason == "" {
		t.Error("a logout has no reason")
	}
	h.Pair(t, s)
	in.awaitState(t, parley.ChannelWorking, at)
	phone := h.Phone(t, 0)
	send(t, s, outgoing(phone.Contact(), parley.Text{Body: "back"}))
	expectBodies(t, phone, "back")
}

func testLogoutStays(t *testing.T, h Harness) {
	s, in := start(t, h)
	if err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	in.awaitState(t, parley.ChannelLoggedOut, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	in = newInbox()
	s, err := h.Driver.Open(t.Context(), h.Channel, in.sink)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in.awaitState(t, parley.ChannelLoggedOut, 0)
	for _, state := range of[network.State](in.all()) {
		if state.Status == parley.ChannelWorking {
			t.Error("a channel that is logged out works")
		}
	}
}

func testReconnect(t *testing.T, h Harness) {
	s, in := start(t, h)
	h.Disconnect(t, s)
	_, at := in.awaitState(t, parley.ChannelReconnecting, 0)
	in.awaitState(t, parley.ChannelWorking, at)
	phone := h.Phone(t, 1)
	m := outgoing(phone.Contact(), parley.Text{Body: "back"})
	send(t, s, m)
	in.awaitStatus(t, parley.Delivered, m.ID)
}

func testClose(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	inside := make(chan struct{})
	var left atomic.Bool
	in.refuseWith(func(ctx context.Context, e network.Event) error {
		if _, ok := e.(network.Message); ok {
			close(inside)
			<-ctx.Done() // the session is being closed
			left.Store(true)
		}
		return nil
	})
	phone.Send(t, parley.Text{Body: "1"}, nil, "")
	<-inside
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !left.Load() {
		t.Error("close did not wait for the sink")
	}
	in.refuseWith(nil)
	before := len(in.all())
	phone.Send(t, parley.Text{Body: "2"}, nil, "")
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if got := len(in.all()); got != before {
		t.Errorf("%d events came after close", got-before)
	}
}

func testContacts(t *testing.T, h Harness) {
	s, _ := start(t, h)
	all, total, err := s.Contacts(t.Context(), parley.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
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
	second, total2, err := s.Contacts(t.Context(), parley.Page{Limit: 1, Offset: 1})
	if err != nil || len(second) != 1 || second[0].ID != all[1].ID || total2 != total {
		t.Errorf("the second contact alone is %+v of %d (%v), want %s", second, total2, err, all[1].ID)
	}
	none, _, err := s.Contacts(t.Context(), parley.Page{Limit: 10, Offset: 1 << 40})
	if err != nil || len(none) != 0 {
		t.Errorf("far beyond the end there are %+v (%v)", none, err)
	}
	phone := h.Phone(t, 0)
	known, err := s.Contact(t.Context(), phone.Contact())
	if err != nil || known.ID != phone.Contact() || !known.OnNetwork || known.Name == "" {
		t.Errorf("the contact is %+v (%v)", known, err)
	}
	absent, err := s.Contact(t.Context(), h.Absent)
	if err != nil || absent.ID != h.Absent || absent.OnNetwork {
		t.Errorf("the absent number is %+v (%v)", absent, err)
	}
}

func testNumbers(t *testing.T, h Harness) {
	s, _ := start(t, h)
	number := h.Phone(t, 0).Contact().Number()
	for _, spelling := range []string{number, "+" + number, "+" + number[:2] + " " + number[2:5] + "-" + number[5:]} {
		id, exists, err := s.CheckNumber(t.Context(), spelling)
		if err != nil || !exists || id != parley.ContactOf(number) {
			t.Errorf("%q is %s, %t (%v)", spelling, id, exists, err)
		}
	}
	for _, absent := range []string{h.Absent.Number(), "no number", ""} {
		if _, exists, err := s.CheckNumber(t.Context(), absent); err != nil || exists {
			t.Errorf("%q is on the network: %t (%v)", absent, exists, err)
		}
	}
}

func testGroups(t *testing.T, h Harness) {
	s, _ := start(t, h)
	members := []parley.ContactID{h.Phone(t, 0).Contact(), h.Phone(t, 1).Contact()}
	made, err := s.CreateGroup(t.Context(), "A group", members)
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != "A group" || made.ParticipantCount != 3 || !made.IsOwner || made.CreatedAt.IsZero() ||
		!strings.HasSuffix(string(made.ID), "@g.us") {
		t.Errorf("the group is %+v", made)
	}
	all, total, err := s.Groups(t.Context(), parley.Page{Limit: 100})
	if err != nil || int64(len(all)) != total || !slices.ContainsFunc(all, func(g parley.Group) bool { return g.ID == made.ID }) {
		t.Errorf("the groups are %+v of %d (%v)", all, total, err)
	}
	if !slices.IsSortedFunc(all, func(a, b parley.Group) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("groups are not by name: %+v", all)
	}
	inside, err := s.Participants(t.Context(), made.ID)
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
	if _, err := s.Participants(t.Context(), "1@g.us"); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("an unknown group: %v", err)
	}
	if _, err := s.CreateGroup(t.Context(), "Nobody", []parley.ContactID{h.Absent}); network.ClassOf(err) != network.Permanent {
		t.Errorf("a group with an absent number: %v", err)
	}
}

func testDeleteChannel(t *testing.T, h Harness) {
	s, _ := start(t, h)
	phone := h.Phone(t, 0)
	send(t, s, outgoing(phone.Contact(), parley.Text{Body: "hi"}))
	if _, err := s.CreateGroup(t.Context(), "A group", []parley.ContactID{phone.Contact()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Driver.DeleteChannel(t.Context(), h.Channel.Code); err != nil {
			t.Fatal(err)
		}
	}
}
