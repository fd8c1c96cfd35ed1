// Package limit bounds how often, how much and how much at once each key may do something.
//
//   - All times are whole nanoseconds: after waiting as long as [Quota.Wait] says, a key is let in.
//   - No window begins again all at once: at no moment is more let in than the limit says.
//   - Tables are bounded: a key that used nothing lately takes no memory.
//   - A [Quota] never says whose it is, so it can be shown in a header.
package limit

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"parley"
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

// What is counted, where it is not requests.
const (
	UnitBytes  = "content-bytes"
	UnitAtOnce = "concurrent-requests"
)

// Quota is what is left of a limit.
type Quota struct {
	Name    string // empty: there is no limit
	Unit    string // empty: requests
	Most    int64
	Window  time.Duration // zero: it does not go by time
	Left    int64
	Wait    time.Duration // until there is more; where the quota refuses, until it would not
	Refused bool          // the request that it was asked for
}

// Header returns the values of the header fields RateLimit-Policy and RateLimit, in the syntax of structured fields
// (RFC 9651). Times are rounded up: nobody comes back too early.
func (q Quota) Header() (policy, limit string) {
	policy = fmt.Sprintf("%q;q=%d", q.Name, q.Most)
	if q.Window > 0 {
		policy += fmt.Sprintf(";w=%d", WholeSeconds(q.Window))
	}
	if q.Unit != "" {
		policy += fmt.Sprintf(";qu=%q", q.Unit)
	}
	return policy, fmt.Sprintf("%q;r=%d;t=%d", q.Name, q.Left, WholeSeconds(q.Wait))
}

// TighterThan reports whether less is left of the quota than of another.
func (q Quota) TighterThan(other Quota) bool {
	switch {
	case other.Name == "":
		return true
	case q.Left == 0 && other.Left == 0:
		return q.Wait > other.Wait
	}
	return float64(q.Left)/float64(q.Most) < float64(other.Left)/float64(other.Most)
}

// WholeSeconds returns a time in seconds, rounded up.
func WholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Error is the error of a request that is over a limit, which its response names.
type Error struct {
	Quota
	Err *parley.Error
}

// Exceeded returns the error of a request that a quota refuses, with a sentence for its caller.
func Exceeded(q Quota, sentence string) error {
	return &Error{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence}}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// meterGrain is how many parts a meter's window is counted in, which bounds what is remembered of a
// key. What was used in one part is forgotten together, with the last of it.
const meterGrain = 60

// Meter counts how much each key used within a window that moves along with time, so that there is no
// moment at which all is forgotten at once. How much something takes shows only when it is done, so a
// meter lets a key begin that has anything left, and what goes beyond is counted too.
type Meter[K comparable] struct {
	most   int64
	window time.Duration

	mu sync.Mutex
	by map[K][]usage // oldest first
}

type usage struct {
	from, to time.Time
	amount   int64
}

// NewMeter returns a meter that allows most within any window.
func NewMeter[K comparable](most int64, window time.Duration) *Meter[K] {
	return &Meter[K]{most: most, window: window, by: map[K][]usage{}}
}

// Add counts what a key used.
func (m *Meter[K]) Add(key K, amount int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used, known := m.by[key]
	if !known {
		m.forgetOthers(now)
	}
	if n := len(used); n > 0 && now.Sub(used[n-1].from) < m.window/meterGrain {
		used[n-1].to = now
		used[n-1].amount += amount
		return
	}
	m.by[key] = append(m.recent(used, now), usage{now, now, amount})
}

// Look says what is left for a key.
func (m *Meter[K]) Look(key K, now time.Time) Quota {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.recent(m.by[key], now)
	if len(used) == 0 {
		delete(m.by, key)
	} else {
		m.by[key] = used
	}
	var sum int64
	for _, u := range used {
		sum += u.amount
	}
	q := Quota{Most: m.most, Window: m.window, Left: max(0, m.most-sum), Refused: sum >= m.most}
	for _, u := range used {
		q.Wait = u.to.Add(m.window).Sub(now)
		if sum -= u.amount; sum < m.most {
			break
		}
	}
	return q
}

// recent drops what counts no longer.
func (m *Meter[K]) recent(used []usage, now time.Time) []usage {
	return slices.DeleteFunc(used, func(u usage) bool { return now.Sub(u.to) >= m.window })
}

// forgetOthers looks at a few other keys and forgets those that used nothing of late.
func (m *Meter[K]) forgetOthers(now time.Time) {
	n := 0
	for key, used := range m.by { // begins anywhere
		if now.Sub(used[len(used)-1].to) >= m.window {
			delete(m.by, key)
		}
		if n++; n == 4 {
			return
		}
	}
}

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
