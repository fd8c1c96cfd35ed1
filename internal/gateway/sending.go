package gateway

import (
	"context"
	"sync"
	"time"

	"parley"
)

// sending are messages on their way from a request to the network, and the request that waits for them.
type sending struct {
	done  chan struct{} // closed when the request has waited for all that it waits for
	until time.Time     // how long it waits once they are on disk; zero: no longer
	// asked are the contacts as the request spells them. The store replaces that by the network's spelling.
	asked []parley.ContactID

	mu       sync.Mutex
	messages []parley.Message // of the request alone once done is closed
	err      error            // why they were not kept
	open     int              // not settled
	over     bool             // done is closed
}

func newSending(ms []parley.Message, wait time.Duration) *sending {
	s := &sending{done: make(chan struct{}), messages: ms, open: len(ms)}
	for i := range ms {
		s.asked = append(s.asked, ms[i].Chat)
	}
	if wait > 0 {
		s.until = time.Now().Add(wait)
	}
	return s
}

// kept tells whether they are on disk.
func (s *sending) kept(err error) {
	if err == nil && !s.until.IsZero() {
		return // for the network now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.end()
}

// settle takes over what became of a message. A receipt may be faster than the confirmation that it
// implies; whoever waits for that is told that it was sent.
func (s *sending) settle(i int, m *parley.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &s.messages[i]
	if s.over || own.Status.IsSettled() {
		return
	}
	own.Status, own.Failure, own.UpdatedAt = m.Status, m.Failure, m.UpdatedAt
	if m.Status == parley.Delivered || m.Status == parley.Read || m.Status == parley.Played {
		own.Status = parley.Sent
	}
	if s.open--; s.open == 0 {
		s.end()
	}
}

// giveUp ends the wait as it stands.
func (s *sending) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// end is called with the lock held.
func (s *sending) end() {
	if !s.over {
		s.over = true
		close(s.done)
	}
}

// waitTick is how late a request may hear that its wait is over. One look at all who wait, now and then,
// costs less than a timer for each, which hardly ever fires.
const waitTick = 50 * time.Millisecond

// waiting knows which requests wait for which messages.
type waiting struct {
	somebody chan struct{} // holds something when somebody waits where nobody did

	mu     sync.Mutex
	byID   map[parley.MessageID]waiter
	closed bool // nobody looks after those who wait any more
}

type waiter struct {
	sending *sending
	index   int
}

func newWaiting() *waiting {
	return &waiting{somebody: make(chan struct{}, 1), byID: map[parley.MessageID]waiter{}}
}

func (w *waiting) add(s *sending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		s.giveUp()
		return
	}
	if len(w.byID) == 0 {
		select {
		case w.somebody <- struct{}{}:
		default:
		}
	}
	for i := range s.messages {
		w.byID[s.messages[i].ID] = waiter{s, i}
	}
}

func (w *waiting) remove(s *sending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range s.messages {
		delete(w.byID, s.messages[i].ID)
	}
}

// find returns who waits for a message.
func (w *waiting) find(id parley.MessageID) (waiter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.byID[id]
	return found, ok
}

// run lets everybody go whose wait is over, until ctx ends: then all of them.
func (w *waiting) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			w.close()
			return
		case <-w.somebody:
			w.watch(ctx)
		}
	}
}

// watch looks after those who wait until nobody does.
func (w *waiting) watch(ctx context.Context) {
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if w.release(now) == 0 {
				return
			}
		}
	}
}

// release lets those go whose wait is over, and returns how many were there.
func (w *waiting) release(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiter := range w.byID {
		if !now.Before(waiter.sending.until) {
			waiter.sending.giveUp()
		}
	}
	return len(w.byID)
}

// close lets everybody go, also those who are still to come.
func (w *waiting) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, waiter := range w.byID {
		waiter.sending.giveUp()
	}
}

// settled tells whoever waits for a message what became of it.
func (g *Gateway) settled(m *parley.Message) {
	if waiter, ok := g.waiting.find(m.ID); ok {
		waiter.sending.settle(waiter.index, m)
	}
	g.measures.settled(m)
	if g.activity.Watched() {
		g.activity.Publish(activityOf(m))
	}
}
