// Package bus carries what is happening to whoever watches: live events inside one process. It is a
// hint, never the truth: what must not be lost is in the store.
package bus

import (
	"maps"
	"slices"
	"sync"
)

// Topic hands every value that is published to every subscriber. The zero value is ready to use.
type Topic[T any] struct {
	mu   sync.RWMutex
	subs map[*subscription[T]]struct{}
}

type subscription[T any] struct{ values chan T }

// Publish gives v to all subscribers and never waits: a subscriber whose buffer is full is cut off,
// and its channel closed, so that it can see what it missed elsewhere and come back.
func (t *Topic[T]) Publish(v T) {
	t.mu.RLock()
	all := slices.Collect(maps.Keys(t.subs))
	t.mu.RUnlock()
	t.give(v, all)
}

// PublishInGroups is Publish to so many subscribers at a time, with a pause between them: where each
// of many has work to do with a value, they are not all to begin at once. Who subscribes meanwhile may
// or may not get v.
func (t *Topic[T]) PublishInGroups(v T, size int, pause func()) {
	t.mu.RLock()
	all := slices.Collect(maps.Keys(t.subs))
	t.mu.RUnlock()
	for i, group := range slices.Collect(slices.Chunk(all, size)) {
		if i > 0 {
			pause()
		}
		t.give(v, group)
	}
}

// give gives v to those of a group that still subscribe.
func (t *Topic[T]) give(v T, group []*subscription[T]) {
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

// Watched reports whether anybody subscribes, so that costly values need not be made for nobody.
func (t *Topic[T]) Watched() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.subs) > 0
}

// Subscribe returns what is published from now on, until cancel is called or the subscriber falls
// more than buffer values behind.
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
