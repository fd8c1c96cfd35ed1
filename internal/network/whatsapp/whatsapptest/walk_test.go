package whatsapptest_test

import (
	"testing"

	"go.mau.fi/whatsmeow/types"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestWalk is the smallest whole story: pair, send, receive.
func TestWalk(t *testing.T) {
	s := whatsapptest.StartTest(t, whatsapptest.Config{})
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

	entry, _ := s.Entry(sent.ID)
	if entry.Stanzas != 1 || entry.Sealed != 2 || entry.ForThem != 1 || entry.Acked != 1 {
		t.Errorf("the ledger says %+v", entry)
	}
	if d := entry.At(friend, 0); d.Given != 1 || d.Decrypted != 1 || d.Shown != 1 {
		t.Errorf("the ledger says of the friend's phone %+v", d)
	}
	if left := s.Unsealed(); len(left) != 0 {
		t.Errorf("messages without a ciphertext: %+v", left)
	}
}
