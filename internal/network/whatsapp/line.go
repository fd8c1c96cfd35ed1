package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// line is one connection: a client that connects once, with what is known of its device. whatsmeow writes
// fields of its device without a lock, so that nobody else reads them.
type line struct {
	s        *session
	client   *whatsmeow.Client
	jid, lid types.JID // of the device; empty before it is paired
	contacts store.ContactStore
	secrets  store.MsgSecretStore
	keys     store.AppStateSyncKeyStore // of the account's settings
	log      *logger

	ctx    context.Context // of everything that whatsmeow does on it
	cancel context.CancelFunc
	news   chan any // events that concern the connection, for run

	synced     chan struct{} // holds one: the account's settings were just fetched
	settings   settings
	sending    sync.Mutex // one message is encrypted at a time
	typing     typing
	slips      slips
	stanzas    stanzas
	acks       acks
	hidden     hidden
	blocked    blocklist
	own        shared[recipients] // the account's own devices
	mediaHosts shared[struct{}]

	watchdog watchdog

	mu      sync.Mutex
	closed  bool
	taking  context.Context // of the handling of events; ends when the line is being ended, before ctx does
	leave   context.CancelFunc
	handles sync.WaitGroup // events that are being handled
	errands sync.WaitGroup // questions to the network whose answers nobody waits for
}

// newsRoom is for more events than a connection can have before run looks.
const newsRoom = 64

// retriesAtOnce bounds how many messages are encrypted again at once for devices that could not read them.
const retriesAtOnce = 4

func newLine(s *session, device *store.Device) *line {
	l := &line{s: s, log: newLogger(s.d.Log, s.code), news: make(chan any, newsRoom), synced: make(chan struct{}, 1)}
	l.settings.turn = make(chan struct{}, 1)
	if device.ID != nil {
		guard(device, l.revealSoon)
		l.jid, l.lid = *device.ID, device.LID
		l.contacts, l.secrets, l.keys = device.Contacts, device.MsgSecrets, device.AppStateKeys
	}
	l.ctx, l.cancel = context.WithCancel(context.Background()) // it outlives the session by the last acknowledgements
	l.taking, l.leave = context.WithCancel(l.ctx)
	l.log.received = l.received
	c := whatsmeow.NewClient(device, l.log)
	c.EnableAutoReconnect = false // the session reconnects
	c.DisableLoginAutoReconnect = true
	c.SynchronousAck = true // only what the sink took is acknowledged
	c.EnableDecryptedEventBuffer = true
	c.BackgroundEventCtx = l.ctx
	c.GetMessageForRetry = l.messageForRetry
	c.RefreshCAT = refuseCAT
	c.SetMaxParallelRetryReceiptHandling(retriesAtOnce)
	c.SetForceActiveDeliveryReceipts(true) // what we keep is delivered, whether or not anybody looks
	l.client = c
	ws := s.d.dialer.client(&ear{heard: s.heard, lost: l.lost})
	c.SetPreLoginHTTPClient(ws)
	c.SetWebsocketHTTPClient(ws)
	c.SetMediaHTTPClient(s.d.media)
	c.AddEventHandlerWithSuccessStatus(l.handle)
	return l
}

// refuseCAT answers a request for a token of another product. Without it whatsmeow calls a nil function.
func refuseCAT(context.Context) error { return errors.New("this device has no such token") }

// dialTimeout bounds making a connection, handshake included.
const dialTimeout = 30 * time.Second

// connect makes the connection. It waits for its turn among the driver's sessions.
func (l *line) connect() error {
	select {
	case l.s.d.turns <- struct{}{}:
		defer func() { <-l.s.d.turns }()
	case <-l.s.ctx.Done():
		return l.s.ctx.Err()
	}
	timer := time.AfterFunc(dialTimeout, l.cancel)
	unhook := context.AfterFunc(l.s.ctx, l.cancel)
	err := l.client.ConnectContext(l.ctx)
	timely, open := timer.Stop(), unhook()
	if err == nil && (!timely || !open) {
		return fmt.Errorf("no connection in time: %w", context.DeadlineExceeded)
	}
	return err
}

// handle takes an event of whatsmeow. Where it reports false, nothing is acknowledged to the network.
func (l *line) handle(evt any) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.handles.Add(1)
	l.mu.Unlock()
	defer l.handles.Done()
	return l.take(evt)
}

// post tells run of an event that concerns the connection.
func (l *line) post(evt any) {
	select {
	case l.news <- evt:
	default: // run is far behind; what ends a connection is among what it has
	}
}

// release ends the waiting of everybody who waits for an answer on the line. Left to itself whatsmeow would
// have them wait for a reconnect, which there is not, and which several cannot wait for at once without a data
// race. The code is one after which it does not.
func (l *line) release() {
	l.s.up.CompareAndSwap(l, nil) // first: who is told that it is over may send again at once
	l.acks.end()
	l.inner().ClearResponseWaiters(&waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": "401"}})
}

// lostGrace is for the reason of the end of a connection to become known: it comes before the end, and is
// handled on another goroutine.
const lostGrace = time.Second

// lost takes note that nothing comes any more. whatsmeow tells of most ends itself, and of some it does not.
func (l *line) lost() {
	l.release()
	time.AfterFunc(lostGrace, func() { l.post(&events.Disconnected{}) })
}

// hangUp ends the line. What the sink is just taking is still acknowledged. It may be called twice.
func (l *line) hangUp() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.leave()
	l.handles.Wait()
	l.typing.end()
	l.log.muted.Store(true)
	l.inner().ExpectDisconnect() // its end is no news
	l.release()
	l.cancel()
	l.errands.Wait()
}

// errand runs something whose end nobody waits for but hangUp. It reports false when the line is being ended.
func (l *line) errand(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.errands.Go(f)
	}
	return !l.closed
}

// inner gives what whatsmeow has no public name for: sending a stanza and asking a question of our own,
// ending the waiting for answers, uploading under a key that we chose. The version is pinned, and every use
// is tested.
func (l *line) inner() *whatsmeow.DangerousInternalClient {
	return l.client.DangerousInternals() //lint:ignore SA1019 it is marked so to warn of changes between versions
}
