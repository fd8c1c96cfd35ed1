package whatsapp

import (
	"testing"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestTextBothWays pairs a channel and lets it talk.
func TestTextBothWays(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	m := w.sent(s, w.text(friendID, "hello"))
	if got := w.friend.Expect(t, whatsapptest.ID(string(m.ID))); got.Text != "hello" || got.Copies != 1 {
		t.Errorf("the phone shows %+v", got)
	}
	in.got(parley.Delivered, m.ID)
	must(t, w.friend.Read(string(m.ID)))
	in.got(parley.Read, m.ID)
	id, err := w.friend.Send(within(t), w.owner, "hello yourself")
	must(t, err)
	if got := in.said("hello yourself"); got.From != friendID || got.ID != parley.MessageID(id) || got.Past {
		t.Errorf("there came %+v", got)
	}
	w.sealedAll()
	if e, ok := w.driver.Evidence(code); !ok || e.Heard.Before(e.Connected) || e.Confirmed.IsZero() || e.Received.IsZero() {
		t.Errorf("the evidence is %+v", e)
	}
}
