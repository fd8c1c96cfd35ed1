package whatsapp

import "sync"

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

func (r *recent[K, V]) remove(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.values, k)
}
