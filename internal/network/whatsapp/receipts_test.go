package whatsapp

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/wait"
)

// TestReceiptsAreGathered gives receipts that came while others were being kept together, each once.
func TestReceiptsAreGathered(t *testing.T) {
	const messages = 12
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	release := make(chan struct{})
	var first sync.Once
	in.refuseWith(func(e network.Event) error {
		if _, ok := e.(network.Receipt); ok {
			first.Do(func() { <-release })
		}
		return nil
	})
	var last *parley.Message
	for i := range messages {
		last = w.sent(s, w.text(friendID, fmt.Sprint("message ", i)))
	}
	w.friend.Expect(t, whatsapptest.ID(string(last.ID)))
	close(release)
	in.got(parley.Delivered, last.ID)
	must(t, w.link.Idle(within(t))) // all are acknowledged
	seen := map[parley.MessageID]int{}
	events := 0
	for _, e := range in.all()[skip:] {
		if r, ok := e.(network.Receipt); ok {
			events++
			for _, id := range r.IDs {
				seen[id]++
			}
		}
	}
	if len(seen) != messages || events > messages/2 {
		t.Errorf("%d events tell of %d messages", events, len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%d receipts for %s", n, id)
		}
	}
}

// TestReceiptsComeAgain acknowledges no receipt that was not kept: it comes with the next connection.
func TestReceiptsComeAgain(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	refused := make(chan struct{}, 1)
	in.refuseWith(func(e network.Event) error {
		if _, ok := e.(network.Receipt); ok {
			wait.Notify(refused)
			return errors.New("the disk is full")
		}
		return nil
	})
	m := w.sent(s, w.text(friendID, "hello"))
	<-refused
	skip := in.count()
	w.Down()
	in.statusAfter(skip, parley.Reconnecting)
	in.refuseWith(nil)
	skip = in.count()
	w.Up()
	in.statusAfter(skip, parley.Working)
	in.got(parley.Delivered, m.ID)
	must(t, w.link.Idle(within(t)))
}
