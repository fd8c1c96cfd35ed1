package token

import (
	"sync"
	"sync/atomic"

	"parley"
)

// maxCached bounds the memory for tokens that were found good: 10,000 of them take about 8 MB.
const maxCached = 10_000

// cache remembers tokens that were found good, by their whole text. The map's hash is seeded and
// its comparison complete, so nobody can make two tokens meet.
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

func (c *cache) init() { c.entries = make(map[string]*entry) }

func (c *cache) get(raw string) *entry {
	c.mu.RLock()
	e := c.entries[raw]
	c.mu.RUnlock()
	return e
}

// generation is to be read before a token is looked up in the store, and given to add.
func (c *cache) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cleared
}

// add remembers a token, unless the cache was cleared since the token was looked up: it may have
// been revoked in between. A full cache forgets some other token.
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
