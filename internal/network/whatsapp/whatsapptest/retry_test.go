package whatsapptest_test

import (
	"testing"

	"go.mau.fi/whatsmeow/types"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestContactReinstalled lets a phone lose its keys: it asks again and can read the second try.
func TestContactReinstalled(t *testing.T) {
	w := newWorld(t)
	w.client.receipt(w.client.text(w.friend.JID(), "before").ID, types.ReceiptTypeDelivered)
	w.friend.Reinstall()
	sent := w.client.text(w.friend.JID(), "after")
	m := w.friend.Expect(t, whatsapptest.ID(sent.ID))
	if m.Text != "after" || m.Retries != 1 {
		t.Errorf("the phone shows %q after %d retries", m.Text, m.Retries)
	}
	w.client.receipt(sent.ID, types.ReceiptTypeDelivered)
	if e, _ := w.Entry(sent.ID); e.Resent != 1 || e.Stanzas != 1 || e.At(w.friend, 0).Failed != 1 {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestClientLostItsSession lets the client fail to read: the phone encrypts again.
func TestClientLostItsSession(t *testing.T) {
	w := newWorld(t)
	first := must[string](t)(w.friend.Send(within(t), w.owner, "before"))
	w.client.message("before")
	w.client.receipt(w.client.text(w.friend.JID(), "now neither side sends prekeys").ID, types.ReceiptTypeDelivered)
	w.friend.ExpectReceipt(t, first)
	if err := w.client.Store.Sessions.DeleteSession(within(t), w.friend.LID().SignalAddress().String()); err != nil {
		t.Fatal(err)
	}
	// The phone's sessions know that the client has answered, so that it sends no prekey message now.
	id := must[string](t)(w.friend.Send(within(t), w.owner, "after"))
	w.friend.ExpectReceipt(t, id, types.ReceiptTypeRetry)
	if e := w.client.message("after"); e.RetryCount != 1 {
		t.Errorf("the message came after %d retries", e.RetryCount)
	}
	if e, _ := w.Entry(id); e.Resent != 1 {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestDeviceAdded adds a device to a contact, with and without telling the client.
func TestDeviceAdded(t *testing.T) {
	for name, add := range map[string]func(*whatsapptest.Phone) (uint16, error){
		"announced": (*whatsapptest.Phone).AddDevice,
		"quiet":     (*whatsapptest.Phone).AddDeviceQuietly,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.client.receipt(w.client.text(w.friend.JID(), "before").ID, types.ReceiptTypeDelivered)
			device := must[uint16](t)(add(w.friend))
			if err := w.link.Idle(within(t)); err != nil {
				t.Fatal(err)
			}
			if name == "quiet" {
				missed := w.client.text(w.friend.JID(), "the ack of this tells of the device")
				w.friend.Expect(t, whatsapptest.ID(missed.ID), whatsapptest.On(0))
			}
			sent := w.client.text(w.friend.JID(), "for both")
			w.friend.Expect(t, whatsapptest.ID(sent.ID), whatsapptest.On(0))
			w.friend.Expect(t, whatsapptest.ID(sent.ID), whatsapptest.On(device))
			if e, _ := w.Entry(sent.ID); e.ForThem != 2 || e.Sealed != 3 {
				t.Errorf("the ledger says %+v", e)
			}
		})
	}
}
