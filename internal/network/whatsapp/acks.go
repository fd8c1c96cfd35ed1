package whatsapp

import (
	"sync"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// acks are the messages of a line that wait for the network's confirmation. whatsmeow has such a list too, but
// what is never confirmed stays in it until the connection ends.
type acks struct {
	mu      sync.Mutex
	waiting map[types.MessageID]chan *waBinary.Node
	over    bool // the connection has ended: nothing will come
}

// expect returns where the confirmation of a message will come. It is closed when the connection ends first.
func (a *acks) expect(id types.MessageID) <-chan *waBinary.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	ack := make(chan *waBinary.Node, 1)
	if a.over {
		close(ack)
		return ack
	}
	if a.waiting == nil {
		a.waiting = map[types.MessageID]chan *waBinary.Node{}
	}
	a.waiting[id] = ack
	return ack
}

// forget ends the waiting for a message.
func (a *acks) forget(id types.MessageID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

// arrived passes a confirmation on.
func (a *acks) arrived(node *waBinary.Node) {
	id, _ := node.Attrs["id"].(string)
	a.mu.Lock()
	defer a.mu.Unlock()
	if ack := a.waiting[id]; ack != nil {
		delete(a.waiting, id)
		ack <- node
	}
}

// end ends the waiting for all messages.
func (a *acks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, ack := range a.waiting {
		close(ack)
	}
	a.waiting = nil
}
