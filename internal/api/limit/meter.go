package limit

import (
	"slices"
	"sync"
	"time"
)

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
