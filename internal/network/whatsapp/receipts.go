package whatsapp

import (
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
	// hostedDevice is the number of a device that a business's host has. whatsmeow does not tell its address
	// as it was, so that it has to acknowledge what comes from it.
	hostedDevice = 99
)

// slip is a receipt with the acknowledgement that it waits for.
type slip struct {
	network.Receipt
	ack waBinary.Node
}

// slips are the receipts of a line that are not kept yet.
type slips struct {
	mu     sync.Mutex
	waits  []slip
	open   map[parley.ContactID]int // how many of a chat wait or are being given
	filing bool
	filed  chan struct{} // closed when some were given; nil: nobody waits for that
}

// later has a receipt given and acknowledged soon.
func (l *line) later(e *events.Receipt, r network.Receipt) {
	ack := waBinary.Attrs{"class": "receipt", "id": e.MessageIDs[0], "to": e.Sender}
	if e.Type != types.ReceiptTypeDelivered {
		ack["type"] = string(e.Type)
	}
	s := &l.slips
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[parley.ContactID]int{}
	}
	s.open[r.From]++
	s.waits = append(s.waits, slip{r, waBinary.Node{Tag: "ack", Attrs: ack}})
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
		if !l.offer(same) {
			return
		}
		for _, s := range chat[:n] {
			if err := l.inner().SendNode(l.ctx, s.ack); err != nil {
				return // it comes again
			}
		}
		chat = chat[n:]
	}
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
