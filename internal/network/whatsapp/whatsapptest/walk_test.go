package whatsapptest_test

import (
	"fmt"
	"testing"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestWalk is the smallest whole walk: pair, send, receive.
func TestWalk(t *testing.T) {
	s := whatsapptest.StartTest(t)
	owner := s.Phone("6281234567890", whatsapptest.Named("Owner"))
	friend := s.Phone("6289876543210", whatsapptest.Named("Friend"))
	c := newClient(t, s)
	link := c.pair(owner)

	sent := c.text(friend.JID(), "hello")
	m := friend.Expect(t, whatsapptest.Text("hello"))
	if m.ID != sent.ID || m.From != owner.Number() || m.FromMe || m.Kind != whatsapptest.KindText {
		t.Errorf("the friend's phone shows %+v", m)
	}
	c.receipt(sent.ID, types.ReceiptTypeDelivered)
	if copied := owner.Expect(t, whatsapptest.ID(sent.ID)); !copied.FromMe || copied.Chat != friend.LID() {
		t.Errorf("the owner's phone shows %+v", copied)
	}

	id := must[string](t)(friend.Send(within(t), owner, "hello yourself"))
	e := c.message("hello yourself")
	if e.Info.ID != id || e.Info.Sender != friend.LID() || e.Info.SenderAlt != friend.JID() || e.Info.PushName != "Friend" {
		t.Errorf("the client got %+v", e.Info)
	}
	friend.ExpectReceipt(t, id, types.ReceiptTypeInactive)
	if err := link.Idle(within(t)); err != nil {
		t.Fatal(err)
	}

	entry, _ := s.Trace(sent.ID)
	if entry.Stanzas != 1 || entry.Ciphertexts != 2 || entry.ForRecipient != 1 || entry.Acked != 1 {
		t.Errorf("the ledger says %+v", entry)
	}
	if d := entry.At(friend, 0); d.Given != 1 || d.Decrypted != 1 {
		t.Errorf("the ledger says of the friend's phone %+v", d)
	}
	if left := s.Unencrypted(); len(left) != 0 {
		t.Errorf("messages without a ciphertext: %+v", left)
	}
}

// BenchmarkSend sends texts one after the other, each until it is confirmed, and waits until the last is read.
func BenchmarkSend(b *testing.B) {
	w := benchWorld(b)
	var last string
	for i := 0; b.Loop(); i++ {
		last = w.client.text(w.friend.JID(), fmt.Sprint("message ", i)).ID
	}
	w.friend.Expect(b, whatsapptest.ID(last))
}

// BenchmarkReceive lets the friend write and waits until the client has the last.
func BenchmarkReceive(b *testing.B) {
	w := benchWorld(b)
	ctx := b.Context()
	var last string
	for i := 0; b.Loop(); i++ {
		var err error
		if last, err = w.friend.Send(ctx, w.owner, fmt.Sprint("message ", i)); err != nil {
			b.Fatal(err)
		}
	}
	expect(w.client, func(e *events.Message) bool { return e.Info.ID == last })
}

func benchWorld(b *testing.B) *world {
	w := newWorld(b)
	w.greet()
	return w
}
