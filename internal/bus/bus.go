// Package bus publishes live values inside one process.
//
// Invariants:
//
//   - Publish never blocks. A subscriber that falls behind is cut off and must resume from the store.
//   - The bus is a hint: everything that must not be lost is in the store.
package bus

import (
	"maps"
	"slices"
	"sync"
)

// Topic sends every published value to every subscriber. The zero value is ready to use.
type Topic[T any] struct {
	mu   sync.RWMutex
	subs map[*subscription[T]]struct{}
}

type subscription[T any] struct{ values chan T }

// Publish sends v to all subscribers and never blocks. A subscriber with a full buffer is cut off and its channel
// closed.
func (t *Topic[T]) Publish(v T) {
	t.mu.RLock()
	all := slices.Collect(maps.Keys(t.subs))
	t.mu.RUnlock()
	t.send(v, all)
}

// PublishInGroups is Publish to size subscribers at a time, with a pause between groups, so that many subscribers do
// not all work at once. New subscribers may or may not get v.
func (t *Topic[T]) PublishInGroups(v T, size int, pause func()) {
	t.mu.RLock()
	all := slices.Collect(maps.Keys(t.subs))
	t.mu.RUnlock()
	for i, group := range slices.Collect(slices.Chunk(all, size)) {
		if i > 0 {
			pause()
		}
		t.send(v, group)
	}
}

func (t *Topic[T]) send(v T, group []*subscription[T]) {
	t.mu.RLock()
	var slow []*subscription[T]
	for _, s := range group {
		if _, there := t.subs[s]; !there {
			continue
		}
		select {
		case s.values <- v:
		default:
			slow = append(slow, s)
		}
	}
	t.mu.RUnlock()
	for _, s := range slow {
		t.remove(s)
	}
}

// HasSubscribers reports whether there are subscribers, to avoid building values that are not read.
func (t *Topic[T]) HasSubscribers() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.subs) > 0
}

// Subscribe returns values published from now on, until cancel is called or the subscriber falls more than buffer
// values behind.
func (t *Topic[T]) Subscribe(buffer int) (values <-chan T, cancel func()) {
	s := &subscription[T]{values: make(chan T, buffer)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs == nil {
		t.subs = map[*subscription[T]]struct{}{}
	}
	t.subs[s] = struct{}{}
	return s.values, func() { t.remove(s) }
}

func (t *Topic[T]) remove(s *subscription[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.subs[s]; there {
		delete(t.subs, s)
		close(s.values)
	}
}
