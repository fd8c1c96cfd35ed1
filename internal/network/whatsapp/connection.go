package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/keystore"
)

// connection is one connection to the network: a client that connects once. whatsmeow writes fields of its device
// without a lock, so nothing else may read them.
type connection struct {
	s        *session
	client   *whatsmeow.Client
	jid, lid types.JID // of the device; empty before it is paired
	version  store.WAVersionContainer
	contacts store.ContactStore
	secrets  store.MsgSecretStore
	keys     store.AppStateSyncKeyStore // of the account's settings
	// groupKeys has the holders of this device's sender keys.
	groupKeys keystore.GroupKeys
	people    keystore.People // whose number is hidden
	timers    keystore.Timers // of messages that disappear
	log       *logger

	ctx     context.Context // of everything that whatsmeow does on it
	cancel  context.CancelFunc
	updates chan any      // events that concern the connection, for run
	ended   chan struct{} // closed when the socket is lost
	endOnce sync.Once

	synced         chan struct{} // holds one: the account's settings were just fetched
	settings       settingsQueue
	sending        sync.Mutex // one message is encrypted at a time
	typing         typing
	receipts       receiptQueue
	stanzas        stanzaQueue
	tapped         atomic.Bool  // onStanza has seen a stanza
	overLimit      atomic.Int64 // how many queries the network answered with an error that means too much
	streamError    atomic.Bool  // the network ended the connection with an error
	groupedReceipt atomic.Bool  // the receipt that is being handled is of several members
	acks           waiters[*waBinary.Node]
	retries        chan struct{} // one slot per message that is encrypted again
	unmade         sync.Map      // ids of messages that could not be made again, but may be later
	blocked        blocklist
	ownDevices     sharedQuery[recipients] // the account's own devices
	mediaHosts     sharedQuery[struct{}]

	watchdog watchdog

	mu             sync.Mutex
	closed         bool
	handlerCtx     context.Context // ends before ctx does, when the connection is closed
	cancelHandlers context.CancelFunc
	handlers       sync.WaitGroup // events that are being handled
	background     sync.WaitGroup // goroutines that close waits for
}

// updatesBuffer is for more events than a connection can have before run looks.
const updatesBuffer = 64

func newConnection(s *session, device *store.Device) *connection {
	conn := &connection{s: s, log: newLogger(s.d.config.Log, s.code), updates: make(chan any, updatesBuffer), synced: make(chan struct{}, 1),
		ended: make(chan struct{})}
	conn.settings.slot = make(chan struct{}, 1)
	conn.retries = make(chan struct{}, retriesAtOnce)
	conn.version = s.d.versions.get().number
	if device.ID != nil {
		conn.people, _ = device.LIDs.(keystore.People)
		conn.timers, _ = device.LIDs.(keystore.Timers)
		device.LIDs = lidObserver{device.LIDs, conn}
		device.Container = undeletable{device.Container}
		device.Identities = trusting{device.Identities}
		conn.jid, conn.lid = *device.ID, device.LID
		conn.contacts, conn.secrets, conn.keys = device.Contacts, device.MsgSecrets, device.AppStateKeys
		conn.groupKeys, _ = device.SenderKeys.(keystore.GroupKeys)
	}
	conn.ctx, conn.cancel = context.WithCancel(context.Background()) // it outlives the session by the last acknowledgements
	conn.handlerCtx, conn.cancelHandlers = context.WithCancel(conn.ctx)
	conn.log.received, conn.log.tapped = conn.onStanza, s.d.receiveLog
	c := whatsmeow.NewClient(device, conn.log)
	c.EnableAutoReconnect = false // the session reconnects
	c.DisableLoginAutoReconnect = true
	c.SynchronousAck = true // acknowledge only what the sink has stored
	c.EnableDecryptedEventBuffer = true
	c.SendReportingTokens = true
	c.BackgroundEventCtx = conn.ctx
	c.GetMessageForRetry = conn.messageForRetry
	c.RefreshCAT = refuseCAT
	c.GetClientPayload = conn.payload
	c.SetForceActiveDeliveryReceipts(true) // a stored message is delivered, whether or not somebody looks at it
	conn.client = c
	ws := s.d.dialer.client(s.findProxy, &connObserver{onRead: s.heard, onLost: conn.lost})
	c.SetPreLoginHTTPClient(ws)
	c.SetWebsocketHTTPClient(ws)
	c.SetMediaHTTPClient(s.media)
	c.AddEventHandlerWithSuccessStatus(conn.handleEvent)
	return conn
}

// refuseCAT rejects a request for a token of another product. Without it whatsmeow calls a nil function.
func refuseCAT(context.Context) error { return errors.New("this device has no such token") }

// errDeviceKept stops whatsmeow from removing a logged-out device. It would write fields of the device while others
// read them. The session removes the keys when the connection is closed.
var errDeviceKept = errors.New("the session removes the device")

type undeletable struct{ store.DeviceContainer }

func (undeletable) DeleteDevice(context.Context, *store.Device) error { return errDeviceKept }

// trusting accepts the new identity of a contact who installed the app again. So does whatsmeow, but it deletes the session
// first: of two messages that the contact requests again at once, one would lose the session before it is encrypted, and the
// contact would never get it. With a trusted identity the new session replaces the old one.
type trusting struct{ store.IdentityStore }

func (trusting) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) { return true, nil }

// dialTimeout bounds making a connection, handshake included.
const dialTimeout = 30 * time.Second

// connect makes the connection. It waits for its turn among the driver's sessions.
func (conn *connection) connect() error {
	select {
	case conn.s.d.dialSlots <- struct{}{}:
		defer func() { <-conn.s.d.dialSlots }()
	case <-conn.s.ctx.Done():
		return conn.s.ctx.Err()
	}
	timer := time.AfterFunc(dialTimeout, conn.cancel)
	unhook := context.AfterFunc(conn.s.ctx, conn.cancel)
	err := conn.handshake()
	timely, open := timer.Stop(), unhook()
	if err == nil && (!timely || !open) {
		return fmt.Errorf("no connection in time: %w", context.DeadlineExceeded)
	}
	return err
}

// handshake connects, and does not wait longer than the socket lives. whatsmeow does: it waits 20 s for a response that cannot come
// any more, and keeps a channel from stopping or from trying again. What it waits for then is nothing that it uses.
func (conn *connection) handshake() error {
	connected := make(chan error, 1)
	go func() { connected <- conn.client.ConnectContext(conn.ctx) }()
	select {
	case err := <-connected:
		return err
	case <-conn.ctx.Done():
		return conn.ctx.Err()
	case <-conn.ended:
		return errors.New("the connection ended during the handshake")
	}
}

// handleEvent handles an event of whatsmeow. After false, nothing is acknowledged to the network.
func (conn *connection) handleEvent(evt any) bool {
	if !conn.beginHandler() {
		return false
	}
	defer conn.handlers.Done()
	return conn.dispatchEvent(evt)
}

// beginHandler counts a handler, which close waits for. It returns false once the connection is closing.
func (conn *connection) beginHandler() bool {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if !conn.closed {
		conn.handlers.Add(1)
	}
	return !conn.closed
}

func (conn *connection) post(evt any) {
	select {
	case conn.updates <- evt:
	default: // run is far behind; the queued events include the end of the connection
	}
}

// failWaiters fails every request that waits for a response. Otherwise whatsmeow waits for a reconnect that never
// comes, with a data race if several wait. It does not wait after this error code.
func (conn *connection) failWaiters() {
	conn.s.current.CompareAndSwap(conn, nil) // first: a caller that fails now may send again at once
	conn.acks.closeAll()
	conn.inner().ClearResponseWaiters(&waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": "401"}})
}

// lostGrace is for the reason of the end of a connection to become known: it comes before the end, and is
// handled on another goroutine.
const lostGrace = time.Second

// lost handles the end of the socket. whatsmeow reports most ends itself, but not all.
func (conn *connection) lost() {
	conn.endOnce.Do(func() { close(conn.ended) })
	conn.failWaiters()
	time.AfterFunc(lostGrace, func() { conn.post(&events.Disconnected{}) })
}

// close ends the connection. Events that the sink is storing are still acknowledged. It may be called twice.
func (conn *connection) close() {
	conn.mu.Lock()
	conn.closed = true
	conn.mu.Unlock()
	conn.cancelHandlers()
	conn.handlers.Wait()
	conn.typing.end()
	conn.log.muted.Store(true)
	conn.inner().ExpectDisconnect() // no event for this disconnect
	conn.failWaiters()
	conn.cancel()
	conn.background.Wait()
}

// goBackground starts a goroutine that only close waits for. It returns false once the connection is closing.
func (conn *connection) goBackground(f func()) bool {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if !conn.closed {
		conn.background.Go(f)
	}
	return !conn.closed
}

// inner returns methods of whatsmeow that have no public name. The version is pinned and every use is tested.
func (conn *connection) inner() *whatsmeow.DangerousInternalClient {
	return conn.client.DangerousInternals() //lint:ignore SA1019 it is marked so to warn of changes between versions
}
