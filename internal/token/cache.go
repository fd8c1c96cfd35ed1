package token

import (
	"sync"
	"sync/atomic"

	"parley"
)

// maxCached bounds the cache: 10,000 tokens take about 8 MB.
const maxCached = 10_000

// cache holds valid tokens by their whole text. The map's hash is seeded and its comparison complete, so collisions
// cannot be forged.
type cache struct {
	mu      sync.RWMutex
	entries map[string]*entry
	cleared uint64 // counts the calls of clear
}

type entry struct {
	token   parley.Token
	touched atomic.Int64 // when "last used" was last written, in Unix milliseconds
}

func newEntry(t parley.Token) *entry {
	e := &entry{token: t}
	if !t.LastUsedAt.IsZero() {
		e.touched.Store(t.LastUsedAt.UnixMilli())
	}
	return e
}

func (c *cache) get(raw string) *entry {
	c.mu.RLock()
	e := c.entries[raw]
	c.mu.RUnlock()
	return e
}

// generation must be read before the store is queried, for add.
func (c *cache) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cleared
}

// add caches a token unless the cache was cleared since generation: it may have been revoked in between. A full cache
// evicts some other token.
func (c *cache) add(raw string, e *entry, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cleared != generation {
		return
	}
	if len(c.entries) >= maxCached {
		for other := range c.entries {
			delete(c.entries, other)
			break
		}
	}
	c.entries[raw] = e
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleared++
	clear(c.entries)
}
