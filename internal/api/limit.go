package api

import (
	"net/netip"
	"sync"
	"time"
)

// maxLimiters bounds each table of limiters: at about 100 bytes each, some 7 MB.
const maxLimiters = 1 << 16

// limiters is a bounded table of buckets, from each of which one token is taken at a time. A key that
// is not in it has a full bucket. All is counted in whole nanoseconds, so that whoever waits as long as
// was said finds a token.
type limiters[K comparable] struct {
	every time.Duration // in which a token comes back
	burst int           // how many fit into a bucket

	mu sync.Mutex
	by map[K]time.Time // when the bucket is full again
}

func newLimiters[K comparable](every time.Duration, burst int) *limiters[K] {
	return &limiters[K]{every: max(every, 1), burst: burst, by: map[K]time.Time{}}
}

// take takes a token from a key's bucket, or says how long until there is one.
func (l *limiters[K]) take(key K, now time.Time) (bool, time.Duration) {
	q := l.spend(key, now)
	return !q.refuses, q.wait
}

// spend takes a token from a key's bucket, if there is one, and says what is left.
func (l *limiters[K]) spend(key K, now time.Time) quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := quota{most: int64(l.burst), window: time.Duration(l.burst) * l.every}
	tokens, wait := l.look(key, now)
	if tokens == 0 {
		q.refuses, q.wait = true, wait
		return q
	}
	if _, known := l.by[key]; !known && len(l.by) >= maxLimiters {
		l.makeRoom(now)
	}
	l.by[key] = now.Add(l.missing(key, now) + l.every)
	tokens, q.wait = l.look(key, now)
	q.left = int64(tokens)
	return q
}

// look returns how many tokens are in a key's bucket, and how long until there is one more. A bucket
// that is full is forgotten.
func (l *limiters[K]) look(key K, now time.Time) (tokens int, wait time.Duration) {
	missing := l.missing(key, now)
	if missing == 0 {
		delete(l.by, key)
		return l.burst, 0
	}
	gone := int((missing + l.every - 1) / l.every) // one that is on its way is not there yet
	return max(0, l.burst-gone), missing - time.Duration(min(gone, l.burst)-1)*l.every
}

// missing is how long it takes a key's bucket to be full.
func (l *limiters[K]) missing(key K, now time.Time) time.Duration {
	full, known := l.by[key]
	if !known {
		return 0
	}
	return max(0, full.Sub(now))
}

// makeRoom drops the fullest of a few buckets, which loses the least.
func (l *limiters[K]) makeRoom(now time.Time) {
	const looked = 16
	var fullest K
	least, n := time.Duration(0), 0
	for key := range l.by { // begins anywhere
		if missing := l.missing(key, now); n == 0 || missing < least {
			fullest, least = key, missing
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
