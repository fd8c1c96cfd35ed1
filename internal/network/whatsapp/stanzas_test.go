package whatsapp

import (
	"testing"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
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
	s.(*session).up.Load().handleStanza(&broken)
	if n := w.driver.contained.Load(); n != 1 {
		t.Errorf("%d panics were contained", n)
	}
	w.sent(s, w.text(friendID, "still here"))
}

// TestNoPairingOnAPairedDevice sends a paired device what belongs to a pairing: it is dropped, and the
// connection goes on.
func TestNoPairingOnAPairedDevice(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	l := s.(*session).up.Load()
	for _, stanza := range []waBinary.Node{
		pairSuccess(waBinary.Attrs{"type": "set"}), pairSuccess(waBinary.Attrs{"type": "set", "id": "1"}),
		pairSuccess(waBinary.Attrs{"type": "result"}), pairSuccess(waBinary.Attrs{"type": "odd"}), pairSuccess(waBinary.Attrs{"type": "result", "id": "1"}),
		el("iq", waBinary.Attrs{"from": types.ServerJID, "type": "set", "id": "2"}, el("pair-device", nil, el("ref", nil, []byte("x")))),
	} {
		if !w.link.Inject(stanza) {
			t.Fatal("there is no connection")
		}
	}
	w.sent(s, w.text(friendID, "still here")) // the answer comes after what was injected
	if s.(*session).up.Load() != l || w.driver.contained.Load() != 0 {
		t.Error("the connection was made again, or a handler panicked")
	}
}

// TestQuietEnd loses the connection while whatsmeow expects that, and so says nothing of it.
func TestQuietEnd(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	s.(*session).up.Load().inner().ExpectDisconnect()
	w.link.End(whatsapptest.Cut)
	in.statusAfter(skip, parley.Reconnecting)
	in.statusAfter(skip, parley.Working)
}
