package wait

import (
	"context"
	"slices"
	"sync"
)

// Turns decide who gets the next of some places, such as connections: of the callers that wait, the one that holds the fewest, and of
// equal ones the one that had no turn for the longest time. So one that asks for many does not make others wait behind all of them.
type Turns struct {
	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting map[string][]chan struct{} // by caller, in their order; a closed one has its turn
	order   []string                   // the callers that wait
}

// NewTurns returns the turns for so many places.
func NewTurns(places int) *Turns {
	return &Turns{free: places, held: map[string]int{}, waiting: map[string][]chan struct{}{}}
}

// Try takes a place if one is free.
func (t *Turns) Try(caller string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return false
	}
	t.free--
	t.held[caller]++
	return true
}

// Take waits for a place, at most until ctx ends.
func (t *Turns) Take(ctx context.Context, caller string) error {
	turn := t.queue(caller)
	select {
	case <-turn:
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[caller]
	i := slices.Index(queue, turn)
	if i < 0 { // it got its turn at the same moment
		t.pass(caller)
		return ctx.Err()
	}
	if t.waiting[caller] = slices.Delete(queue, i, i+1); len(queue) == 1 {
		t.leave(caller)
	}
	return ctx.Err()
}

// Waiting is how many wait for a place.
func (t *Turns) Waiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queue := range t.waiting {
		n += len(queue)
	}
	return n
}

// taken is a turn that came at once.
var taken = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// queue returns a channel that is closed when the caller has a place.
func (t *Turns) queue(caller string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		t.held[caller]++
		return taken
	}
	turn := make(chan struct{})
	if len(t.waiting[caller]) == 0 {
		t.order = append(t.order, caller)
	}
	t.waiting[caller] = append(t.waiting[caller], turn)
	return turn
}

// leave removes a caller that no longer waits.
func (t *Turns) leave(caller string) {
	delete(t.waiting, caller)
	t.order = slices.DeleteFunc(t.order, func(c string) bool { return c == caller })
}

// Give returns a caller's place, which the next one gets.
func (t *Turns) Give(caller string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass(caller)
}

func (t *Turns) pass(caller string) {
	if t.held[caller]--; t.held[caller] == 0 {
		delete(t.held, caller)
	}
	if len(t.order) == 0 {
		t.free++
		return
	}
	next := slices.MinFunc(t.order, func(a, b string) int { return t.held[a] - t.held[b] })
	turn, rest := t.waiting[next][0], t.waiting[next][1:]
	t.leave(next)
	if len(rest) > 0 {
		t.waiting[next], t.order = rest, append(t.order, next)
	}
	t.held[next]++
	close(turn)
}
