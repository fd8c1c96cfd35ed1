package whatsapp

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/wait"
)

// pairSuccess is the server's last word in a pairing; whatsmeow panics where it has no id.
func pairSuccess(attrs waBinary.Attrs) waBinary.Node {
	attrs["from"] = types.ServerJID
	return el("iq", attrs, el("pair-success", nil))
}

// TestPanicIsContained has a handler of whatsmeow panic: nothing ends but the handling of that stanza.
func TestPanicIsContained(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	broken := pairSuccess(waBinary.Attrs{})
	s.current.Load().handleStanza(&broken)
	if n := w.driver.panics.Load(); n != 1 {
		t.Errorf("%d panics were contained", n)
	}
	w.sent(s, w.text(friendID, "still here"))
}

// TestNoPairingOnAPairedDevice sends a paired device what belongs to a pairing: it is dropped, and the
// connection goes on.
func TestNoPairingOnAPairedDevice(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	conn := s.current.Load()
	for _, stanza := range []waBinary.Node{
		pairSuccess(waBinary.Attrs{"type": "set"}), pairSuccess(waBinary.Attrs{"type": "set", "id": "1"}),
		pairSuccess(waBinary.Attrs{"type": "result"}), pairSuccess(waBinary.Attrs{"type": "odd"}),
		pairSuccess(waBinary.Attrs{"type": "result", "id": "1"}),
		el("iq", waBinary.Attrs{"from": types.ServerJID, "type": "set", "id": "2"}, el("pair-device", nil, el("ref", nil, []byte("x")))),
	} {
		if !w.link.Inject(stanza) {
			t.Fatal("there is no connection")
		}
	}
	w.sent(s, w.text(friendID, "still here")) // the answer comes after what was injected
	if s.current.Load() != conn || w.driver.panics.Load() != 0 {
		t.Error("the connection was made again, or a handler panicked")
	}
}

// TestQuietEnd loses the connection while whatsmeow expects that, and so says nothing of it.
func TestQuietEnd(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	s.current.Load().inner().ExpectDisconnect()
	w.link.End(whatsapptest.Cut)
	in.statusAfter(skip, parley.ChannelReconnecting)
	in.statusAfter(skip, parley.ChannelWorking)
}

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
	in.statusAfter(skip, parley.ChannelReconnecting)
	in.refuseWith(nil)
	skip = in.count()
	w.Up()
	in.statusAfter(skip, parley.ChannelWorking)
	in.got(parley.Delivered, m.ID)
	must(t, w.link.Idle(within(t)))
}
