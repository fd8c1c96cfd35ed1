package whatsapp

import (
	"context"
	"sync"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// A sender may use a LID whose number the network does not give. The gateway identifies contacts by number. Such a
// message is not acknowledged and held until the number is known. Then it is handled, before later messages of that
// sender. The network also delivers it again with the next connection.

// maxHeld bounds held messages. Others come with the next connection.
const maxHeld = 1000

// unknownSenders holds messages of senders whose number is not known.
type unknownSenders struct {
	mu      sync.Mutex
	marked  map[types.MessageID]string  // LID of the sender by message id, until the stanza is held
	stanzas map[string][]*waBinary.Node // by the LID of their sender, in order
	count   int
}

// mark notes that the sender of a message is not known.
func (h *unknownSenders) mark(id types.MessageID, lid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marked == nil {
		h.marked, h.stanzas = map[types.MessageID]string{}, map[string][]*waBinary.Node{}
	}
	h.marked[id] = lid
}

// hold stores a stanza that was just handled, if its sender is unknown.
func (h *unknownSenders) hold(stanza *waBinary.Node) {
	id, _ := stanza.Attrs["id"].(string)
	h.mu.Lock()
	defer h.mu.Unlock()
	lid, ok := h.marked[id]
	delete(h.marked, id)
	if !ok || h.count >= maxHeld {
		return
	}
	h.stanzas[lid] = append(h.stanzas[lid], stanza)
	h.count++
}

// pop removes and returns the stanzas of a sender, in order.
func (h *unknownSenders) pop(lid string) []*waBinary.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	stanzas := h.stanzas[lid]
	delete(h.stanzas, lid)
	h.count -= len(stanzas)
	return stanzas
}

func (h *unknownSenders) isEmpty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count == 0 && len(h.marked) == 0
}

// replayFrom handles the messages of a sender again whose number is known by now.
func (conn *connection) replayFrom(sender types.JID) {
	if sender.Server != types.HiddenUserServer {
		return
	}
	for _, stanza := range conn.unknownSenders.pop(sender.User) {
		conn.handleStanza(stanza)
	}
}

// scheduleReplay handles held messages after the current stanza. If that one is from the same sender, its held messages
// come first.
func (conn *connection) scheduleReplay(senders []types.JID) {
	if conn.unknownSenders.isEmpty() { // as nearly always
		return
	}
	s := &conn.stanzas
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learned = append(s.learned, senders...)
	if s.running == 0 {
		conn.startStanzaHandler()
	}
}

type lidObserver struct {
	store.LIDStore
	learned func(lids []types.JID)
}

func (p lidObserver) PutLIDMapping(ctx context.Context, lid, number types.JID) error {
	err := p.LIDStore.PutLIDMapping(ctx, lid, number)
	if err == nil {
		p.learned([]types.JID{lid})
	}
	return err
}

func (p lidObserver) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	err := p.LIDStore.PutManyLIDMappings(ctx, mappings)
	if err == nil {
		lids := make([]types.JID, len(mappings))
		for i, m := range mappings {
			lids[i] = m.LID
		}
		p.learned(lids)
	}
	return err
}
