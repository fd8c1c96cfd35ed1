package keystore

import (
	"hash/maphash"
	"sync"
)

const (
	// cacheBytes bounds the cache of all devices, in two halves. A session has about half a kilobyte, so active chats
	// of all channels fit.
	cacheBytes = 16 << 20
	// entryBytes is the overhead of an entry.
	entryBytes = 160
	// counters is how many counters of writes there are: enough that two names seldom share one.
	counters = 256
)

type key struct {
	device int64 // 0: of all devices
	kind   kind
	name   string
}

type entry struct {
	value []byte // nil: no such row
	keyReserve
}

// cache holds values and the absence of values. Entries go into the young half; when it is full, it becomes the old
// half and the previous old half is dropped.
type cache struct {
	mu         sync.Mutex
	young, old map[key]entry
	size       int              // of the young half
	writes     [counters]uint32 // by hash of the key: how often something was written
	seed       maphash.Seed
}

func (c *cache) get(k key) (e entry, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, known = c.young[k]; known {
		return e, true
	}
	if e, known = c.old[k]; known {
		c.insert(k, e)
	}
	return e, known
}

func (c *cache) set(k key, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.counter(k)++
	c.insert(k, e)
}

// version must be read before the database, for fill.
func (c *cache) version(k key) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.counter(k)
}

// fill caches a value from the database unless it may have changed since version.
func (c *cache) fill(k key, value []byte, mark uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *c.counter(k) == mark {
		c.insert(k, entry{value: value})
	}
}

func (c *cache) removeMatching(match func(key) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.writes {
		c.writes[i]++
	}
	for _, half := range []map[key]entry{c.young, c.old} {
		for k := range half {
			if match(k) {
				delete(half, k) // its size is counted until the halves change
			}
		}
	}
}

func (c *cache) each(f func(key, entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, half := range []map[key]entry{c.young, c.old} {
		for k, e := range half {
			f(k, e)
		}
	}
}

func (c *cache) counter(k key) *uint32 {
	if c.young == nil {
		c.young, c.seed = map[key]entry{}, maphash.MakeSeed()
	}
	return &c.writes[maphash.Comparable(c.seed, k)%counters]
}

// insert puts an entry into the young half. The caller holds the lock.
func (c *cache) insert(k key, e entry) {
	was, again := c.young[k]
	c.young[k] = e
	if c.size += len(e.value) - len(was.value); !again {
		c.size += len(k.name) + entryBytes
	}
	delete(c.old, k)
	if c.size > cacheBytes/2 {
		c.old, c.young, c.size = c.young, map[key]entry{}, 0
	}
}
