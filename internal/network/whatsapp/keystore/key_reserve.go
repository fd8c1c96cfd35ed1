package keystore

import (
	"context"

	"parley/internal/store/sqldb"
)

// A message must not leave before the database has a session that is past the message's key. It may be well
// past it: keys that are never used cost nothing, since the recipient skips them, as it does those of
// messages that were lost. So the database is given a session that is some keys ahead, and the next messages
// on it need no commit. After a crash the session goes on from there, and no key is used twice; when the
// store is closed the database gets the sessions as they are.

// reservedKeys is how many keys of a session are reserved at once. A recipient skips up to 2000.
const reservedKeys = 16

// keyReserve says how far ahead the database is.
type keyReserve struct {
	chain string // of which sending chain
	until uint32 // the number of the first key that is not reserved
}

// covers reports whether the database is past all keys that a session has used.
func (r keyReserve) covers(chain string, next uint32) bool {
	return r.chain == chain && next <= r.until
}

// reserveKeysFor sorts changes of sessions: into those that the database must be given, ahead, and all as they are
// to be remembered. Where the database is to be given none it is enough to remember them.
func (s *Store) reserveKeysFor(changes []change, moved bool) (stored []change, after map[key]entry, err error) {
	after = make(map[key]entry, len(changes))
	needed := moved
	for _, c := range changes {
		chain, next, ok := sendingChain(c.value)
		is, _ := s.cache.get(c.key)
		needed = needed || !ok || !is.covers(chain, next)
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
		d.s.cacheAll(after)
		return ctx.Err()
	}
	return d.s.write(ctx, "keep sessions", func(tx *sqldb.Tx) error {
		tx.OnCommit(func() { d.s.cacheAll(after) })
		return writeStates(tx, stored)
	})
}

func (s *Store) cacheAll(after map[key]entry) {
	for k, e := range after {
		s.cache.set(k, e)
	}
}

// flushSessions gives the database all sessions as they are, so that no keys are skipped.
func (s *Store) flushSessions() error {
	exact := map[key]entry{}
	s.cache.each(func(k key, e entry) {
		if _, next, ok := sendingChain(e.value); k.kind == sessionKind && ok && next < e.until {
			exact[k] = entry{value: e.value}
		}
	})
	if len(exact) == 0 {
		return nil
	}
	return s.write(context.Background(), "keep sessions", func(tx *sqldb.Tx) error {
		for k, e := range exact { // that of a device which is no more changes nothing
			_, err := tx.Exec(`UPDATE states SET value = $1 WHERE device = $2 AND kind = $3 AND name = $4`, e.value, k.device, int64(k.kind), k.name)
			if err != nil {
				return err
			}
		}
		tx.OnCommit(func() { s.cacheAll(exact) })
		return nil
	})
}
