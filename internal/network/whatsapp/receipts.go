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

// For every message that we send a receipt comes back, and whatsmeow would wait with the next until the sink
// has kept this one: a commit each. So receipts are gathered for a moment and given together, those of
// different chats at the same time, and acknowledged by us when they are kept.

const (
	// gatherFor is how long receipts are gathered. Nobody waits for them.
	gatherFor = 5 * time.Millisecond
	// receiptsAtOnce is how many chats' receipts are given at the same time.
	receiptsAtOnce = 16
	// receiptTries is how often a receipt is given to a sink that does not know what it is for. Ids are
	// stored before messages are sent: what is unknown after more than a second is another device's, or invented.
	receiptTries = 8
	// maxUnknown is how many such receipts wait to be given again, and maxUnknownEach how many of one contact:
	// contacts can invent any number of them.
	maxUnknown, maxUnknownEach = 256, 16
	// hostedDevice is the number of a device that a business's host has. whatsmeow does not tell its address
	// as it was, so that it has to acknowledge what comes from it.
	hostedDevice = 99
)

// slip is a receipt with the acknowledgement that it waits for.
type slip struct {
	network.Receipt
	ack   *waBinary.Node // nil: whatsmeow acknowledges it
	tries int            // how often the sink did not know what it is for
}

// slips are the receipts of a line that are not kept yet.
type slips struct {
	mu     sync.Mutex
	waits  []slip
	open   map[parley.ContactID]int // how many of a chat wait or are being given
	filing bool
	filed  chan struct{} // closed when some were given; nil: nobody waits for that

	// Receipts for unknown messages that are given again after a pause, by contact. Nothing waits for them.
	unknown    map[parley.ContactID]int
	allUnknown int
}

// ackOf makes the acknowledgement of a receipt.
func ackOf(e *events.Receipt) *waBinary.Node {
	ack := waBinary.Attrs{"class": "receipt", "id": e.MessageIDs[0], "to": e.Sender}
	if e.Type != types.ReceiptTypeDelivered {
		ack["type"] = string(e.Type)
	}
	return &waBinary.Node{Tag: "ack", Attrs: ack}
}

// later has a receipt given and acknowledged soon.
func (l *line) later(one slip) {
	s := &l.slips
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[parley.ContactID]int{}
	}
	s.open[one.From]++
	s.waits = append(s.waits, one)
	if !s.filing {
		s.filing = true
		l.handles.Go(l.file)
	}
}

// file gives receipts until none waits.
func (l *line) file() {
	for l.pause(gatherFor) {
		s := &l.slips
		s.mu.Lock()
		batch := s.waits
		s.waits = nil
		s.filing = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		l.giveSlips(batch)
		s.mu.Lock()
		for _, one := range batch {
			if s.open[one.From]--; s.open[one.From] == 0 {
				delete(s.open, one.From)
			}
		}
		if s.filed != nil {
			close(s.filed)
			s.filed = nil
		}
		s.mu.Unlock()
	}
}

// giveSlips gives receipts, each chat's in order.
func (l *line) giveSlips(batch []slip) {
	var chats [][]slip
	at := map[parley.ContactID]int{}
	for _, one := range batch {
		i, known := at[one.From]
		if !known {
			i = len(chats)
			at[one.From] = i
			chats = append(chats, nil)
		}
		chats[i] = append(chats[i], one)
	}
	turns := make(chan struct{}, receiptsAtOnce)
	var giving sync.WaitGroup
	for _, chat := range chats {
		turns <- struct{}{}
		giving.Go(func() {
			l.giveChat(chat)
			<-turns
		})
	}
	giving.Wait()
}

// giveChat gives the receipts of one chat, those that say the same together.
func (l *line) giveChat(chat []slip) {
	for len(chat) > 0 {
		n := slices.IndexFunc(chat, func(s slip) bool { return s.Status != chat[0].Status || !s.At.Equal(chat[0].At) })
		if n < 0 {
			n = len(chat)
		}
		same := chat[0].Receipt
		for _, s := range chat[1:n] {
			same.IDs = append(same.IDs, s.IDs...)
		}
		unknown, ok := l.offerReceipt(same)
		if !ok {
			return
		}
		for _, s := range chat[:n] {
			if left := among(s.IDs, unknown); len(left) > 0 && l.again(s, left) {
				continue
			}
			if !l.acknowledge(s) {
				return // it comes again
			}
		}
		chat = chat[n:]
	}
}

// offerReceipt hands a receipt to the sink until that has it, and returns the ids that the sink does not know.
// It reports false when the line is being ended.
func (l *line) offerReceipt(r network.Receipt) (unknown []parley.MessageID, ok bool) {
	for tries := 1; l.s.ctx.Err() == nil; tries++ {
		err := l.s.sink(l.s.ctx, r)
		if err == nil {
			return nil, true
		}
		if e, ok := errors.AsType[*network.UnknownMessages](err); ok {
			return e.IDs, true
		}
		if errors.Is(err, parley.ErrNotFound) {
			return r.IDs, true
		}
		if !l.pause(retryPause(tries)) {
			break
		}
	}
	return nil, false
}

// giveReceipt gives a receipt that whatsmeow acknowledges.
func (l *line) giveReceipt(r network.Receipt) bool {
	l.s.giving.Lock()
	defer l.s.giving.Unlock()
	if !l.slips.await(r.From, l.taking.Done()) {
		return false
	}
	unknown, ok := l.offerReceipt(r)
	if len(unknown) > 0 {
		l.again(slip{Receipt: r}, unknown)
	}
	return ok
}

func among(ids, some []parley.MessageID) []parley.MessageID {
	var found []parley.MessageID
	for _, id := range ids {
		if slices.Contains(some, id) {
			found = append(found, id)
		}
	}
	return found
}

// again gives a part of a receipt, which the sink does not know, again after a pause. It reports false when it
// was given often enough, or there are too many.
func (l *line) again(one slip, unknown []parley.MessageID) bool {
	one.IDs = unknown
	one.tries++
	s := &l.slips
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
	time.AfterFunc(l.s.d.receiptPause(one.tries), func() {
		s.mu.Lock()
		s.allUnknown--
		if s.unknown[one.From]--; s.unknown[one.From] == 0 {
			delete(s.unknown, one.From)
		}
		s.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed {
			l.later(one)
		}
	})
	return true
}

// acknowledge tells the network that a receipt is stored. It reports false when it could not.
func (l *line) acknowledge(s slip) bool {
	return s.ack == nil || l.inner().SendNode(l.ctx, *s.ack) == nil
}

// await waits until the receipts of a chat that came before are given. It reports false when the line is
// being ended.
func (s *slips) await(from parley.ContactID, ended <-chan struct{}) bool {
	for {
		s.mu.Lock()
		if s.open[from] == 0 {
			s.mu.Unlock()
			return true
		}
		if s.filed == nil {
			s.filed = make(chan struct{})
		}
		filed := s.filed
		s.mu.Unlock()
		select {
		case <-filed:
		case <-ended:
			return false
		}
	}
}
