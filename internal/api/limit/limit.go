// Package limit holds rate limiters by key: token buckets, sliding windows and concurrency slots.
//
// Invariants:
//   - Times are exact: after waiting for [Quota.Wait], a key is allowed.
//   - Windows slide, so no moment allows more than the limit.
//   - Tables are bounded: an unused key takes no memory.
//   - A [Quota] does not contain its key, so it can be shown in a header.
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
// rate.Limiter is not used because it counts in floating point: a caller that waits exactly as long as it says
// may come too early.
type Buckets[K comparable] struct {
	every time.Duration // after which a token is refilled
	burst int           // tokens in a full bucket

	mu sync.Mutex
	by map[K]time.Time // when the bucket is full again
}

// NewBuckets returns buckets of burst tokens, refilled one per every.
func NewBuckets[K comparable](every time.Duration, burst int) *Buckets[K] {
	return &Buckets[K]{every: max(every, 1), burst: burst, by: map[K]time.Time{}}
}

// Spend removes a token from a key's bucket, if there is one, and returns what is left.
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

// look returns how many tokens are in a key's bucket, and how long until the next. It drops a full bucket.
func (l *Buckets[K]) look(key K, now time.Time) (tokens int, wait time.Duration) {
	missing := l.missing(key, now)
	if missing == 0 {
		delete(l.by, key)
		return l.burst, 0
	}
	gone := int((missing + l.every - 1) / l.every) // a token that is partly refilled does not count
	return max(0, l.burst-gone), missing - time.Duration(min(gone, l.burst)-1)*l.every
}

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
	for key := range l.by { // random order
		if missing := l.missing(key, now); n == 0 || missing < least {
			fullest, least = key, missing
		}
		if n++; n == looked {
			break
		}
	}
	delete(l.by, fullest)
}

// ToNetwork is the key of an address: the IPv4 address, or the /64 network of an IPv6 customer.
func ToNetwork(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}

// Units other than requests.
const (
	UnitBytes  = "content-bytes"
	UnitAtOnce = "concurrent-requests"
)

type Quota struct {
	Name    string // empty: there is no limit
	Unit    string // empty: requests
	Most    int64
	Window  time.Duration // zero: not by time
	Left    int64
	Wait    time.Duration // until there is more; if refused, until it is allowed
	Refused bool          // this request
}

// Header returns the values of the header fields RateLimit-Policy and RateLimit, in the syntax of structured fields
// (RFC 9651). Times are rounded up, so that no caller retries too early.
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

func (q Quota) TighterThan(other Quota) bool {
	switch {
	case other.Name == "":
		return true
	case q.Left == 0 && other.Left == 0:
		return q.Wait > other.Wait
	}
	return float64(q.Left)/float64(q.Most) < float64(other.Left)/float64(other.Most)
}

func WholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Error is the error of a request over a limit. The response names the limit.
type Error struct {
	Quota
	Err *parley.Error
}

func Exceeded(q Quota, sentence string) error {
	return &Error{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence}}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

const windowSlices = 60 // bounds the memory of a key; a slice expires as a whole

// Window counts how much each key used within a sliding window. The amount of a use is known only afterwards:
// a key with anything left may begin, and what exceeds the limit counts too.
type Window[K comparable] struct {
	most   int64
	window time.Duration

	mu sync.Mutex
	by map[K][]usage // oldest first
}

type usage struct {
	from, to time.Time
	amount   int64
}

func NewWindow[K comparable](most int64, window time.Duration) *Window[K] {
	return &Window[K]{most: most, window: window, by: map[K][]usage{}}
}

func (m *Window[K]) Add(key K, amount int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used, known := m.by[key]
	if !known {
		m.dropIdle(now)
	}
	if n := len(used); n > 0 && now.Sub(used[n-1].from) < m.window/windowSlices {
		used[n-1].to = now
		used[n-1].amount += amount
		return
	}
	m.by[key] = append(m.recent(used, now), usage{now, now, amount})
}

func (m *Window[K]) Peek(key K, now time.Time) Quota {
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

func (m *Window[K]) recent(used []usage, now time.Time) []usage {
	return slices.DeleteFunc(used, func(u usage) bool { return now.Sub(u.to) >= m.window })
}

// dropIdle drops unused keys among a few.
func (m *Window[K]) dropIdle(now time.Time) {
	n := 0
	for key, used := range m.by { // random order
		if now.Sub(used[len(used)-1].to) >= m.window {
			delete(m.by, key)
		}
		if n++; n == 4 {
			return
		}
	}
}

// Slots limits the concurrency of each key.
type Slots[K comparable] struct {
	Most int // slots of each key
	mu   sync.Mutex
	by   map[K]*slots
}

type slots struct {
	used chan struct{}
	uses int // slots in use or waited for; at zero the key is dropped
}

func NewSlots[K comparable](most int) *Slots[K] { return &Slots[K]{Most: most, by: map[K]*slots{}} }

// Acquire waits for a slot, until the timeout or until done is closed, and reports whether it got one.
func (s *Slots[K]) Acquire(key K, done <-chan struct{}, timeout time.Duration) bool {
	s.mu.Lock()
	of := s.by[key]
	if of == nil {
		of = &slots{used: make(chan struct{}, s.Most)}
		s.by[key] = of
	}
	of.uses++
	s.mu.Unlock()
	select {
	case of.used <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case of.used <- struct{}{}:
		return true
	case <-timer.C:
	case <-done:
	}
	s.drop(key, of)
	return false
}

func (s *Slots[K]) Release(key K) {
	s.mu.Lock()
	of := s.by[key]
	s.mu.Unlock()
	<-of.used
	s.drop(key, of)
}

func (s *Slots[K]) drop(key K, of *slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.uses--; of.uses == 0 {
		delete(s.by, key)
	}
}
