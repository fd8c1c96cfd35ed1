package whatsapp

import (
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestCalls gets calls of people who show their number and who hide it, and rejects one.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	id := w.friend.Call(w.owner, true)
	got := expect(in, 0, func(c network.PhoneCall) bool { return c.ID == id })
	if got.From != friendID || !got.Video || got.Ended != "" || got.At.IsZero() {
		t.Errorf("the call is %+v", got)
	}
	must(t, s.RejectCall(t.Context(), got))
	must(t, w.friend.AwaitRejected(within(t), id))
	w.friend.HangUp(w.owner, id, "")
	if end := expect(in, 0, func(c network.PhoneCall) bool { return c.ID == id && c.Ended != "" }); end.Ended != parley.CallOver {
		t.Errorf("the end is %+v", end)
	}
	hidden := w.Phone("6289876543299", whatsapptest.Shown(whatsapptest.OnlyLID))
	id = hidden.Call(w.owner, false)
	if got := expect(in, 0, func(c network.PhoneCall) bool { return c.ID == id }); !got.From.IsHidden() || got.Video {
		t.Errorf("the call of somebody who hides the number is %+v", got)
	}
	hidden.HangUp(w.owner, id, "accepted_elsewhere")
	expect(in, 0, func(c network.PhoneCall) bool { return c.ID == id && c.Ended == parley.CallAccepted })
	must(t, w.link.Idle(within(t))) // everything is acknowledged
}
