package whatsapp

import (
	"slices"
	"testing"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// asked counts the messages that the phone was asked for.
func (w *world) asked() int {
	return len(slices.DeleteFunc(w.Traces(), func(e whatsapptest.Trace) bool { return !e.Peer || e.At(w.owner, 0).Decrypted == 0 }))
}

// TestUnreadable reports a message that cannot be read, asks the phone and the sender for it, and delivers it when it comes. Nobody
// waits for that, even if the network never confirms the request to the phone.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	before := w.asked()
	w.Inject(whatsapptest.LosePeerAck().Times(3)) // whatsmeow would wait for 75 s each
	var ids []string
	for range 3 {
		ids = append(ids, w.friend.SendGarbled(w.owner, "at last"))
	}
	_, err := w.other.Send(within(t), w.owner, "meanwhile")
	must(t, err)
	in.said("meanwhile")
	for _, id := range ids {
		got := expect(in, 0, func(u network.Unreadable) bool { return string(u.ID) == id })
		if got.From != friendID || got.Group != "" || got.Reason != parley.Undecryptable || got.At.IsZero() {
			t.Errorf("it came as %+v", got)
		}
		expect(in, 0, func(m network.Message) bool { return string(m.ID) == id && m.Content.Text() == "at last" })
	}
	must(t, w.AwaitFaults(within(t)))
	once := w.friend.SendViewOnce(w.owner)
	if got := expect(in, 0, func(u network.Unreadable) bool { return string(u.ID) == once }); got.Reason != parley.ViewOnce {
		t.Errorf("it came as %+v", got)
	}
	for range maxAsked + 10 { // more than a sender may
		w.friend.SendGarbled(w.owner, "")
	}
	last := w.friend.SendGarbled(w.owner, "")
	expect(in, 0, func(u network.Unreadable) bool { return string(u.ID) == last })
	must(t, w.link.Idle(within(t)))
	must(t, s.Close()) // and with it everything that asks
	if n := w.asked() - before; n > maxAsked || n < 4 {
		t.Errorf("the phone was asked for %d messages", n)
	}
	count := 0
	for _, e := range in.all() {
		if u, ok := e.(network.Unreadable); ok && string(u.ID) == ids[0] {
			count++
		}
	}
	if count != 1 {
		t.Errorf("one message was reported %d times", count)
	}
}

// TestRetryIsTriedAgain has the gateway's store fail when a contact asks for a message: the contact gets it nevertheless.
func TestRetryIsTriedAgain(t *testing.T) {
	for name, chat := range map[string]func(w *world, in *inbox) parley.ContactID{
		"direct":  func(*world, *inbox) parley.ContactID { return friendID },
		"a group": func(w *world, in *inbox) parley.ContactID { _, chat := w.newGroup(in, w.friend); return chat },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, in := w.paired()
			to := chat(w, in)
			w.friend.Expect(t, whatsapptest.ID(string(w.sent(s, w.text(to, "before")).ID)))
			w.friend.SwitchOff()
			m := w.sent(s, w.text(to, "for a new phone"))
			secret := sentSecret(s, m)
			must(t, w.driver.Close())
			w.friend.Reinstall()
			w.open()
			w.mu.Lock()
			w.busy = 2
			w.mu.Unlock()
			_, in = w.start()
			in.status(parley.ChannelWorking)
			w.friend.SwitchOn()
			got := w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
			if got.Retries == 0 || got.Text != "for a new phone" {
				t.Errorf("the phone shows %+v", got)
			}
			if len(secret) != 32 || !slices.Equal(got.Raw.GetMessageContextInfo().GetMessageSecret(), secret) {
				t.Errorf("it has another secret than before: %x, not %x", got.Raw.GetMessageContextInfo().GetMessageSecret(), secret)
			}
			in.got(parley.Delivered, m.ID)
			must(t, w.link.Idle(within(t))) // the request is acknowledged
		})
	}
}

// sentSecret is the secret that a message was sent with.
func sentSecret(s *session, m *parley.Message) []byte {
	if raw, known := s.groupSent.get(types.MessageID(m.ID)); known {
		return raw.GetMessageContextInfo().GetMessageSecret()
	}
	conn := s.current.Load()
	raw, err := conn.compose(conn.ctx, m, types.EmptyJID)
	to, errAddress := conn.findAddress(conn.ctx, m.Chat)
	if err != nil || errAddress != nil {
		return nil
	}
	conn.addSecret(raw, to, types.MessageID(m.ID))
	return raw.GetMessageContextInfo().GetMessageSecret()
}

// TestSeenIsConfirmed marks messages as seen without a ping for each of them.
func TestSeenIsConfirmed(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	before := w.Asked("w:p")
	for range 20 {
		id, err := w.friend.Send(within(t), w.owner, "hello")
		must(t, err)
		expect(in, 0, func(m network.Message) bool { return string(m.ID) == id })
		w.sent(s, w.outgoing(friendID, parley.Seen{Target: parley.MessageRef{Chat: friendID, ID: parley.MessageID(id)}}))
		w.friend.ExpectReceipt(t, id, types.ReceiptTypeRead)
	}
	if pings := w.Asked("w:p") - before; pings > 10 { // some of the connection itself
		t.Errorf("20 receipts cost %d pings", pings)
	}
}
