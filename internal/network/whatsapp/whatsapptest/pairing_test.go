package whatsapptest_test

import (
	"errors"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestPairingByCode types the eight characters into the phone.
func TestPairingByCode(t *testing.T) {
	s := whatsapptest.StartTest(t)
	owner, friend := s.Phone("6281234567890"), s.Phone("6289876543210")
	c := newClient(t, s)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	expect[*events.QR](c, nil)
	code := must[string](t)(c.PairPhone(within(t), owner.Number(), true, whatsmeow.PairClientChrome, "Chrome (Linux)"))
	wrong := "1111-1111"
	if code == wrong {
		wrong = "2222-2222"
	}
	if _, err := owner.EnterCode(within(t), wrong); err == nil {
		t.Error("a wrong code linked a device")
	}
	must[*whatsapptest.Link](t)(owner.EnterCode(within(t), code))
	expect[*events.PairSuccess](c, nil)
	expect[*events.Connected](c, nil)
	sent := c.text(friend.JID(), "paired by code")
	friend.Expect(t, whatsapptest.ID(sent.ID))
}

// TestPairingForNobody asks for a code for a number that is not on the network.
func TestPairingForNobody(t *testing.T) {
	s := whatsapptest.StartTest(t)
	c := newClient(t, s)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	expect[*events.QR](c, nil)
	if _, err := c.PairPhone(within(t), "15550001111", true, whatsmeow.PairClientChrome, "Chrome (Linux)"); !errors.Is(err,
		whatsmeow.ErrIQNotFound) {
		t.Errorf("a code for nobody: %v", err)
	}
}

// TestPairingRefused has a phone that signs wrongly: the client refuses, and says why.
func TestPairingRefused(t *testing.T) {
	s := whatsapptest.StartTest(t)
	owner := s.Phone("6281234567890")
	owner.RefuseNextPairing()
	c := newClient(t, s)
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	qr := expect[*events.QR](c, nil)
	if len(qr.Codes) != 6 {
		t.Errorf("the client shows %d codes", len(qr.Codes))
	}
	if _, err := owner.Scan(within(t), qr.Codes[0]); err == nil || !strings.Contains(err.Error(), "hmac-mismatch") {
		t.Errorf("scanning: %v", err)
	}
	expect[*events.PairError](c, nil)
}

// TestScanningNonsense shows the phone codes that are none.
func TestScanningNonsense(t *testing.T) {
	s := whatsapptest.StartTest(t)
	owner := s.Phone("6281234567890")
	key := strings.Repeat("A", 43) + "="
	for _, code := range []string{"", "https://example.test", "https://wa.me/settings/linked_devices#2@gone," + key + "," + key + "," +
		key + ",1"} {
		if _, err := owner.Scan(within(t), code); err == nil {
			t.Errorf("scanning %q linked a device", code)
		}
	}
}

// TestTwoClientsOfOnePhone links two clients to one phone: each gets what the other sends.
func TestTwoClientsOfOnePhone(t *testing.T) {
	w := newWorld(t)
	second := newClient(t, w.Server)
	second.pair(w.owner)
	if err := w.link.Idle(within(t)); err != nil {
		t.Fatal(err)
	}
	sent := second.text(w.friend.JID(), "from the second")
	w.friend.Expect(t, whatsapptest.ID(sent.ID))
	e := w.client.message("from the second")
	if !e.Info.IsFromMe || e.Info.Chat != w.friend.LID() {
		t.Errorf("the first client got %+v", e.Info)
	}
	sent = w.client.text(w.friend.JID(), "from the first")
	w.friend.Expect(t, whatsapptest.ID(sent.ID))
	second.message("from the first")
	must[string](t)(w.friend.Send(within(t), w.owner, "to both"))
	w.client.message("to both")
	second.message("to both")
}

// TestClientToClient lets two real clients write to each other.
func TestClientToClient(t *testing.T) {
	w := newWorld(t)
	other := newClient(t, w.Server)
	other.pair(w.friend)
	sent := w.client.text(w.friend.JID(), "hello")
	other.message("hello")
	w.client.receipt(sent.ID, "inactive")
	back := other.text(w.owner.JID(), "hello yourself")
	w.client.message("hello yourself")
	other.receipt(back.ID, "inactive")
	w.friend.Expect(t, whatsapptest.ID(sent.ID))
	w.owner.Expect(t, whatsapptest.ID(back.ID))
}
