package whatsapptest_test

import (
	"errors"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestRefusedMessages answers messages with the network's limits. What is refused reaches nobody, and the
// same message may be tried again.
func TestRefusedMessages(t *testing.T) {
	w := newWorld(t)
	for _, code := range []int{463, 475, 479} {
		w.Inject(whatsapptest.RefuseMessage(code).From(w.owner).To(w.friend))
		id := w.client.GenerateMessageID()
		hello := &waE2E.Message{Conversation: proto.String("refused")}
		_, err := w.client.SendMessage(within(t), w.friend.JID(), hello, whatsmeow.SendRequestExtra{ID: id})
		if !errors.Is(err, whatsmeow.ErrServerReturnedError) {
			t.Errorf("a message that was refused with %d: %v", code, err)
		}
		if e, _ := w.Trace(id); e.Acked != 0 || e.At(w.friend, 0).Given != 0 {
			t.Errorf("the ledger says %+v", e)
		}
		must[whatsmeow.SendResponse](t)(w.client.SendMessage(within(t), w.friend.JID(), hello, whatsmeow.SendRequestExtra{ID: id}))
		w.friend.Expect(t, whatsapptest.ID(id))
	}
}

// TestStrangers refuses messages to a person who never wrote, until they do.
func TestStrangers(t *testing.T) {
	w := newWorld(t, whatsapptest.RefusesStrangers(463))
	_, err := w.client.SendMessage(within(t), w.friend.JID(), &waE2E.Message{Conversation: proto.String("who are you?")})
	if !errors.Is(err, whatsmeow.ErrServerReturnedError) {
		t.Errorf("a message to a stranger: %v", err)
	}
	must[string](t)(w.friend.Send(within(t), w.owner, "a friend"))
	w.client.message("a friend")
	w.friend.Expect(t, whatsapptest.ID(w.client.text(w.friend.JID(), "welcome").ID))
}

// TestLostAck confirms nothing, though the message arrives; sending it again under its id shows it once.
func TestLostAck(t *testing.T) {
	w := newWorld(t)
	w.client.receipt(w.client.text(w.friend.JID(), "warm").ID, types.ReceiptTypeDelivered)
	w.Inject(whatsapptest.LoseAck())
	id := w.client.GenerateMessageID()
	hello := &waE2E.Message{Conversation: proto.String("hello")}
	_, err := w.client.SendMessage(within(t), w.friend.JID(), hello, whatsmeow.SendRequestExtra{ID: id, Timeout: 200 * time.Millisecond})
	if !errors.Is(err, whatsmeow.ErrMessageTimedOut) {
		t.Fatalf("a message whose ack was lost: %v", err)
	}
	w.friend.Expect(t, whatsapptest.ID(id))
	must[whatsmeow.SendResponse](t)(w.client.SendMessage(within(t), w.friend.JID(), hello, whatsmeow.SendRequestExtra{ID: id}))
	if e, _ := w.Trace(id); e.Stanzas != 2 || e.Acked != 1 || e.At(w.friend, 0).Given != 1 {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestDroppedSocket cuts the socket under a message: the client resends it by itself.
func TestDroppedSocket(t *testing.T) {
	for name, fault := range map[string]func() *whatsapptest.Fault{"before": whatsapptest.DropBeforeAccept,
		"after": whatsapptest.DropAfterAccept} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.client.receipt(w.client.text(w.friend.JID(), "warm").ID, types.ReceiptTypeDelivered)
			w.Inject(fault())
			sent := w.client.text(w.friend.JID(), "hello")
			w.friend.Expect(t, whatsapptest.ID(sent.ID))
			e, _ := w.Trace(sent.ID)
			if want := map[string]int{"before": 1, "after": 2}[name]; e.Stanzas != want || e.At(w.friend, 0).Given != 1 {
				t.Errorf("the ledger says %+v", e)
			}
			expect[*events.Disconnected](w.client, nil)
		})
	}
}

// TestRateLimited answers requests with 429.
func TestRateLimited(t *testing.T) {
	w := newWorld(t)
	w.Inject(whatsapptest.FailIQ("usync", 429))
	if _, err := w.client.IsOnWhatsApp(within(t), []string{"+" + w.friend.Number()}); !errors.Is(err, whatsmeow.ErrIQRateOverLimit) {
		t.Errorf("a request over the limit: %v", err)
	}
	must[[]types.IsOnWhatsAppResponse](t)(w.client.IsOnWhatsApp(within(t), []string{"+" + w.friend.Number()}))
}

// TestNoCiphertext shows in the ledger a message that was confirmed and reached nobody.
func TestNoCiphertext(t *testing.T) {
	w := newWorld(t)
	w.Inject(whatsapptest.FailIQ("encrypt", 503)) // the client then has no keys of the friend, and sends all the same
	sent := w.client.text(w.friend.JID(), "nobody can read this")
	if e, _ := w.Trace(sent.ID); e.Acked != 1 || e.ForRecipient != 0 {
		t.Errorf("the ledger says %+v", e)
	}
	if all := w.Unencrypted(); len(all) != 1 || all[0].ID != sent.ID {
		t.Errorf("without a ciphertext are %+v", all)
	}
}

// TestDownAndUp takes the server away and brings it back.
func TestDownAndUp(t *testing.T) {
	w := newWorld(t)
	// Nothing is sent before: after a first text whatsmeow asks for a token in the background, and a request that is cut off races
	// with its reconnection (exsync.Event.GetChan writes under a read lock).
	w.Down()
	expect[*events.Disconnected](w.client, nil)
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
	id := must[string](t)(w.friend.Send(within(t), w.owner, "while it was down"))
	w.Up()
	w.client.message("while it was down")
	if e, _ := w.Trace(id); e.At(w.owner, w.link.Device()).Given != 1 {
		t.Errorf("the ledger says %+v", e)
	}
	w.client.text(w.friend.JID(), "after")
}

// TestRefusedUpgrade answers the websocket with an HTTP error for a while.
func TestRefusedUpgrade(t *testing.T) {
	w := newWorld(t)
	w.Refuse(503)
	w.link.End(whatsapptest.Cut)
	expect[*events.Disconnected](w.client, nil)
	w.Refuse(0)
	w.client.dropEvents()
	expect[*events.Connected](w.client, nil)
}
