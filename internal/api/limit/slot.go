package limit

import (
	"sync"
	"time"
)

// Slots bounds how much of something each key does at once.
type Slots[K comparable] struct {
	most int
	mu   sync.Mutex
	by   map[K]chan struct{}
	uses map[K]int // of the channel, taken or waited for; at zero it is forgotten
}

// NewSlots returns slots for most of something at once.
func NewSlots[K comparable](most int) *Slots[K] {
	return &Slots[K]{most: most, by: map[K]chan struct{}{}, uses: map[K]int{}}
}

// Take waits for a slot, until patience has run out or done is closed, and reports whether it got one.
func (s *Slots[K]) Take(key K, done <-chan struct{}, patience time.Duration) bool {
	s.mu.Lock()
	slot := s.by[key]
	if slot == nil {
		slot = make(chan struct{}, s.most)
		s.by[key] = slot
	}
	s.uses[key]++
	s.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case slot <- struct{}{}:
		return true
	case <-timer.C:
	case <-done:
	}
	s.forget(key)
	return false
}

// Most is how many slots each key has.
func (s *Slots[K]) Most() int { return s.most }

// Give gives a slot back.
func (s *Slots[K]) Give(key K) {
	s.mu.Lock()
	slot := s.by[key]
	s.mu.Unlock()
	<-slot
	s.forget(key)
}

func (s *Slots[K]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[key]--; s.uses[key] == 0 {
		delete(s.uses, key)
		delete(s.by, key)
	}
}
