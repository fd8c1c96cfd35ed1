package whatsapp

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// newGroup makes a group of the owner and others, which the session knows.
func (w *world) newGroup(in *inbox, others ...*whatsapptest.Phone) (*whatsapptest.Group, parley.ContactID) {
	w.t.Helper()
	g := w.owner.CreateGroup("A group", others...)
	chat := groupChat(g.JID())
	expect(in, 0, func(c network.GroupChange) bool { return c.GroupID == chat.Group() && len(c.Added) == len(others)+1 })
	return g, chat
}

// changed waits until the session knows of a change of a group.
func changed(in *inbox, chat parley.ContactID, match func(network.GroupChange) bool) {
	in.t.Helper()
	expect(in, 0, func(c network.GroupChange) bool { return c.GroupID == chat.Group() && match(c) })
}

// keysOf sends a text to a group and returns for how many devices its sender key was encrypted.
func (w *world) keysOf(s *session, chat parley.ContactID, body string, readers ...*whatsapptest.Phone) int {
	w.t.Helper()
	m := w.sent(s, w.text(chat, body))
	for _, phone := range readers {
		if got := phone.Expect(w.t, whatsapptest.ID(string(m.ID))); got.Text != body || got.Chat.Server != types.GroupServer {
			w.t.Errorf("phone %s shows %+v, want %q", phone.Number(), got, body)
		}
	}
	trace, _ := w.Trace(string(m.ID))
	return trace.Ciphertexts - 1
}

func (w *world) retries(body string, phone *whatsapptest.Phone) int {
	w.t.Helper()
	return phone.Expect(w.t, whatsapptest.Text(body)).Retries
}

func TestSenderKeys(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	third := w.Phone("6289876543212", whatsapptest.Named("Citra"))
	g, chat := w.newGroup(in, w.friend, w.other)
	if keys := w.keysOf(s, chat, "first", w.friend, w.other); keys != 3 { // and the owner's phone
		t.Errorf("the first message carried %d keys, want 3", keys)
	}
	if keys := w.keysOf(s, chat, "second", w.friend, w.other); keys != 0 {
		t.Errorf("the second message carried %d keys", keys)
	}

	g.Add(w.owner, third)
	changed(in, chat, func(c network.GroupChange) bool { return slices.Contains(c.Added, parley.NewContactID(third.Number())) })
	if keys := w.keysOf(s, chat, "with the third", w.friend, w.other, third); keys != 1 {
		t.Errorf("after one joined a message carried %d keys, want 1", keys)
	}

	g.Remove(w.owner, w.friend)
	changed(in, chat, func(c network.GroupChange) bool { return slices.Contains(c.Removed, friendID) })
	if keys := w.keysOf(s, chat, "without the friend", w.other, third); keys != 3 {
		t.Errorf("after one left a message carried %d keys, want new ones for all 3", keys)
	}
	if keys := w.keysOf(s, chat, "still without", w.other, third); keys != 0 {
		t.Errorf("then a message carried %d keys", keys)
	}
	for _, m := range w.friend.Inbox() {
		if m.Text == "without the friend" || m.Text == "still without" {
			t.Errorf("who left reads %q", m.Text)
		}
	}

	device, err := third.AddDevice()
	must(t, err)
	must(t, w.link.Idle(within(t)))
	w.keysOf(s, chat, "to a new device", w.other, third)
	third.Expect(t, whatsapptest.Text("to a new device"), whatsapptest.On(device))
	w.sealedAll()
}

// TestSenderKeyOutlivesTheDriver restarts the driver: who has the key is stored.
func TestSenderKeyOutlivesTheDriver(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	_, chat := w.newGroup(in, w.friend, w.other)
	w.keysOf(s, chat, "before", w.friend, w.other)
	must(t, s.Close())
	must(t, w.driver.Close())
	w.open()
	s, in = w.start()
	in.status(parley.ChannelWorking)
	if keys := w.keysOf(s, chat, "after", w.friend, w.other); keys != 0 {
		t.Errorf("after a restart a message carried %d keys", keys)
	}
}

// TestGroupRetry has a member lose its keys: it asks for the message again and gets the sender key with it.
func TestGroupRetry(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	g, chat := w.newGroup(in, w.friend, w.other)
	w.keysOf(s, chat, "before", w.friend, w.other)
	w.friend.Reinstall()
	w.keysOf(s, chat, "lost", w.friend, w.other)
	if w.retries("lost", w.friend) == 0 {
		t.Error("the phone could read a message without the key")
	}
	w.keysOf(s, chat, "found", w.friend, w.other)
	if w.retries("found", w.friend) != 0 {
		t.Error("the phone has no key after the retry")
	}
	conn := s.current.Load()
	m := w.sent(s, w.text(chat, "secret"))
	g.Remove(w.owner, w.friend)
	changed(in, chat, func(c network.GroupChange) bool { return slices.Contains(c.Removed, friendID) })
	if raw := conn.messageForRetry(w.friend.LID(), g.JID(), types.MessageID(m.ID)); raw != nil {
		t.Error("who left gets a message again")
	}
	if raw := conn.messageForRetry(w.other.LID(), g.JID(), types.MessageID(m.ID)); raw.GetConversation() != "secret" {
		t.Errorf("a member gets %v again", raw)
	}
	conn.s.groupSent.remove(types.MessageID(m.ID)) // as after a restart
	if raw := conn.messageForRetry(w.other.LID(), g.JID(), types.MessageID(m.ID)); raw.GetConversation() != "secret" {
		t.Errorf("a member gets %v again, from the gateway", raw)
	}
	w.sealedAll()
}

// TestGroupKeysAreMissing has the network refuse the keys of members: nothing is sent that they could not read.
func TestGroupKeysAreMissing(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	_, chat := w.newGroup(in, w.friend, w.other)
	w.Inject(whatsapptest.FailIQ("encrypt", 429))
	m := w.text(chat, "for all")
	wantPause(t, send(s, m))
	if e, sent := w.Trace(string(m.ID)); sent {
		t.Errorf("the network was given %+v", e)
	}
	w.sent(s, m)
	for _, phone := range []*whatsapptest.Phone{w.friend, w.other} {
		if got := phone.Expect(t, whatsapptest.ID(string(m.ID))); got.Retries != 0 {
			t.Errorf("a member had to ask for it %d times", got.Retries)
		}
	}
	conn := s.current.Load()
	alone := &groupMessage{devices: []groupDevice{{conn.lid, conn.lid}}}
	if !conn.isReadable(alone) {
		t.Error("a group without others is unreadable")
	}
	alone.devices = append(alone.devices, groupDevice{w.friend.LID(), w.friend.LID()})
	if conn.isReadable(alone) {
		t.Error("a message without a key is readable")
	}
}

// TestNewPhoneOfAMember gives a member that installed the app again the key with the next message.
func TestNewPhoneOfAMember(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	_, chat := w.newGroup(in, w.friend, w.other)
	w.keysOf(s, chat, "before", w.friend, w.other)
	w.friend.AnnounceReinstall()
	ctx := within(t)
	for has := true; has; time.Sleep(time.Millisecond) { // whatsmeow confirms the notification before it removes the session
		var err error
		has, err = s.current.Load().client.Store.ContainsSession(ctx, w.friend.LID().SignalAddress())
		must(t, errors.Join(err, ctx.Err()))
	}
	if keys := w.keysOf(s, chat, "after", w.friend, w.other); keys != 1 {
		t.Errorf("a message carried %d keys, want 1", keys)
	}
	if n := w.retries("after", w.friend); n != 0 {
		t.Errorf("the member had to ask for it %d times", n)
	}
}

// TestGroupFaults has the network refuse, lose and cut messages to a group.
func TestGroupFaults(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	g, chat := w.newGroup(in, w.friend, w.other)
	w.Inject(whatsapptest.LoseAck())
	w.driver.ackTimeout = 2 * time.Second
	m := w.text(chat, "once")
	if err := send(s, m); network.ToClass(err) != network.Unknown {
		t.Errorf("without a confirmation: %v", err)
	}
	w.sent(s, m)
	if got := w.friend.Expect(t, whatsapptest.ID(string(m.ID))); got.Copies != 1 {
		t.Errorf("the message arrived %d times", got.Copies)
	}
	w.keysOf(s, chat, "after it", w.friend, w.other)
	w.Inject(whatsapptest.RefuseMessage(421))
	if err := send(s, w.text(chat, "stale")); network.ToClass(err) != network.Temporary {
		t.Errorf("with other members than the network knows: %v", err)
	}
	g.Remove(w.owner, w.owner)
	changed(in, chat, func(c network.GroupChange) bool { return slices.Contains(c.Removed, parley.NewContactID(ownerNumber)) })
	if err := send(s, w.text(chat, "left")); network.ToClass(err) != network.Permanent {
		t.Errorf("to a group that the account left: %v", err)
	}
}

// manyMembers makes a group of the owner and 199 others.
func (w *world) manyMembers(in *inbox) (*whatsapptest.Group, parley.ContactID, []*whatsapptest.Phone) {
	w.t.Helper()
	phones := []*whatsapptest.Phone{w.friend, w.other}
	for i := range 197 {
		phones = append(phones, w.Phone(fmt.Sprintf("62820%08d", i)))
	}
	g, chat := w.newGroup(in, phones...)
	return g, chat, phones
}

func TestGroupOfTwoHundred(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	g, chat, phones := w.manyMembers(in)
	if keys := w.keysOf(s, chat, "first", phones...); keys != len(phones)+1 {
		t.Errorf("the first message carried %d keys, want %d", keys, len(phones)+1)
	}
	for i := range 3 {
		if keys := w.keysOf(s, chat, fmt.Sprint("message ", i), phones...); keys != 0 {
			t.Errorf("message %d carried %d keys", i, keys)
		}
	}
	phones[7].Reinstall()
	w.keysOf(s, chat, "lost by one", phones...)
	g.Remove(w.owner, phones[3])
	changed(in, chat, func(c network.GroupChange) bool { return len(c.Removed) == 1 })
	left := slices.Delete(slices.Clone(phones), 3, 4)
	if keys := w.keysOf(s, chat, "without one", left...); keys != len(left)+1 {
		t.Errorf("after one left a message carried %d keys, want %d", keys, len(left)+1)
	}
	w.sealedAll()
	if bad := w.Unreadable(); len(bad) != 0 {
		t.Errorf("%d messages could not be read", len(bad))
	}
}

// BenchmarkGroupOfTwoHundred compares a send to a group of 200 with whatsmeow's own on the same keystore. Phones are off, so
// that the time is that of the client and the loopback server.
func BenchmarkGroupOfTwoHundred(b *testing.B) {
	w := newWorld(b)
	s, in := w.paired()
	g, chat, phones := w.manyMembers(in)
	w.keysOf(s, chat, "first", phones...)
	for _, phone := range phones {
		phone.SwitchOff()
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	run := func(name string, send func(i int) error) {
		b.Run(name, func(b *testing.B) {
			began := cpu()
			for i := range b.N {
				must(b, send(i))
			}
			b.ReportMetric(float64(cpu()-began)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
	run("driver", func(i int) error { return send(s, w.text(chat, fmt.Sprint("message ", i))) })
	client := s.current.Load().client
	run("whatsmeow", func(i int) error {
		_, err := client.SendMessage(b.Context(), g.JID(), &waE2E.Message{Conversation: new(fmt.Sprint("bare ", i))},
			whatsmeow.SendRequestExtra{Timeout: time.Minute})
		return err
	})
}

// TestOnlyAdminsWrite says why a group refuses a message, and not that the channel is not in it.
func TestOnlyAdminsWrite(t *testing.T) {
	w := newWorld(t)
	g := w.friend.CreateGroup("News", w.owner)
	s, _ := w.paired()
	w.sent(s, w.text(groupChat(g.JID()), "anybody may write"))
	g.OnlyAdminsWrite()
	if err := send(s, w.text(groupChat(g.JID()), "not any more")); !errors.Is(err, errOnlyAdmins) {
		t.Errorf("in a group of admins: %v", err)
	}
	g.Remove(w.friend, w.owner)
	if err := send(s, w.text(groupChat(g.JID()), "removed")); !errors.Is(err, network.ErrNotInGroup) {
		t.Errorf("after it was removed: %v", err)
	}
}
