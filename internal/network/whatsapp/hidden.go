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

// mostHidden is how many such messages a line keeps. Those beyond it come with the next connection.
const mostHidden = 1000

// hidden are the messages of a line whose senders are not known.
type hidden struct {
	mu      sync.Mutex
	found   map[types.MessageID]string  // by id: the LID of the sender, until the stanza is kept
	stanzas map[string][]*waBinary.Node // by the LID of their sender, in order
	count   int
}

// note takes note that the sender of the message which is being handled is not known.
func (h *hidden) note(id types.MessageID, lid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.found == nil {
		h.found, h.stanzas = map[types.MessageID]string{}, map[string][]*waBinary.Node{}
	}
	h.found[id] = lid
}

// keep keeps a stanza that was just handled, if its sender was not known.
func (h *hidden) keep(stanza *waBinary.Node) {
	id, _ := stanza.Attrs["id"].(string)
	h.mu.Lock()
	defer h.mu.Unlock()
	lid, ok := h.found[id]
	delete(h.found, id)
	if !ok || h.count >= mostHidden {
		return
	}
	h.stanzas[lid] = append(h.stanzas[lid], stanza)
	h.count++
}

// take returns the stanzas of a sender, in order, and forgets them.
func (h *hidden) take(lid string) []*waBinary.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	stanzas := h.stanzas[lid]
	delete(h.stanzas, lid)
	h.count -= len(stanzas)
	return stanzas
}

// isEmpty reports whether no message is kept, or about to be.
func (h *hidden) isEmpty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count == 0 && len(h.found) == 0
}

// reveal handles the messages of a sender again whose number is known by now.
func (l *line) reveal(sender types.JID) {
	if sender.Server != types.HiddenUserServer {
		return
	}
	for _, stanza := range l.hidden.take(sender.User) {
		l.handleStanza(stanza)
	}
}

// revealSoon has what is kept of senders handled after the stanza that is being handled: if that is from one
// of them, it comes first there.
func (l *line) revealSoon(senders []types.JID) {
	if l.hidden.isEmpty() { // as nearly always
		return
	}
	s := &l.stanzas
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, senders...)
	if s.running == 0 {
		l.startStanzas()
	}
}

// people tells the line when the number of a LID becomes known.
type people struct {
	store.LIDStore
	learned func(lids []types.JID)
}

func (p people) PutLIDMapping(ctx context.Context, lid, number types.JID) error {
	err := p.LIDStore.PutLIDMapping(ctx, lid, number)
	if err == nil {
		p.learned([]types.JID{lid})
	}
	return err
}

func (p people) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
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
