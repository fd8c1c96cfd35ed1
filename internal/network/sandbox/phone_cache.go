package sandbox

import "sync"

// maxCachedPhones bounds the memory of a session.
const maxCachedPhones = 10_000

// phoneCache holds phones as their rows are, so that a send needs no round trip to PostgreSQL to read them. Only the node
// that has the session changes phones. Entries are added and removed in the order of the commits.
type phoneCache struct {
	mu  sync.Mutex
	all map[string]phone // by number
}

// take returns copies of the phones of a world that are known, by number.
func (c *phoneCache) take(world int64, numbers []string) map[string]*phone {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*phone{}
	for _, number := range numbers {
		if p, ok := c.all[number]; ok && p.world == world {
			found[number] = &p
		}
	}
	return found
}

func (c *phoneCache) add(phones []phone) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all)+len(phones) > maxCachedPhones {
		c.all = map[string]phone{}
	}
	for _, p := range phones {
		c.all[p.Number] = p
	}
}

// clearPhones empties the cache of the session, because a phone was changed or deleted.
func (w *world) clearPhones() {
	if s := w.session.Load(); s != nil {
		s.phones.mu.Lock()
		defer s.phones.mu.Unlock()
		s.phones.all = nil
	}
}
