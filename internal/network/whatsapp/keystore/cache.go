package keystore

import (
	"hash/maphash"
	"sync"
)

const (
	// cacheBytes bounds what is remembered of all devices together, in two halves. A session has about half
	// a kilobyte: it is room for the chats that are written to now, on all channels.
	cacheBytes = 16 << 20
	// entryBytes is what an entry costs beside its name and value.
	entryBytes = 160
	// counters is how many counters of writes there are: enough that two names seldom share one.
	counters = 256
)

// key names a value.
type key struct {
	device int64 // 0: of all devices
	kind   kind
	name   string
}

// entry is what is remembered under a key.
type entry struct {
	value []byte // nil: there is none
	keyReserve
}

// cache remembers values, and that there is none. What was not used for long is forgotten: entries are
// written into the young half, and when that is full it becomes the old one.
type cache struct {
	mu         sync.Mutex
	young, old map[key]entry
	size       int              // of the young half
	writes     [counters]uint32 // by hash of the key: how often something was written
	seed       maphash.Seed
}

// get returns what is remembered.
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

// set notes what is so now.
func (c *cache) set(k key, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.counter(k)++
	c.insert(k, e)
}

// version is taken before a value is read from the database, for fill.
func (c *cache) version(k key) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.counter(k)
}

// fill remembers what was read, unless it may have been written since the mark.
func (c *cache) fill(k key, value []byte, mark uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *c.counter(k) == mark {
		c.insert(k, entry{value: value})
	}
}

// removeMatching drops what matches.
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

// each calls f with everything that is remembered.
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
