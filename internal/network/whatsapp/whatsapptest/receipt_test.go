package whatsapptest_test

import (
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
		t.Errorf("the client was told of %v in %v", e.MessageIDs, e.Chat)
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
	w.friend.Type(w.owner, types.ChatPresenceComposing)
	expect(c, func(e *events.ChatPresence) bool { return e.State == types.ChatPresenceComposing })

	id := must[string](t)(w.friend.Send(within(t), w.owner, "active"))
	w.friend.ExpectReceipt(t, id, types.ReceiptTypeDelivered)
}

// TestPhoneSwitchedOff keeps messages until the phone is there again.
func TestPhoneSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.friend.SwitchOff()
	sent := w.client.text(w.friend.JID(), "wait")
	if e, _ := w.Entry(sent.ID); e.At(w.friend, 0).Given != 0 {
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
	if e, _ := w.Entry(sent.ID); e.Acked != 1 || e.At(w.friend, 0).Given != 0 {
		t.Errorf("the ledger says %+v", e)
	}
}
