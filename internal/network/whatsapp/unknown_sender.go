package whatsapp

import (
	"context"
	"sync"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// A person may write under a LID whose number the network does not say. To the gateway a person is the number,
// so such a message is not acknowledged, and kept until the number is known: then it is handled again, before
// what that person wrote later. With the next connection the network gives it again anyway.

// maxHeld is how many such messages a line keeps. Those beyond it come with the next connection.
const maxHeld = 1000

// unknownSenders are the messages of a line whose senders are not known.
type unknownSenders struct {
	mu      sync.Mutex
	marked  map[types.MessageID]string  // by id: the LID of the sender, until the stanza is kept
	stanzas map[string][]*waBinary.Node // by the LID of their sender, in order
	count   int
}

// mark takes note that the sender of the message which is being handled is not known.
func (h *unknownSenders) mark(id types.MessageID, lid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marked == nil {
		h.marked, h.stanzas = map[types.MessageID]string{}, map[string][]*waBinary.Node{}
	}
	h.marked[id] = lid
}

// hold keeps a stanza that was just handled, if its sender was not known.
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

// pop returns the stanzas of a sender, in order, and forgets them.
func (h *unknownSenders) pop(lid string) []*waBinary.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	stanzas := h.stanzas[lid]
	delete(h.stanzas, lid)
	h.count -= len(stanzas)
	return stanzas
}

// isEmpty reports whether no message is kept, or about to be.
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

// scheduleReplay has what is kept of senders handled after the stanza that is being handled: if that is from one
// of them, it comes first there.
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

// lidObserver tells the line when the number of a LID becomes known.
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
