package whatsapp

import (
	"errors"
	"slices"
	"sync"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

// Every sent message causes a receipt, and whatsmeow would block until the sink stored each one: one commit each.
// Therefore receipts are delivered in batches, different chats in parallel, and acknowledged here when they are stored.

const (
	// batchDelay is how long a receipt waits for others. Nobody notices it, and larger batches save 8 % of the CPU of a send.
	batchDelay       = 25 * time.Millisecond
	maxParallelChats = 64 // whose receipts wait for the same commit
	// receiptTries is how often a receipt for an unknown message is offered. Ids are stored before messages are sent,
	// so after a second an unknown id belongs to another device or is invented.
	receiptTries = 8
	// maxUnknown bounds receipts that wait for a retry, and maxUnknownEach those of one contact: contacts can invent
	// receipts.
	maxUnknown, maxUnknownEach = 256, 16
	// hostedDevice is the device number of a business's host. whatsmeow changes its address, so whatsmeow must
	// acknowledge its receipts itself.
	hostedDevice = 99
)

// queuedReceipt is a receipt with the acknowledgement that it waits for.
type queuedReceipt struct {
	network.Receipt
	ack   *waBinary.Node // nil: whatsmeow acknowledges it
	tries int            // how often the sink did not know the message
}

// receiptQueue holds receipts that are not stored yet.
type receiptQueue struct {
	mu        sync.Mutex
	queue     []queuedReceipt
	pending   map[parley.ContactID]int // queued or in delivery, by chat
	running   bool
	delivered chan struct{} // closed after each batch; nil: no waiter

	// Receipts for unknown messages that wait for a retry, by contact.
	unknown    map[parley.ContactID]int
	allUnknown int
}

func (r *queuedReceipt) chat() parley.ContactID { return network.ToChat(r.From, r.Group) }

func newAck(e *events.Receipt) *waBinary.Node {
	ack := waBinary.Attrs{"class": "receipt", "id": e.MessageIDs[0], "to": e.Sender}
	if e.IsGroup {
		ack["to"], ack["participant"] = e.Chat, e.Sender
	}
	if e.Type != types.ReceiptTypeDelivered {
		ack["type"] = string(e.Type)
	}
	return &waBinary.Node{Tag: "ack", Attrs: ack}
}

func (conn *connection) queueReceipt(one queuedReceipt) {
	s := &conn.receipts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[parley.ContactID]int{}
	}
	s.pending[one.chat()]++
	s.queue = append(s.queue, one)
	if !s.running {
		s.running = true
		conn.handlers.Go(conn.deliverReceipts)
	}
}

func (conn *connection) deliverReceipts() {
	for conn.pause(batchDelay) {
		s := &conn.receipts
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		s.running = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		conn.deliverBatch(batch)
		s.mu.Lock()
		for _, one := range batch {
			if s.pending[one.chat()]--; s.pending[one.chat()] == 0 {
				delete(s.pending, one.chat())
			}
		}
		if s.delivered != nil {
			close(s.delivered)
			s.delivered = nil
		}
		s.mu.Unlock()
	}
}

// deliverBatch delivers receipts, each chat's in order.
func (conn *connection) deliverBatch(batch []queuedReceipt) {
	chats := map[parley.ContactID][]queuedReceipt{}
	for _, one := range batch {
		chats[one.chat()] = append(chats[one.chat()], one)
	}
	turns := make(chan struct{}, maxParallelChats)
	var giving sync.WaitGroup
	for _, chat := range chats {
		turns <- struct{}{}
		giving.Go(func() {
			conn.deliverChat(chat)
			<-turns
		})
	}
	giving.Wait()
}

// deliverChat delivers the receipts of one chat, equal ones together. In a group that are those of all members: only the first
// one changes a message.
func (conn *connection) deliverChat(chat []queuedReceipt) {
	for len(chat) > 0 {
		n := slices.IndexFunc(chat, func(s queuedReceipt) bool {
			return s.Status != chat[0].Status || s.Group == "" && !s.At.Equal(chat[0].At)
		})
		if n < 0 {
			n = len(chat)
		}
		same := chat[0].Receipt
		for _, s := range chat[1:n] {
			same.IDs = append(same.IDs, s.IDs...)
		}
		unknown, ok := conn.offerReceipt(same)
		if !ok {
			return
		}
		for _, s := range chat[:n] {
			known := func(id parley.MessageID) bool { return !slices.Contains(unknown, id) }
			if left := slices.DeleteFunc(slices.Clone(s.IDs), known); len(left) > 0 && conn.retryUnknown(s, left) {
				continue
			}
			if !conn.acknowledge(s) {
				return // it comes again
			}
		}
		chat = chat[n:]
	}
}

// offerReceipt offers a receipt until the sink accepts it, and returns the unknown ids. It returns false when the
// connection is closing.
func (conn *connection) offerReceipt(r network.Receipt) (unknown []parley.MessageID, ok bool) {
	for tries := 1; conn.s.ctx.Err() == nil; tries++ {
		err := conn.s.sink(conn.s.ctx, r)
		if err == nil {
			return nil, true
		}
		if e, ok := errors.AsType[*network.UnknownMessages](err); ok {
			return e.IDs, true
		}
		if errors.Is(err, parley.ErrNotFound) {
			return r.IDs, true
		}
		if !conn.pause(retryDelay(tries)) {
			break
		}
	}
	return nil, false
}

// deliverReceipt delivers a receipt that whatsmeow acknowledges.
func (conn *connection) deliverReceipt(r network.Receipt) bool {
	conn.s.sinkMu.Lock()
	defer conn.s.sinkMu.Unlock()
	if !conn.receipts.awaitChat(network.ToChat(r.From, r.Group), conn.handlerCtx.Done()) {
		return false
	}
	unknown, ok := conn.offerReceipt(r)
	if len(unknown) > 0 {
		conn.retryUnknown(queuedReceipt{Receipt: r}, unknown)
	}
	return ok
}

// retryUnknown offers unknown ids again later. It returns false after too many tries or with too many waiting.
func (conn *connection) retryUnknown(one queuedReceipt, unknown []parley.MessageID) bool {
	one.IDs = unknown
	one.tries++
	s := &conn.receipts
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.tries >= receiptTries || s.allUnknown >= maxUnknown || s.unknown[one.From] >= maxUnknownEach {
		return false
	}
	if s.unknown == nil {
		s.unknown = map[parley.ContactID]int{}
	}
	s.allUnknown++
	s.unknown[one.From]++
	time.AfterFunc(conn.s.d.receiptRetryDelay(one.tries), func() {
		s.mu.Lock()
		s.allUnknown--
		if s.unknown[one.From]--; s.unknown[one.From] == 0 {
			delete(s.unknown, one.From)
		}
		s.mu.Unlock()
		conn.mu.Lock()
		defer conn.mu.Unlock()
		if !conn.closed {
			conn.queueReceipt(one)
		}
	})
	return true
}

func (conn *connection) acknowledge(s queuedReceipt) bool {
	return s.ack == nil || conn.inner().SendNode(conn.ctx, *s.ack) == nil
}

// awaitChat waits for earlier receipts of a chat. It returns false when the connection is closing.
func (s *receiptQueue) awaitChat(from parley.ContactID, ended <-chan struct{}) bool {
	for {
		s.mu.Lock()
		if s.pending[from] == 0 {
			s.mu.Unlock()
			return true
		}
		if s.delivered == nil {
			s.delivered = make(chan struct{})
		}
		filed := s.delivered
		s.mu.Unlock()
		select {
		case <-filed:
		case <-ended:
			return false
		}
	}
}
