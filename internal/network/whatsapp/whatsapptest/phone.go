package whatsapptest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley/internal/wait"
)

// Phone is a simulated phone. Its methods may be called from any goroutine.
type Phone struct {
	server  *Server
	account *account
	number  string
	main    *simDevice

	pending chan struct{} // has a token while a queue may hold something

	mu    sync.Mutex // guards keys and sent messages
	sent  map[string]*sentMessage
	order []string // ids of sent, oldest first
	state *phoneSettings

	changed  notifier
	view     sync.Mutex // guards the visible state; no other lock is acquired while it is held
	inbox    []*Message
	seen     map[seenKey]*Message
	shown    int // messages of others on the phone itself
	receipts []Receipt
	typing   []Typing
	rejected []string // ids of calls
	offline  bool
	silent   bool // does not introduce itself to new devices
	history  []Conversation
	badSign  bool
}

type Option func(*Phone)

func Named(name string) Option { return func(p *Phone) { p.account.name = name } }

func About(text string) Option { return func(p *Phone) { p.account.about = text } }

func Picture(url string) Option { return func(p *Phone) { p.account.pictureURL = url } }

// Shown sets the addressing of the account; the default is Both.
func Shown(as Addressing) Option { return func(p *Phone) { p.account.shown = as } }

func (p *Phone) Show(as Addressing) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.account.shown = as
}

// RefusesStrangers rejects messages of accounts that this one never wrote to, as the network does with 463 and 475.
func RefusesStrangers(code int) Option { return func(p *Phone) { p.account.strangers = code } }

// Silent makes a phone that sends nothing to newly linked clients: no name, no settings, no history.
func Silent() Option { return func(p *Phone) { p.silent = true } }

// Phone returns the phone of a number, in digits. The first call creates the account with the options; later calls
// ignore options.
func (s *Server) Phone(number string, options ...Option) *Phone {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.byNumber[number]; a != nil {
		return a.phone
	}
	a := &account{
		number: number, lid: newLID(number), name: number,
		devices: map[uint16]*device{}, collections: map[string]*collection{},
		peers: map[*account]bool{}, wroteTo: map[*account]bool{},
	}
	p := &Phone{
		server: s, account: a, number: number, pending: make(chan struct{}, 1),
		sent: map[string]*sentMessage{}, seen: map[seenKey]*Message{},
	}
	a.phone = p
	for _, o := range options {
		o(p)
	}
	p.main = p.newDevice(0)
	s.byNumber[number], s.byLID[a.lid] = a, a
	s.spawn(p.run)
	return p
}

// AlsoFoundAs makes look-ups of another number return this phone. The network does so in countries where a number has
// two spellings.
func (p *Phone) AlsoFoundAs(number string) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.aliases[number] = p.account
}

// newDevice makes a simulated device of the account. The caller holds the server's lock.
func (p *Phone) newDevice(id uint16) *simDevice {
	d := &device{owner: p.account, id: id}
	d.sim = &simDevice{phone: p, device: d, store: newKeyring(newRegistration())}
	p.account.devices[id] = d
	return d.sim
}

// newRegistration returns a registration id, which identifies an installation.
func newRegistration() uint32 { return 1 + rand.Uint32N(16380) }

func (p *Phone) Number() string { return p.number }

// JID is the phone's address by number.
func (p *Phone) JID() types.JID { return p.account.pnJID(0) }

// LID is the phone's other address.
func (p *Phone) LID() types.JID { return p.account.lidJID(0) }

// SwitchOff makes messages to the phone wait.
func (p *Phone) SwitchOff() {
	p.view.Lock()
	defer p.view.Unlock()
	p.offline = true
}

func (p *Phone) SwitchOn() {
	p.view.Lock()
	p.offline = false
	p.view.Unlock()
	wait.Notify(p.pending)
}

// run handles the stanzas of the phone's simulated devices until the server closes.
func (p *Phone) run() {
	ctx := p.server.ctx
	for ctx.Err() == nil {
		m, q := p.next()
		if q == nil {
			select {
			case <-p.pending:
			case <-ctx.Done():
			}
			continue
		}
		p.mu.Lock()
		switch q.class {
		case "message":
			p.handleMessage(ctx, m, q)
		case "receipt":
			p.handleReceipt(ctx, m, &q.stanza)
		}
		p.mu.Unlock()
	}
}

// next dequeues the oldest stanza of a simulated device.
func (p *Phone) next() (*simDevice, *queued) {
	p.view.Lock()
	offline := p.offline
	p.view.Unlock()
	if offline {
		return nil, nil
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range p.account.devices {
		if d.sim == nil || len(d.queue) == 0 {
			continue
		}
		q := d.queue[0]
		d.queue = d.queue[1:]
		if q.trace != nil {
			q.trace.delivery(d).Given++
		}
		return d.sim, q
	}
	return nil, nil
}

func (p *Phone) updateDelivery(d *device, e *Trace, change func(*Delivery)) {
	if e == nil {
		return
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	change(e.delivery(d))
	p.server.changed.notify()
}

// Reinstall gives the phone a new identity, as a new installation does, and logs linked devices out. It sends no
// notification: senders notice when the phone cannot read their message.
func (p *Phone) Reinstall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	p.main.store = newKeyring(newRegistration())
	for id, d := range p.account.devices {
		if id != 0 {
			s.unlink(d)
		}
	}
}

// AnnounceReinstall is Reinstall, and every linked client of others is notified.
func (p *Phone) AnnounceReinstall() {
	p.Reinstall()
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.byNumber {
		for _, d := range a.devices {
			if d.sim == nil && a != p.account {
				s.notify(d, p.account.lidJID(0), "encrypt", nil, n("identity", nil))
			}
		}
	}
}

// AddDevice links a simulated companion and notifies all peers. Its messages are in the inbox with its device id.
func (p *Phone) AddDevice() (uint16, error) { return p.addDevice(p.account.publicJID, nil) }

// AddDeviceByNumber is AddDevice with a notification under the number, with the LID beside it.
func (p *Phone) AddDeviceByNumber() (uint16, error) {
	return p.addDevice(p.account.pnJID, attrs{"lid": p.account.lidJID(0)})
}

func (p *Phone) addDevice(from func(device uint16) types.JID, extra attrs) (uint16, error) {
	id, err := p.AddDeviceQuietly()
	if err != nil {
		return 0, err
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announceDevices(p.account, from(0), extra, "add", id)
	return id, nil
}

// AddDeviceQuietly is AddDevice without a notification: senders learn of it from the ack of their next message.
func (p *Phone) AddDeviceQuietly() (uint16, error) {
	s := p.server
	s.mu.Lock()
	p.account.lastDevice++
	m := p.newDevice(p.account.lastDevice)
	s.mu.Unlock()
	identity := m.store.own().identity
	signed, err := p.adv(m.device.id, identity.Pub[:])
	if err != nil {
		return 0, err
	}
	signed.DeviceSignature = sign(identity, deviceMessage(signed, identity.Pub[:]))
	adv, err := proto.Marshal(signed)
	if err != nil {
		return 0, fmt.Errorf("encode device identity: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.device.adv = adv
	return m.device.id, nil
}

// RefuseNextPairing makes the phone sign the next client's identity wrongly, so that the client refuses.
func (p *Phone) RefuseNextPairing() {
	p.view.Lock()
	defer p.view.Unlock()
	p.badSign = true
}

func (p *Phone) popBadSignature() bool {
	p.view.Lock()
	defer p.view.Unlock()
	bad := p.badSign
	p.badSign = false
	return bad
}
