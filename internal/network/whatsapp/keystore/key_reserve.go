package keystore

import (
	"context"

	"parley/internal/store/sqldb"
)

// A message must not leave before the database has a session past the message's key. It may be well past it: the
// recipient skips unused keys, as it does for lost messages. So the stored session is some keys ahead, and the next
// messages need no commit. After a crash the session continues from there. A clean close stores the exact sessions.

// reservedKeys is how many keys of a session are reserved at once. A recipient skips up to 2000.
const reservedKeys = 16

// keyReserve says how far ahead the database is.
type keyReserve struct {
	chain string // names the sending chain
	until uint32 // first key that is not reserved
}

// reserveKeysFor splits changed sessions into those to store, some keys ahead, and those to cache, as they are. If
// nothing must be stored, caching is enough.
func (s *Store) reserveKeysFor(changes []change, moved bool) (stored []change, after map[key]entry, err error) {
	after = make(map[key]entry, len(changes))
	needed := moved
	for _, c := range changes {
		chain, next, ok := sendingChain(c.value)
		is, _ := s.cache.get(c.key)
		needed = needed || !ok || is.chain != chain || next > is.until // the database is not past all used keys
	}
	for _, c := range changes {
		chain, next, ok := sendingChain(c.value)
		is, _ := s.cache.get(c.key)
		switch {
		case !ok:
			stored = append(stored, c)
			after[c.key] = entry{value: c.value}
		case !needed:
			after[c.key] = entry{c.value, is.keyReserve}
		default:
			until := next + reservedKeys
			ahead, err := advanceSession(c.value, until)
			if err != nil {
				return nil, nil, err
			}
			stored = append(stored, change{c.key, ahead})
			after[c.key] = entry{c.value, keyReserve{chain, until}}
		}
	}
	return stored, after, nil
}

// storeSessions writes sessions back that were used to encrypt, so that they are durable, or ahead of it.
func (d *device) storeSessions(ctx context.Context, changes []change) error {
	stored, after, err := d.s.reserveKeysFor(changes, false)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		d.mu.Lock() // release waits: it stores exactly what is cached
		defer d.mu.Unlock()
		if d.released.Load() {
			return wrapError("store sessions", errReleased)
		}
		d.s.cacheAll(after)
		return ctx.Err()
	}
	return d.commit(ctx, "store sessions", func(tx *sqldb.Tx) error {
		tx.OnCommit(func() { d.s.cacheAll(after) })
		return writeStates(tx, stored)
	})
}

func (s *Store) cacheAll(after map[key]entry) {
	for k, e := range after {
		s.cache.set(k, e)
	}
}

// flushSessions stores the exact sessions of a device, so that no keys are skipped; 0: of all devices.
func (s *Store) flushSessions(ctx context.Context, device int64) error {
	exact := map[key]entry{}
	s.cache.each(func(k key, e entry) {
		if device != 0 && k.device != device {
			return
		}
		if _, next, ok := sendingChain(e.value); k.kind == sessionKind && ok && next < e.until {
			exact[k] = entry{value: e.value}
		}
	})
	if len(exact) == 0 {
		return nil
	}
	return s.write(ctx, "store sessions", func(tx *sqldb.Tx) error {
		for k, e := range exact { // no effect for a deleted device
			err := tx.Do(`UPDATE states SET value = $1 WHERE device = $2 AND kind = $3 AND name = $4`, e.value, k.device,
				int64(k.kind), k.name)
			if err != nil {
				return err
			}
		}
		tx.OnCommit(func() { s.cacheAll(exact) })
		return nil
	})
}
