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
	w.client.forget()
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
	if e, _ := w.Entry(id); e.At(w.owner, w.link.Device()).Given != 2 {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestAtLeastOnce refuses a message in the handler: without a receipt the server keeps it, and it comes
// again after a reconnect.
func TestAtLeastOnce(t *testing.T) {
	s := whatsapptest.StartTest(t, whatsapptest.Config{FewKeys: true})
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
		t.Errorf("the friend was told %v", friend.Receipts())
	}
	link.End(whatsapptest.Cut)
	c.message("keep me")
	friend.ExpectReceipt(t, id, types.ReceiptTypeInactive)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
}
