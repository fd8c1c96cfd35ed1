package store

import (
	"context"
	"time"
)

// Watch calls events after each commit of this process that added events, and changes after each that changed channels,
// tokens or webhooks. logHeld is called with the time for which a transaction held the log of events. They must not block. It is
// called before the first transaction.
func (db *DB) Watch(events, changes func(), logHeld func(time.Duration)) {
	db.onEvents, db.onChanges, db.onLogHeld = events, changes, logHeld
}

// NotifyEvents wakes those who wait for events, after another node added some.
func (db *DB) NotifyEvents() { db.waiters.notify() }

// eventsAdded is called after a commit that added events.
func (db *DB) eventsAdded() {
	db.waiters.notify()
	if db.onEvents != nil {
		db.onEvents()
	}
}

// ReleaseShards stores that a node no longer owns some shards. It is a transaction like any other, so all earlier ones of
// the node are committed before.
func (t *Tx) ReleaseShards(_ context.Context, node int64, shards []int64) error {
	in, args := inList(2, shards)
	return t.exec(`UPDATE shard SET node = NULL WHERE node = $1 AND id IN `+in, append([]any{node}, args...)...)
}

// DrainNode makes a node release its shards. It reports whether there is such a node.
func (t *Tx) DrainNode(_ context.Context, id int64) (found bool, err error) {
	n, err := t.sql.Exec(`UPDATE node SET draining = true WHERE id = $1`, id)
	return n > 0, err
}

// RemoveNode removes a node, which can write nothing more. Its shards are free.
func (t *Tx) RemoveNode(_ context.Context, id int64) error {
	return t.exec(`DELETE FROM node WHERE id = $1`, id)
}
