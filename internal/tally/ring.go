package tally

import (
	"slices"
	"time"
)

const dayMinutes = 24 * 60

// minuteOf numbers minutes.
func minuteOf(at time.Time) int64 { return at.Unix() / 60 }

// ring holds a value for each of the last so many spans of time, which are numbered.
type ring[T any] struct {
	slots []slot[T]
}

type slot[T any] struct {
	number int64
	value  T
}

// newRing makes a ring for so many whole spans and the one that is under way.
func newRing[T any](spans int) ring[T] { return ring[T]{make([]slot[T], spans+1)} }

// at returns the value of a span, to be changed; nil: the ring has a newer one in its place.
func (r ring[T]) at(number int64) *T {
	s := &r.slots[number%int64(len(r.slots))]
	switch {
	case s.number > number:
		return nil
	case s.number < number:
		*s = slot[T]{number: number}
	}
	return &s.value
}

// get returns the value of a span without making room for it.
func (r ring[T]) get(number int64) (value T) {
	if s := r.slots[number%int64(len(r.slots))]; s.number == number {
		return s.value
	}
	return value
}

// each visits the values of all spans up to one that the ring holds.
func (r ring[T]) each(upTo int64, visit func(T)) {
	for _, s := range r.slots {
		if s.number <= upTo && s.number > upTo-int64(len(r.slots)) {
			visit(s.value)
		}
	}
}

// samples keeps the last so many lengths of time, in milliseconds.
type samples struct {
	kept []int64
	next int
}

const maxSamples = 1024

func (s *samples) add(d time.Duration) {
	if len(s.kept) < maxSamples {
		s.kept = append(s.kept, d.Milliseconds())
		return
	}
	s.kept[s.next] = d.Milliseconds()
	s.next = (s.next + 1) % maxSamples
}

// times returns the middle and the 95th of a hundred; nil: there are none.
func (s *samples) times() *Times {
	if len(s.kept) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(s.kept))
	return &Times{P50: sorted[len(sorted)/2], P95: sorted[len(sorted)*95/100]}
}
