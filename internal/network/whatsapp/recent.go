package whatsapp

import (
	"sync"
	"time"
)

// recent caches the values that were added last.
type recent[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
	order  []K // oldest first
}

func (r *recent[K, V]) get(k K) (v V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known = r.values[k]
	return v, known
}

// put adds a value. It drops the oldest one beyond a bound.
func (r *recent[K, V]) put(k K, v V, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[K]V{}
	}
	if _, known := r.values[k]; !known {
		r.order = append(r.order, k)
	}
	r.values[k] = v
	if len(r.order) > most {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}

// hourly limits how often something happens in an hour, for each of many keys.
type hourly[K comparable] struct{ recent[K, inAnHour] }

type inAnHour struct {
	count int
	since time.Time
}

// allows counts, and reports whether it may happen once more.
func (h *hourly[K]) allows(k K, most int) bool {
	n, known := h.get(k)
	if !known || time.Since(n.since) > time.Hour {
		n = inAnHour{since: time.Now()}
	}
	n.count++
	h.put(k, n, maxHourly)
	return n.count <= most
}

const maxHourly = 4096 // keys that are counted

func (r *recent[K, V]) remove(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.values, k)
}
