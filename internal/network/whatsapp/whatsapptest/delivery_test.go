package whatsapptest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestReceiptsBothWays gives every kind of receipt in both directions.
func TestReceiptsBothWays(t *testing.T) {
	w := newWorld(t)
	c := w.client
	a, b := c.text(w.friend.JID(), "one"), c.text(w.friend.JID(), "two")
	c.receipt(b.ID, types.ReceiptTypeDelivered)
	if err := w.friend.Read(a.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	if e := c.receipt(b.ID, types.ReceiptTypeRead); !slices.Equal(e.MessageIDs, []string{a.ID, b.ID}) || e.Chat != w.friend.LID() {
		t.Errorf("the client got receipts for %v in %v", e.MessageIDs, e.Chat)
	}
	if err := w.friend.Played(a.ID); err != nil {
		t.Fatal(err)
	}
	c.receipt(a.ID, types.ReceiptTypePlayed)

	x := must[string](t)(w.friend.Send(within(t), w.owner, "three"))
	y := must[string](t)(w.friend.Send(within(t), w.owner, "four"))
	w.friend.ExpectReceipt(t, y, types.ReceiptTypeInactive)
	if err := c.MarkRead(within(t), []string{x, y}, time.Now(), w.friend.LID(), w.friend.LID()); err != nil {
		t.Fatal(err)
	}
	w.friend.ExpectReceipt(t, x, types.ReceiptTypeRead)
	w.friend.ExpectReceipt(t, y, types.ReceiptTypeRead)
	if err := c.MarkRead(within(t), []string{x}, time.Now(), w.friend.LID(), w.friend.LID(), types.ReceiptTypePlayed); err != nil {
		t.Fatal(err)
	}
	w.friend.ExpectReceipt(t, x, types.ReceiptTypePlayed)
}

// TestPresenceAndTyping shows who is there and who writes, both ways.
func TestPresenceAndTyping(t *testing.T) {
	w := newWorld(t)
	c := w.client
	if err := c.SendPresence(within(t), types.PresenceAvailable); err != nil {
		t.Fatal(err)
	}
	if err := w.owner.ClientOnline(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.SendChatPresence(within(t), w.friend.JID(), types.ChatPresenceComposing, types.ChatPresenceMediaText); err != nil {
		t.Fatal(err)
	}
	if got := must[whatsapptest.Typing](t)(w.friend.AwaitTyping(within(t))); got.From != w.owner.Number() || got.State != "composing" {
		t.Errorf("the friend sees %+v", got)
	}
	id := must[string](t)(w.friend.Send(within(t), w.owner, "active"))
	w.friend.ExpectReceipt(t, id, types.ReceiptTypeDelivered)
}

// TestPhoneSwitchedOff keeps messages until the phone is there again.
func TestPhoneSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.friend.SwitchOff()
	sent := w.client.text(w.friend.JID(), "wait")
	if e, _ := w.Trace(sent.ID); e.At(w.friend, 0).Given != 0 {
		t.Error("a phone that is off was given a message")
	}
	w.friend.SwitchOn()
	w.friend.Expect(t, whatsapptest.ID(sent.ID))
	w.client.receipt(sent.ID, types.ReceiptTypeDelivered)
}

// TestBlocked confirms messages that never arrive.
func TestBlocked(t *testing.T) {
	w := newWorld(t)
	w.friend.Block(w.owner)
	sent := w.client.text(w.friend.JID(), "lost")
	w.owner.Expect(t, whatsapptest.ID(sent.ID))
	if e, _ := w.Trace(sent.ID); e.Acked != 1 || e.At(w.friend, 0).Given != 0 {
		t.Errorf("the ledger says %+v", e)
	}
}

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
	if e, _ := w.Trace(sent.ID); e.Resent != 1 || e.Stanzas != 1 || e.At(w.friend, 0).Failed != 1 {
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
	if e, _ := w.Trace(id); e.Resent != 1 {
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
			if e, _ := w.Trace(sent.ID); e.ForRecipient != 2 || e.Ciphertexts != 3 {
				t.Errorf("the ledger says %+v", e)
			}
		})
	}
}

// TestOfflineQueue keeps what arrives while the client is away, and says how much it was.
func TestOfflineQueue(t *testing.T) {
	w := newWorld(t)
	must[string](t)(w.friend.Send(within(t), w.owner, "first"))
	w.client.message("first")
	if err := w.link.Idle(within(t)); err != nil {
		t.Fatal(err)
	}
	w.client.Disconnect()
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		must[string](t)(w.friend.Send(within(t), w.owner, fmt.Sprint("missed ", i)))
	}
	w.client.dropEvents()
	if err := w.client.Connect(); err != nil {
		t.Fatal(err)
	}
	if e := expect[*events.OfflineSyncPreview](w.client, nil); e.Messages != 5 || e.Total != 5 {
		t.Errorf("the client was promised %+v", e)
	}
	expect[*events.OfflineSyncCompleted](w.client, nil)
	for i := range 5 {
		w.client.message(fmt.Sprint("missed ", i))
	}
	if err := w.link.Idle(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestLostReceipt redelivers a message whose receipt was lost: the client does not show it twice.
func TestLostReceipt(t *testing.T) {
	w := newWorld(t)
	w.Inject(whatsapptest.LoseReceipt().To(w.friend))
	id := must[string](t)(w.friend.Send(within(t), w.owner, "once"))
	w.client.message("once")
	if err := w.AwaitFaults(within(t)); err != nil {
		t.Fatal(err)
	}
	w.link.End(whatsapptest.Cut)
	w.friend.ExpectReceipt(t, id, types.ReceiptTypeInactive)
	if got := count(w.client, func(e *events.Message) bool { return e.Info.ID == id }); got != 1 {
		t.Errorf("the client showed it %d times", got)
	}
	if e, _ := w.Trace(id); e.At(w.owner, w.link.Device()).Given != 2 {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestAtLeastOnce refuses a message in the handler: without a receipt the server keeps it, and it comes
// again after a reconnect.
func TestAtLeastOnce(t *testing.T) {
	s := whatsapptest.StartTest(t)
	owner, friend := s.Phone("6281234567890", whatsapptest.Silent()), s.Phone("6289876543210")
	c := newClient(t, s)
	c.SynchronousAck = true
	c.EnableDecryptedEventBuffer = true
	refused := make(chan struct{}, 1)
	c.refuse = func(e any) bool {
		m, ok := e.(*events.Message)
		if !ok || m.Message.GetConversation() != "keep me" || len(refused) > 0 {
			return false
		}
		refused <- struct{}{}
		return true
	}
	link := c.pair(owner)
	id := must[string](t)(friend.Send(within(t), owner, "keep me"))
	await(t, refused)
	refused <- struct{}{} // from now on it is taken
	if slices.ContainsFunc(friend.Receipts(), func(r whatsapptest.Receipt) bool { return r.Device == link.Device() }) {
		t.Errorf("the friend got %v", friend.Receipts())
	}
	link.End(whatsapptest.Cut)
	c.message("keep me")
	friend.ExpectReceipt(t, id, types.ReceiptTypeInactive)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testTimeout):
		t.Fatal("nothing came")
	}
}
