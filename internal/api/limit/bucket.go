// Package limit bounds how often, how much and how much at once each key may do something.
//
//   - All times are whole nanoseconds: after waiting as long as [Quota.Wait] says, a key is let in.
//   - No window begins again all at once: at no moment is more let in than the limit says.
//   - Tables are bounded: a key that used nothing lately takes no memory.
//   - A [Quota] never says whose it is, so it can be shown in a header.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

// maxKeys bounds each table of buckets: at about 100 bytes each, about 7 MB.
const maxKeys = 1 << 16

// Buckets is a bounded table of token buckets. A key that is not in it has a full bucket.
//
// It is not made of rate.Limiter: that counts in floating point, so a caller that waits exactly as long as it says
// may come too early, and the bounded table and what is left would still be needed around it.
type Buckets[K comparable] struct {
	every time.Duration // in which a token comes back
	burst int           // how many fit into a bucket

	mu sync.Mutex
	by map[K]time.Time // when the bucket is full again
}

// NewBuckets returns buckets of burst tokens each, one of which comes back in every.
func NewBuckets[K comparable](every time.Duration, burst int) *Buckets[K] {
	return &Buckets[K]{every: max(every, 1), burst: burst, by: map[K]time.Time{}}
}

// Take takes a token from a key's bucket, or says how long until there is one.
func (l *Buckets[K]) Take(key K, now time.Time) (bool, time.Duration) {
	q := l.Spend(key, now)
	return !q.Refused, q.Wait
}

// Spend takes a token from a key's bucket, if there is one, and says what is left.
func (l *Buckets[K]) Spend(key K, now time.Time) Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := Quota{Most: int64(l.burst), Window: time.Duration(l.burst) * l.every}
	tokens, wait := l.look(key, now)
	if tokens == 0 {
		q.Refused, q.Wait = true, wait
		return q
	}
	if _, known := l.by[key]; !known && len(l.by) >= maxKeys {
		l.makeRoom(now)
	}
	l.by[key] = now.Add(l.missing(key, now) + l.every)
	tokens, q.Wait = l.look(key, now)
	q.Left = int64(tokens)
	return q
}

// look returns how many tokens are in a key's bucket, and how long until there is one more. A bucket
// that is full is forgotten.
func (l *Buckets[K]) look(key K, now time.Time) (tokens int, wait time.Duration) {
	missing := l.missing(key, now)
	if missing == 0 {
		delete(l.by, key)
		return l.burst, 0
	}
	gone := int((missing + l.every - 1) / l.every) // one that is on its way is not there yet
	return max(0, l.burst-gone), missing - time.Duration(min(gone, l.burst)-1)*l.every
}

// missing is how long it takes a key's bucket to be full.
func (l *Buckets[K]) missing(key K, now time.Time) time.Duration {
	full, known := l.by[key]
	if !known {
		return 0
	}
	return max(0, full.Sub(now))
}

// makeRoom drops the fullest of a few buckets, which loses the least.
func (l *Buckets[K]) makeRoom(now time.Time) {
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

// NetworkOf is what failed authentications are counted by: an IPv4 address, or the network of 64
// bits that one customer of an IPv6 provider has.
func NetworkOf(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}
