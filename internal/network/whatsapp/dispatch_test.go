package whatsapp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/loopback"
)

// TestNewDevices reaches a device that a contact linked, whether the network told of it or not: then from the
// second message on.
func TestNewDevices(t *testing.T) {
	for name, add := range map[string]func(*loopback.Phone) (uint16, error){
		"announced": (*loopback.Phone).AddDevice, "quiet": (*loopback.Phone).AddDeviceQuietly,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, _ := w.paired()
			w.sent(s, w.text(friendID, "before"))
			device, err := add(w.friend)
			must(t, err)
			must(t, w.link.Idle(within(t)))
			w.sent(s, w.text(friendID, "in between"))
			m := w.sent(s, w.text(friendID, "after"))
			w.friend.Expect(t, loopback.ID(string(m.ID)), loopback.On(device))
			w.sealedAll()
		})
	}
}

// TestChatsDoNotWait sends to several people at once: the network has all of it before it confirms anything.
func TestChatsDoNotWait(t *testing.T) {
	const people = 8
	w := newWorld(t)
	s, _ := w.paired()
	var phones []*loopback.Phone
	for i := range people {
		p := w.Phone(fmt.Sprintf("62899000000%02d", i))
		phones = append(phones, p)
		w.sent(s, w.text(parley.ContactOf(p.Number()), "hello")) // so that keys need not be fetched
	}
	w.driver.ackTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sending sync.WaitGroup
	for _, p := range phones {
		w.Inject(loopback.LoseAck().To(p)) // a chat that waited for another's confirmation would wait for ever
		sending.Go(func() {
			m := w.text(parley.ContactOf(p.Number()), "all at once")
			if err := s.Send(ctx, []*parley.Message{m})[0]; network.ClassOf(err) != network.Unknown {
				t.Errorf("a message that was not confirmed: %v", err)
			}
		})
	}
	must(t, w.AwaitFaults(within(t)))
	cancel()
	sending.Wait()
	for _, p := range phones {
		p.Expect(t, loopback.Text("all at once"))
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
	l, stanzas := w.tapped(s.(*session))
	to := w.friend.LID()
	for name, raw := range map[string]*waE2E.Message{
		"text":     {Conversation: new("hello")},
		"reaction": l.client.BuildReaction(to, types.EmptyJID, "3EB0", "👍"),
		"deletion": l.client.BuildRevoke(to, types.EmptyJID, "3EB0"),
		"poll":     composePoll(parley.Poll{Title: "Tea?", Options: []string{"yes", "no"}}, make([]byte, 32), nil),
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := types.MessageID("3EB0AAAA"+name), types.MessageID("3EB0BBBB"+name)
			must(t, l.transmit(t.Context(), to, mine, raw))
			_, err := l.client.SendMessage(t.Context(), to, raw, whatsmeow.SendRequestExtra{ID: theirs})
			must(t, err)
			a, b := outline(stanzas.of(t, mine), mine), outline(stanzas.of(t, theirs), theirs)
			if !slices.Equal(a, b) || len(a) < 10 {
				t.Errorf("ours:   %q\ntheirs: %q", a, b)
			}
		})
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
func (w *world) tapped(s *session) (*line, *tap) {
	w.t.Helper()
	devices, err := w.driver.db.keys.Devices(w.t.Context())
	must(w.t, err)
	device, err := w.driver.db.keys.Device(w.t.Context(), devices[0])
	must(w.t, err)
	stanzas := &tap{Logger: waLog.Noop}
	c := whatsmeow.NewClient(device, stanzas)
	must(w.t, w.Trust().Apply(c))
	up := make(chan struct{}, 1)
	c.AddEventHandler(func(e any) {
		if _, ok := e.(*events.Connected); ok {
			signal(up)
		}
	})
	must(w.t, c.ConnectContext(w.t.Context()))
	w.t.Cleanup(c.Disconnect)
	<-up
	return &line{s: s, client: c, lid: device.LID, secrets: device.MsgSecrets, log: newLogger(w.driver.Log, code), ctx: w.t.Context()}, stanzas
}

// tap is a logger that keeps the stanzas which whatsmeow logs before it sends them.
type tap struct {
	waLog.Logger
	mu   sync.Mutex
	sent []waBinary.Node
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
