package whatsapp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/wait"
)

// TestNewDevices reaches a device that a contact linked with the next message, whether the network announced it,
// by LID or by number, or not: then the confirmation of the message does.
func TestNewDevices(t *testing.T) {
	for name, test := range map[string]struct {
		add    func(*whatsapptest.Phone) (uint16, error)
		resent int
	}{
		"by LID": {(*whatsapptest.Phone).AddDevice, 0}, "by number": {(*whatsapptest.Phone).AddDeviceByNumber, 0},
		"quiet": {(*whatsapptest.Phone).AddDeviceQuietly, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, _ := w.paired()
			w.sent(s, w.text(friendID, "before"))
			device, err := test.add(w.friend)
			must(t, err)
			must(t, w.link.Idle(within(t)))
			m := w.sent(s, w.text(friendID, "next"))
			w.friend.Expect(t, whatsapptest.ID(string(m.ID)), whatsapptest.On(device))
			if e, _ := w.Trace(string(m.ID)); e.Resent != test.resent {
				t.Errorf("it was sent again %d times, want %d", e.Resent, test.resent)
			}
			for _, shown := range w.friend.Inbox() {
				if shown.ID == string(m.ID) && shown.Copies != 1 {
					t.Errorf("device %d shows it %d times", shown.Device, shown.Copies)
				}
			}
			w.sealedAll()
		})
	}
}

// TestLostKeysDelayOneContact never answers the request for the keys of a new contact: the others do not notice.
func TestLostKeysDelayOneContact(t *testing.T) {
	for _, namespace := range []string{"encrypt", "usync"} {
		t.Run(namespace, func(t *testing.T) {
			w := newWorld(t)
			w.driver.queryRetryAfter = time.Hour
			s, _ := w.paired()
			w.sent(s, w.text(otherID, "so that this one is known"))
			w.Inject(whatsapptest.LoseIQ(namespace))
			ctx, cancel := context.WithCancel(t.Context())
			stranger := make(chan error, 1)
			go func() { stranger <- s.Send(ctx, []*parley.Message{w.text(friendID, "to a stranger")})[0] }()
			must(t, w.AwaitFaults(within(t)))
			w.sent(s, w.text(otherID, "meanwhile"))
			select {
			case err := <-stranger:
				t.Errorf("the stranger's message is done: %v", err)
			default:
			}
			cancel()
			<-stranger
		})
	}
}

// TestLostAnswerIsAskedForAgain does not leave a contact without its message for long. Keys are asked for only once by a send, because
// each request uses one up.
func TestLostAnswerIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(otherID, "so that our own devices are known"))
	found, err := s.current.Load().lookUpNumber(t.Context(), friendID) // which is not asked for again
	if err != nil || !found {
		t.Fatal(found, err)
	}
	w.driver.queryRetryAfter = 10 * time.Millisecond
	w.Inject(whatsapptest.LoseIQ("usync"), whatsapptest.LoseIQ("encrypt"))
	m, before := w.text(friendID, "to a stranger"), w.Asked("encrypt")
	w.driver.queryTimeout = 3 * time.Second
	if err := send(s, m); network.ToClass(err) != network.Temporary {
		t.Errorf("without keys: %v", err)
	}
	if asked := w.Asked("encrypt") - before; asked != 1 {
		t.Errorf("the keys were asked for %d times", asked)
	}
	w.sent(s, m)
	w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
}

// TestWrongHashes has the network name other devices with every message. The devices are asked for again, but not every time.
func TestWrongHashes(t *testing.T) {
	const members, messages = 1000, 20
	w := newWorld(t)
	s, in := w.paired()
	phones := []*whatsapptest.Phone{w.friend, w.other}
	for i := range members - 3 {
		phones = append(phones, w.Phone(fmt.Sprintf("62820%08d", i)))
	}
	for _, p := range phones {
		p.SwitchOff()
	}
	_, group := w.newGroup(in, phones...)
	w.WrongHashes()
	for _, chat := range []parley.ContactID{group, friendID} {
		before := w.Asked("usync")
		for range messages {
			w.sent(s, w.text(chat, "hello"))
		}
		if asked, most := w.Asked("usync")-before, map[bool]int{true: 3, false: 6}[chat.IsGroup()]; asked > most {
			t.Errorf("%d messages to %s cost %d queries, want at most %d", messages, chat, asked, most)
		}
	}
}

// TestTokensAreGivenOnceAWeek writes to a contact in several connections.
func TestTokensAreGivenOnceAWeek(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	for range 4 {
		w.sent(s, w.text(friendID, "hello"))
		w.sent(s, w.text(friendID, "once more"))
		skip := in.count()
		w.link.End(whatsapptest.Cut)
		in.statusAfter(skip, parley.ChannelWorking)
	}
	if given := w.Asked("privacy"); given != 1 {
		t.Errorf("the contact was given %d tokens", given)
	}
	skip := in.count()
	s.tokens.put(w.friend.LID(), 1, 1) // long ago
	w.Inject(whatsapptest.FailIQ("privacy", 500))
	w.sent(s, w.text(friendID, "it fails"))
	must(t, w.AwaitFaults(within(t)))
	w.link.End(whatsapptest.Cut)
	in.statusAfter(skip, parley.ChannelWorking)
	if _, given := s.tokens.get(w.friend.LID()); given {
		t.Error("a token that was refused counts as given")
	}
}

// TestStrangersDoNotWaitForEachOther writes to many new contacts at once: their devices, and their keys, are
// asked for at the same time.
func TestStrangersDoNotWaitForEachOther(t *testing.T) {
	const people = parallelCalls
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(otherID, "so that our own devices are known"))
	var phones []*whatsapptest.Phone
	for i := range people {
		p := w.Phone(fmt.Sprintf("62899000000%02d", i))
		phones = append(phones, p)
		_, err := s.current.Load().lookUpNumber(t.Context(), parley.NewContactID(p.Number()))
		must(t, err)
	}
	w.Inject(whatsapptest.HoldIQ("usync", people), whatsapptest.HoldIQ("encrypt", people))
	var sending sync.WaitGroup
	for _, p := range phones {
		sending.Go(func() {
			if err := s.Send(within(t), []*parley.Message{w.text(parley.NewContactID(p.Number()), "hello")})[0]; err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	for _, p := range phones {
		p.Expect(t, whatsapptest.Text("hello"))
	}
	w.sealedAll()
}

// TestOwnDevicesAreNotWaitedFor sends a message though the network does not say which devices the account has.
// Those get it when it does.
func TestOwnDevicesAreNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.driver.queryRetryAfter = 3 * time.Second
	s, _ := w.paired()
	conn := s.current.Load()
	conn.s.devices.invalidate(conn.lid)
	_, err := conn.lookUpNumber(t.Context(), friendID)
	must(t, err)
	w.Inject(whatsapptest.LoseIQ("usync"))
	pending := conn.resolveOwn()
	must(t, w.AwaitFaults(within(t)))
	m := w.sent(s, w.text(friendID, "hello"))
	select {
	case <-pending.ready:
		t.Log("the machine is too slow to see anything")
	default:
	}
	w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
	w.owner.Expect(t, whatsapptest.ID(string(m.ID)))
}

// TestLostMediaHosts asks for the media servers again when the answer is lost: files wait no longer than that.
func TestLostMediaHosts(t *testing.T) {
	w := newWorld(t)
	w.driver.queryRetryAfter = time.Second
	s, _ := w.paired()
	w.Inject(whatsapptest.LoseIQ("w:m"))
	var sending sync.WaitGroup
	for _, to := range []parley.ContactID{friendID, otherID} {
		file := w.keepFile(t, []byte("a file for "+to), parley.Media{MIME: "text/plain"})
		sending.Go(func() { must(t, send(s, w.outgoing(to, parley.File{Media: file}))) })
	}
	sending.Wait()
	must(t, w.AwaitFaults(within(t)))
}

// TestReceiptWithoutConfirmation gives the sink the receipt of a message whose confirmation is lost. The gateway
// ends the send then.
func TestReceiptWithoutConfirmation(t *testing.T) {
	w := newWorld(t)
	w.driver.ackTimeout = time.Hour
	s, in := w.paired()
	w.Inject(whatsapptest.LoseAck())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := w.text(friendID, "hello")
	sent := make(chan error, 1)
	go func() { sent <- s.Send(ctx, []*parley.Message{m})[0] }()
	in.got(parley.Delivered, m.ID)
	cancel()
	select {
	case err := <-sent:
		if network.ToClass(err) != network.Unknown {
			t.Errorf("it is %v", err)
		}
	case <-within(t).Done():
		t.Error("the send goes on")
	}
}

// TestUnwrittenIsNotUnknown sends on a socket that is closed: the network has nothing of the message, and the line
// is not used any more.
func TestUnwrittenIsNotUnknown(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(friendID, "so that keys are known"))
	conn := s.current.Load()
	conn.client.Disconnect()
	err := conn.send(t.Context(), w.friend.LID(), network.RandomID("3EB0"), &waE2E.Message{Conversation: new("hello")})
	if network.ToClass(err) != network.Disconnected {
		t.Errorf("it is %v", err)
	}
	if s.current.Load() == conn {
		t.Error("the line is still used")
	}
}

// TestTimedOutSendsLeaveNothing forgets a message that was never confirmed.
func TestTimedOutSendsLeaveNothing(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.driver.ackTimeout = time.Millisecond
	w.Inject(whatsapptest.LoseAck())
	if err := send(s, w.text(friendID, "hello")); network.ToClass(err) != network.Unknown {
		t.Errorf("it is %v", err)
	}
	conn := s.current.Load()
	conn.acks.mu.Lock()
	defer conn.acks.mu.Unlock()
	if n := len(conn.acks.waiting); n != 0 {
		t.Errorf("%d are still waited for", n)
	}
}

// TestChatsDoNotWait sends to several people at once: the network has all of it before it confirms anything.
func TestChatsDoNotWait(t *testing.T) {
	const people = 8
	w := newWorld(t)
	s, _ := w.paired()
	var phones []*whatsapptest.Phone
	for i := range people {
		p := w.Phone(fmt.Sprintf("62899000000%02d", i))
		phones = append(phones, p)
		w.sent(s, w.text(parley.NewContactID(p.Number()), "hello")) // so that keys need not be fetched
	}
	w.driver.ackTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sending sync.WaitGroup
	for _, p := range phones {
		w.Inject(whatsapptest.LoseAck().To(p)) // a chat that waited for another's confirmation would wait for ever
		sending.Go(func() {
			m := w.text(parley.NewContactID(p.Number()), "all at once")
			if err := s.Send(ctx, []*parley.Message{m})[0]; network.ToClass(err) != network.Unknown {
				t.Errorf("a message that was not confirmed: %v", err)
			}
		})
	}
	must(t, w.AwaitFaults(within(t)))
	cancel()
	sending.Wait()
	for _, p := range phones {
		p.Expect(t, whatsapptest.Text("all at once"))
	}
	w.sealedAll()
	if all := w.Unreadable(); len(all) != 0 {
		t.Errorf("nobody could read %+v", all)
	}
}

// TestSameAsWhatsmeow compares what we give the network with what whatsmeow's own SendMessage gives it: the
// same names everywhere, and the same values but for what is encrypted.
func TestSameAsWhatsmeow(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(friendID, "sessions exist"))
	must(t, s.Close())
	conn, stanzas := w.tapped(s)
	to := w.friend.LID()
	group := w.friend.CreateGroup("Club", w.owner, w.other).JID()
	must(t, conn.client.Store.PrivacyTokens.PutPrivacyTokens(t.Context(), store.PrivacyToken{User: to, Token: []byte("token"),
		Timestamp: time.Now()}))
	for name, raw := range map[string]*waE2E.Message{
		"text":     {Conversation: new("hello")},
		"preview":  {ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("hello"), Title: new("a page")}},
		"image":    {ImageMessage: &waE2E.ImageMessage{}},
		"video":    {VideoMessage: &waE2E.VideoMessage{}},
		"voice":    {AudioMessage: &waE2E.AudioMessage{PTT: new(true)}},
		"sticker":  {StickerMessage: &waE2E.StickerMessage{}},
		"file":     {DocumentMessage: &waE2E.DocumentMessage{}},
		"caption":  {DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{}}}},
		"place":    {LocationMessage: &waE2E.LocationMessage{}},
		"no more":  conn.client.BuildReaction(to, types.EmptyJID, "3EB0", ""),
		"reaction": conn.client.BuildReaction(to, types.EmptyJID, "3EB0", "👍"),
		"deletion": conn.client.BuildRevoke(to, types.EmptyJID, "3EB0"),
		"contact":  {ContactMessage: &waE2E.ContactMessage{}},
		"contacts": {ContactsArrayMessage: &waE2E.ContactsArrayMessage{}},
		"timer":    composeTimer(&parley.Message{}, parley.Timer{Seconds: 86400}),
		"edit":     conn.client.BuildEdit(to, "3EB0", &waE2E.Message{Conversation: new("hello")}),
		"poll":     composePoll(parley.Poll{Title: "Tea?", Options: []string{"yes", "no"}}, make([]byte, 32), nil),
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := types.MessageID("3EB0AAAA"+name), types.MessageID("3EB0BBBB"+name)
			must(t, conn.transmit(t.Context(), to, mine, raw))
			_, err := conn.client.SendMessage(t.Context(), to, raw, whatsmeow.SendRequestExtra{ID: theirs})
			must(t, err)
			a, b := outline(stanzas.of(t, mine), mine), outline(stanzas.of(t, theirs), theirs)
			if !slices.Equal(a, b) || len(a) < 10 || !slices.Contains(a, "<tctoken>") ||
				slices.Contains(a, "<reporting>") != (raw.ReactionMessage == nil) {
				t.Errorf("ours:   %q\ntheirs: %q", a, b)
			}
		})
		t.Run(name+" in a group", func(t *testing.T) {
			mine, theirs := types.MessageID("3EB0CCCC"+name), types.MessageID("3EB0DDDD"+name)
			must(t, conn.groupKeys.PutKeyHolders(t.Context(), group.String(), nil)) // so that ours has the keys, as theirs always has
			must(t, conn.transmitToGroup(t.Context(), group, mine, raw))
			_, err := conn.client.SendMessage(t.Context(), group, raw, whatsmeow.SendRequestExtra{ID: theirs})
			must(t, err)
			a, b := outline(stanzas.of(t, mine), mine), outline(stanzas.of(t, theirs), theirs)
			slices.Sort(a) // the members are in another order
			slices.Sort(b)
			if i := slices.Index(a, "enc decrypt-fail=hide"); i >= 0 { // once more than theirs: also on what all can read
				a = slices.Delete(a, i, i+1)
			}
			if !slices.Equal(a, b) || len(a) < 10 {
				t.Errorf("ours:   %q\ntheirs: %q", a, b)
			}
		})
	}
}

// TestResendIsLikeARetry compares the message to a device that it has not reached with whatsmeow's answer to a device that could not read
// it: the network knows that shape.
func TestResendIsLikeARetry(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(friendID, "sessions exist"))
	must(t, s.Close())
	conn, stanzas := w.tapped(s)
	to, raw := w.friend.LID(), &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}}
	p, err := conn.prepare(t.Context(), to, "3EB0AAAA", raw)
	must(t, err)
	_, err = conn.encryptAndSend(t.Context(), p, recipients{devices: []types.JID{to}}, true)
	must(t, err)
	_, err = conn.prepare(t.Context(), to, "3EB0BBBB", raw)
	must(t, err)
	node := waBinary.Node{Tag: "receipt", Attrs: waBinary.Attrs{"from": to, "id": "3EB0BBBB", "type": "retry"}, Content: []waBinary.Node{
		{Tag: "retry", Attrs: waBinary.Attrs{"id": "3EB0BBBB", "t": "1", "count": "1"}},
	}}
	receipt := &events.Receipt{MessageSource: types.MessageSource{Chat: to, Sender: to}, MessageIDs: []types.MessageID{"3EB0BBBB"}}
	must(t, conn.inner().HandleRetryReceipt(t.Context(), receipt, &node))
	shape := func(id types.MessageID) []string {
		return slices.DeleteFunc(outline(stanzas.of(t, id), id), func(s string) bool {
			return strings.HasPrefix(s, "message t=") || strings.HasPrefix(s, "enc count=")
		})
	}
	if a, b := shape("3EB0AAAA"), shape("3EB0BBBB"); !slices.Equal(a, b) || len(a) < 7 {
		t.Errorf("ours:  %q\nretry: %q", a, b)
	}
}

// TestGroupReactionIsHidden shows nothing to a member that cannot read a reaction, also when all members have the key.
func TestGroupReactionIsHidden(t *testing.T) {
	w := newWorld(t)
	group := w.friend.CreateGroup("Club", w.owner).JID()
	s, _ := w.paired()
	must(t, s.Close())
	conn, stanzas := w.tapped(s)
	for _, id := range []types.MessageID{"3EB0AAAA", "3EB0BBBB"} {
		must(t, conn.transmitToGroup(t.Context(), group, id, conn.client.BuildReaction(group, w.friend.LID(), "3EB0", "x")))
		stanza := stanzas.of(t, id)
		if enc := stanza.GetChildByTag("enc"); enc.Attrs["decrypt-fail"] != "hide" {
			t.Errorf("%s has %v", id, enc.Attrs)
		}
	}
}

// outline lists everything in a stanza but its id and what is encrypted.
func outline(n waBinary.Node, id types.MessageID) []string {
	var all []string
	for name, value := range n.Attrs {
		if text := fmt.Sprint(value); text != id {
			all = append(all, fmt.Sprintf("%s %s=%s", n.Tag, name, text))
		}
	}
	slices.Sort(all)
	for _, child := range n.GetChildren() {
		all = append(all, outline(child, id)...)
	}
	return append([]string{"<" + n.Tag + ">"}, all...)
}

// tapped is a line on the device of a closed session, and what it gives the network.
func (w *world) tapped(s *session) (*connection, *tap) {
	w.t.Helper()
	rec, err := w.driver.keys.Channel(w.t.Context(), code)
	must(w.t, err)
	device, err := w.driver.keys.Device(w.t.Context(), rec.JID)
	must(w.t, err)
	conn := &connection{s: s, jid: *device.ID, lid: device.LID, secrets: device.MsgSecrets, log: newLogger(w.driver.config.Log, code),
		ctx: w.t.Context()}
	conn.groupKeys, _ = device.SenderKeys.(keystore.GroupKeys)
	stanzas := &tap{Logger: waLog.Noop, received: func(n *waBinary.Node) {
		if n.Tag == "ack" {
			conn.acks.deliver(n.Attrs["id"].(string), n)
		}
	}}
	c := whatsmeow.NewClient(device, stanzas)
	c.SendReportingTokens = true
	conn.client = c
	must(w.t, w.Trust().Apply(c))
	up := make(chan struct{}, 1)
	c.AddEventHandler(func(e any) {
		if _, ok := e.(*events.Connected); ok {
			wait.Notify(up)
		}
	})
	must(w.t, c.ConnectContext(w.t.Context()))
	w.t.Cleanup(c.Disconnect)
	<-up
	w.t.Cleanup(conn.background.Wait)
	return conn, stanzas
}

// tap is a logger that keeps the stanzas which whatsmeow logs before it sends them.
type tap struct {
	waLog.Logger
	received func(*waBinary.Node)
	mu       sync.Mutex
	sent     []waBinary.Node
}

func (p *tap) Sub(string) waLog.Logger { return p }

func (p *tap) Debugf(_ string, args ...any) {
	if len(args) != 1 {
		return
	}
	if n, ok := args[0].(*waBinary.Node); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sent = append(p.sent, *n)
		p.received(n)
	}
}

func (p *tap) of(t *testing.T, id types.MessageID) waBinary.Node {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.sent, func(n waBinary.Node) bool { return n.Tag == "message" && n.Attrs["id"] == id })
	if i < 0 {
		t.Fatalf("%s was not sent", id)
	}
	return p.sent[i]
}
