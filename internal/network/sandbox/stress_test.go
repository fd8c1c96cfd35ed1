package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

// TestManyAtOnce has callers send bursts while their phones write, read and come and go: whatever
// happens together, every chat is whole and in order on both sides.
func TestManyAtOnce(t *testing.T) {
	const callers, bursts, size = 8, 10, 5
	ctx := t.Context()
	n := openNetwork(t, filepath.Join(t.TempDir(), "sandbox.db"))
	var mu sync.Mutex
	inbound := map[parley.ContactID][]string{}
	delivered := map[parley.MessageID]bool{}
	all := make(chan struct{})
	sink := func(_ context.Context, e network.Event) error {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case network.Message:
			inbound[e.From] = append(inbound[e.From], e.Content.Text())
		case network.Receipt:
			for _, id := range e.IDs {
				delivered[id] = true
			}
		}
		count := 0
		for _, list := range inbound {
			count += len(list)
		}
		if count == callers*bursts && len(delivered) == callers*bursts*size {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		return nil
	}
	s, err := n.Open(ctx, parley.Channel{Code: "test"}, sink)
	must(t, err)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() { chatter(t, n, s, killNumber(caller), bursts, size) })
	}
	group.Wait()
	<-all
	for caller := range callers {
		number := killNumber(caller)
		var page Page
		for { // a phone shows that a message was delivered a moment after the channel heard of it
			page, err = n.Messages(ctx, "test", number, Query{Limit: 1000})
			must(t, err)
			if !slices.ContainsFunc(page.Messages, func(m Message) bool { return m.Status == parley.Sent }) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if len(page.Messages) != bursts*size {
			t.Errorf("the phone shows %d messages", len(page.Messages))
		}
		for i, m := range page.Messages {
			if m.Body != fmt.Sprint(i) || m.Copies != 1 {
				t.Errorf("message %d is %q, %d copies, %s", i, m.Body, m.Copies, m.Status)
			}
		}
		for i, body := range inbound[parley.NewContactID(number)] {
			if body != fmt.Sprint("reply ", i) {
				t.Errorf("reply %d is %q", i, body)
			}
		}
	}
}

// chatter sends bursts to a phone that replies to each, is switched off and on, and reads.
func chatter(t *testing.T, n *Network, s network.Session, number string, bursts, size int) {
	for b := range bursts {
		if _, err := n.UpdatePhone(t.Context(), "test", number, PhonePatch{Online: new(b%2 == 0)}); err != nil {
			t.Error(err)
		}
		var ms []*parley.Message
		for i := range size {
			ms = append(ms, text(number, fmt.Sprint(b*size+i)))
		}
		for _, err := range s.Send(t.Context(), ms) {
			if err != nil {
				t.Error(err)
			}
		}
		if _, err := n.SendAs(t.Context(), "test", number, Outgoing{Content: parley.Text{Body: fmt.Sprint("reply ", b)}}); err != nil {
			t.Error(err)
		}
		if _, err := n.Read(t.Context(), "test", number, ""); err != nil {
			t.Error(err)
		}
	}
	if _, err := n.UpdatePhone(t.Context(), "test", number, PhonePatch{Online: new(true)}); err != nil {
		t.Error(err)
	}
}

// TestResetAmidTraffic resets a world while messages go both ways: nothing hangs or fails, and the
// world works afterwards.
func TestResetAmidTraffic(t *testing.T) {
	ctx := t.Context()
	n := openNetwork(t, filepath.Join(t.TempDir(), "sandbox.db"))
	s, err := n.Open(ctx, parley.Channel{Code: "test"}, func(context.Context, network.Event) error { return nil })
	must(t, err)
	var group sync.WaitGroup
	for caller := range 4 {
		group.Go(func() { chatter(t, n, s, killNumber(caller), 10, 5) })
	}
	group.Go(func() {
		for range 10 {
			if err := n.Reset(ctx, "test"); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	must(t, n.Reset(ctx, "test"))
	if err := s.Send(ctx, []*parley.Message{text(ayu, "hi")})[0]; err != nil {
		t.Error(err)
	}
	page, err := n.Messages(ctx, "test", ayu, Query{})
	if err != nil || len(page.Messages) != 1 {
		t.Errorf("the phone shows %+v (%v)", page, err)
	}
}
