package keystore

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"

	"parley/internal/store/sqldb"
)

// kind is stored in the database: do not renumber.
type kind int64

const (
	sessionKind   kind = 1 // a Signal session, by address
	identityKind  kind = 2 // the identity key of a device, by address
	senderKeyKind kind = 3 // the key of a sender in a group, by address and group
	tokenKind     kind = 4 // privacy token of a contact, by JID
	saltKind      kind = 5 // replaces a missing token; no name

	keyHoldersKind kind = 6 // which devices have our own sender key, by group

	metKind kind = 7 // a contact without a visible number that the device met, by LID

	timerKind kind = 8 // the timer of a chat, by address

	// Only in the cache.
	lidKind      kind = 101 // the LID of a number
	numberKind   kind = 102 // the number of a LID
	migratedKind kind = 103 // the states of a number were moved to its LID
)

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// change is a new value of a state; a nil value removes it.
type change struct {
	key
	value []byte
}

// get returns nil if there is no state. Within a decryption it sees its changes.
func (d *device) get(ctx context.Context, k kind, name string) ([]byte, error) {
	of := key{d.id, k, name}
	if dtx := decryptTxFrom(ctx); dtx != nil {
		if value, ok := dtx.staged[of]; ok {
			return value, nil
		}
	}
	return d.state(ctx, of)
}

func (d *device) state(ctx context.Context, k key) ([]byte, error) {
	if e, known := d.s.cache.get(k); known {
		return e.value, nil
	}
	mark := d.s.cache.version(k)
	value, err := read(d.s.db.Read(ctx), k)
	if err != nil {
		return nil, err
	}
	d.fill(k, value, mark)
	return value, nil
}

func read(c *sqldb.Conn, k key) ([]byte, error) {
	var value []byte
	found, err := readRow(c, "read a state", `SELECT value FROM states WHERE device = $1 AND kind = $2 AND name = $3`,
		[]any{k.device, int64(k.kind), k.name}, &value)
	if !found {
		return nil, err
	}
	return nonNil(value), nil
}

// put changes states together and returns when they are durable; within a decryption, when it commits.
func (d *device) put(ctx context.Context, changes ...change) error {
	if dtx := decryptTxFrom(ctx); dtx != nil {
		dtx.put(changes)
		return nil
	}
	return d.commit(ctx, "store a state", func(tx *sqldb.Tx) error { return d.s.apply(tx, changes) })
}

// apply changes states within a transaction, and in memory when it is committed.
func (s *Store) apply(tx *sqldb.Tx, changes []change) error {
	tx.OnCommit(func() {
		for _, c := range changes {
			s.cache.set(c.key, entry{value: c.value})
		}
	})
	return writeStates(tx, changes)
}

func writeStates(tx *sqldb.Tx, changes []change) error {
	return sqldb.Each(changes, func(c change) error {
		if c.value == nil {
			return tx.Do(`DELETE FROM states WHERE device = $1 AND kind = $2 AND name = $3`, c.device, int64(c.kind), c.name)
		}
		return tx.Do(`INSERT INTO states (device, kind, name, value) VALUES ($1, $2, $3, $4)
			ON CONFLICT (device, kind, name) DO UPDATE SET value = excluded.value`, c.device, int64(c.kind), c.name, c.value)
	})
}

// removeRange removes the states of a kind whose names are in [from, to).
func (d *device) removeRange(ctx context.Context, k kind, from, to string) error {
	return d.commit(ctx, "remove states", func(tx *sqldb.Tx) error {
		err := tx.Do(`DELETE FROM states WHERE device = $1 AND kind = $2 AND name >= $3 AND name < $4`, d.id, int64(k), from, to)
		tx.OnCommit(func() {
			d.s.cache.removeMatching(func(c key) bool { return c.device == d.id && c.kind == k && c.name >= from && c.name < to })
		})
		return err
	})
}

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
