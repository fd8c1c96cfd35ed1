package keystore

import (
	"context"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/store/sqldb"
)

// errReleased is the error of a write by a client that outlived the session of its channel.
var errReleased = &parley.Error{Code: parley.Unavailable, Message: "The channel is closed at this node."}

// Release ends the use of a device at this node, because another node may use it next. Sessions are stored as they are, so that
// no keys are skipped, and nothing of the device stays in memory. What still uses it cannot write any more: an old session
// would use keys again. When it returns, nothing that began before is written any more, even if there is an error. Where only
// this node uses the database it does nothing.
func (s *Store) Release(ctx context.Context, jid types.JID) error {
	if !s.shared {
		return nil
	}
	s.mu.Lock()
	own := s.devices[jid.String()]
	delete(s.devices, jid.String())
	s.mu.Unlock()
	if own == nil {
		return nil
	}
	own.mu.Lock()
	own.released.Store(true)
	own.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	err := s.write(ctx, "release a device", func(*sqldb.Tx) error { return nil }) // waits for earlier writes
	if err == nil {
		s.pruner.prune()
		err = s.flushSessions(ctx, own.id)
	}
	s.cache.removeMatching(func(k key) bool { return k.device == own.id })
	return err
}

// commit runs do in a transaction, unless the device was released.
func (d *device) commit(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	return d.s.write(ctx, what, func(tx *sqldb.Tx) error {
		if d.released.Load() {
			return errReleased
		}
		return do(tx)
	})
}

// fill caches a value from the database, unless it may have changed since version or the device was released.
func (d *device) fill(k key, value []byte, version uint32) {
	if !d.released.Load() {
		d.s.cache.fill(k, value, version)
	}
}
