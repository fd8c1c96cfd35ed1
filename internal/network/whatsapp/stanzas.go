package whatsapp

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// whatsmeow handles stanzas on its own goroutine, where a panic on an unexpected stanza would end the process with all
// channels. Therefore its log of received stanzas is intercepted, and its handlers run here, one at a time, where a
// panic ends only that stanza. Responses to requests go to their caller as usual.

// handledTag is the name that a stanza gets which whatsmeow must not handle itself.
const handledTag = "handled elsewhere"

// stuckAfter is how long one stanza may block the next ones.
const stuckAfter = 5 * time.Minute

// stanzaQueue holds stanzas that are not handled yet, in order.
type stanzaQueue struct {
	mu      sync.Mutex
	queue   []*waBinary.Node
	running int // number of the handling goroutine; 0: none
	started int // how many there were
}

// onStanza sees every stanza that comes, on the goroutine that reads the socket. It must not wait.
func (conn *connection) onStanza(node *waBinary.Node) {
	conn.tapped.Store(true)
	if node.Tag == "stream:error" {
		conn.failWaiters()                                  // before whatsmeow acts on it
		conn.streamError.Store(node.Attrs["code"] != "515") // that asks for a new connection
	}
	if id, ok := node.Attrs["id"].(string); ok && node.Tag == "ack" {
		kind, _ := node.Attrs["type"].(string)
		switch {
		case node.Attrs["class"] != "receipt":
			conn.acks.deliver(id, node)
		case strings.HasPrefix(kind, string(types.ReceiptTypeRead)): // also read-self
			conn.acks.deliver(seenAck(id), node)
		}
	}
	if node.Tag == "iq" && node.Attrs["type"] == "error" {
		problem := node.GetChildByTag("error")
		if code := problem.AttrGetter().OptionalInt("code"); code == codeCalmDown || code == codeTooMany {
			conn.overLimit.Add(1)
		}
	}
	if !isHandled(node) {
		return
	}
	own := *node
	node.Tag = handledTag
	if !conn.accepts(&own) {
		conn.log.Warnf("drop a stanza that no network sends: %s", &own)
		return
	}
	s := &conn.stanzas
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, &own)
	if s.running == 0 {
		conn.startStanzaHandler()
	}
}

// isHandled reports whether whatsmeow has a handler for a stanza. Responses to requests have none.
func isHandled(node *waBinary.Node) bool {
	switch node.Tag {
	case "message", "status", "appdata", "receipt", "call", "chatstate", "presence", "notification", "success", "failure", "stream:error",
		"ib":
		return true
	case "iq":
		return !isResponse(node)
	}
	return false
}

func isResponse(iq *waBinary.Node) bool {
	kind := iq.Attrs["type"]
	_, hasID := iq.Attrs["id"].(string)
	for _, child := range iq.GetChildren() {
		if child.Tag == "pair-device" || child.Tag == "pair-success" {
			return false
		}
	}
	return hasID && (kind == "result" || kind == "error")
}

// accepts reports whether whatsmeow may see a stanza. Requests of the server are for pairing. On a paired device they
// would break its login or connection, and whatsmeow uses their id unchecked.
func (conn *connection) accepts(node *waBinary.Node) bool {
	if node.Tag != "iq" {
		return true
	}
	_, hasID := node.Attrs["id"].(string)
	return hasID && conn.jid.IsEmpty()
}

// startStanzaHandler starts the goroutine that handles stanzas. The caller holds the lock of the stanzas.
func (conn *connection) startStanzaHandler() {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.closed {
		return
	}
	conn.stanzas.started++
	conn.stanzas.running = conn.stanzas.started
	number := conn.stanzas.running
	conn.background.Go(func() { conn.handleStanzas(number) })
}

// handleStanzas runs until the queue is empty or another goroutine took over.
func (conn *connection) handleStanzas(number int) {
	for {
		node := conn.nextStanza(number)
		if node == nil {
			return
		}
		stuck := time.AfterFunc(stuckAfter, func() { conn.skipStuck(number, node) })
		conn.handleStanza(node)
		stuck.Stop()
	}
}

// nextStanza returns the next stanza; nil: there is nothing to do.
func (conn *connection) nextStanza(number int) *waBinary.Node {
	s := &conn.stanzas
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != number {
		return nil
	}
	if len(s.queue) == 0 || conn.handlerCtx.Err() != nil {
		s.queue, s.running = nil, 0
		return nil
	}
	node := s.queue[0]
	s.queue = s.queue[1:]
	return node
}

// skipStuck starts another goroutine for the stanzas behind one that blocks.
func (conn *connection) skipStuck(number int, node *waBinary.Node) {
	conn.log.Warnf("handling %s takes too long: what came after it is handled now", node)
	s := &conn.stanzas
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == number {
		s.running = 0
		if len(s.queue) > 0 {
			conn.startStanzaHandler()
		}
	}
}

// handleStanza lets whatsmeow handle one stanza. After a panic the network delivers it again with the next connection,
// if it needs an acknowledgement.
func (conn *connection) handleStanza(node *waBinary.Node) {
	var panicked error
	defer conn.s.recoverPanic(&panicked)
	ctx, in := conn.s.d.keys.StanzaContext(conn.ctx), conn.inner()
	switch node.Tag {
	case "message", "appdata":
		from, _ := node.Attrs["from"].(types.JID)
		in.HandleEncryptedMessage(conn.messageContext(ctx, from), node)
	case "status":
		in.HandleUnencryptedMessage(ctx, node)
	case "receipt":
		if node.Attrs["type"] == string(types.ReceiptTypeRetry) {
			conn.handleRetry(ctx, node)
			return
		}
		from, _ := node.Attrs["from"].(types.JID)
		conn.groupedReceipt.Store(from.Server == types.GroupServer && node.Attrs["participant"] == nil)
		in.HandleReceipt(ctx, node)
	case "call":
		in.HandleCallEvent(ctx, node)
	case "chatstate":
		in.HandleChatState(ctx, node)
	case "presence":
		in.HandlePresence(ctx, node)
	case "notification":
		conn.onDeviceNotification(ctx, node)
		conn.onCodeNotification(node)
		in.HandleNotification(ctx, node)
	case "success":
		in.HandleConnectSuccess(ctx, node)
	case "failure":
		in.HandleConnectFailure(ctx, node)
	case "stream:error":
		in.HandleStreamError(ctx, node)
	case "iq":
		in.HandleIQ(ctx, node)
	case "ib":
		in.HandleIB(ctx, node)
	}
}

// errPanicked is returned by a call to whatsmeow that panicked on an invalid response.
var errPanicked = errors.New("WhatsApp's answer could not be read")

// recoverPanic turns a panic into an error. Every call to whatsmeow on our goroutines needs it.
func (s *session) recoverPanic(err *error) {
	if why := recover(); why != nil {
		s.d.panics.Add(1)
		s.d.config.Log.Error("whatsapp: panic", "channel", s.code, "panic", fmt.Sprint(why), "stack", string(debug.Stack()))
		*err = errPanicked
	}
}
