package api

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters bounds each table of limiters: at about 200 bytes each, some 13 MB.
const maxLimiters = 1 << 16

// limiters is a bounded table of token buckets. A key that is not in it has a full bucket.
type limiters[K comparable] struct {
	refill rate.Limit
	burst  int

	used atomic.Int64 // how many keys are in the table, so that an empty one costs nothing
	mu   sync.Mutex
	by   map[K]*rate.Limiter
}

func newLimiters[K comparable](refill rate.Limit, burst int) *limiters[K] {
	return &limiters[K]{refill: refill, burst: burst, by: map[K]*rate.Limiter{}}
}

// left reports whether a key's bucket holds a token, without taking it, and else how long until it
// does.
func (l *limiters[K]) left(key K, now time.Time) (bool, time.Duration) {
	if l.used.Load() == 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.by[key]
	if limiter == nil {
		return true, 0
	}
	return l.wait(limiter, now)
}

// take takes a token from a key's bucket, or says how long until there is one.
func (l *limiters[K]) take(key K, now time.Time) (bool, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.by[key]
	if limiter == nil {
		if len(l.by) >= maxLimiters {
			l.makeRoom(now)
		}
		limiter = rate.NewLimiter(l.refill, l.burst)
		l.by[key] = limiter
		l.used.Store(int64(len(l.by)))
	}
	if limiter.AllowN(now, 1) {
		return true, 0
	}
	return l.wait(limiter, now)
}

func (l *limiters[K]) wait(limiter *rate.Limiter, now time.Time) (bool, time.Duration) {
	missing := 1 - limiter.TokensAt(now)
	if missing <= 0 {
		return true, 0
	}
	return false, time.Duration(missing / float64(l.refill) * float64(time.Second))
}

// makeRoom drops the fullest of a few buckets, which loses the least.
func (l *limiters[K]) makeRoom(now time.Time) {
	const looked = 16
	var fullest K
	most, n := -1.0, 0
	for key, limiter := range l.by { // begins anywhere
		if tokens := limiter.TokensAt(now); tokens > most {
			fullest, most = key, tokens
		}
		if n++; n == looked {
			break
		}
	}
	delete(l.by, fullest)
}

// networkOf is what failed authentications are counted by: an IPv4 address, or the network of 64
// bits that one customer of an IPv6 provider has.
func networkOf(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}

// slots bounds how much of something each key does at once.
type slots[K comparable] struct {
	most int
	mu   sync.Mutex
	by   map[K]chan struct{}
	uses map[K]int // of the channel, taken or waited for; at zero it is forgotten
}

func newSlots[K comparable](most int) *slots[K] {
	return &slots[K]{most: most, by: map[K]chan struct{}{}, uses: map[K]int{}}
}

// take waits for a slot, until patience has run out or done is closed, and reports whether it got one.
func (s *slots[K]) take(key K, done <-chan struct{}, patience time.Duration) bool {
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

// give gives a slot back.
func (s *slots[K]) give(key K) {
	s.mu.Lock()
	slot := s.by[key]
	s.mu.Unlock()
	<-slot
	s.forget(key)
}

func (s *slots[K]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[key]--; s.uses[key] == 0 {
		delete(s.uses, key)
		delete(s.by, key)
	}
}
