package store

import (
	"context"
	"fmt"
	"time"

	"parley/internal/store/sqldb"
)

// Watch calls events after each commit of this process that added events, and changes after each that changed channels,
// tokens or webhooks. logHeld is called with the time for which a transaction held the log of events. They must not block. It is
// called before the first transaction.
func (db *DB) Watch(events, changes func(), logHeld func(time.Duration)) {
	db.onEvents, db.onChanges, db.onLogHeld = events, changes, logHeld
}

// ChangeKind is what a change is about.
type ChangeKind string

const (
	ChannelChange ChangeKind = "channel"
	TokenChange   ChangeKind = "token"
	WebhookChange ChangeKind = "webhook" // without a key: of any
	KeyChange     ChangeKind = "key"     // that signs tokens
)

// KeptChanges is how many changes other nodes can still read one by one. A node that is further behind reads everything.
const KeptChanges = 10_000

// change is what other nodes must read again.
type change struct {
	kind ChangeKind
	key  string
}

// revised notes a change that succeeded, for the end of the transaction.
func (t *Tx) revised(kind ChangeKind, key any, err error) error {
	if err == nil {
		t.ending.changes = append(t.ending.changes, change{kind, fmt.Sprint(key)})
	}
	return err
}

// revise increases the revision, and on PostgreSQL stores what changed.
func (e *ending) revise(t *sqldb.Tx) error {
	if !t.IsPostgres() {
		return t.Do(`UPDATE revision SET counter = counter + 1`)
	}
	for _, c := range e.changes {
		// The row of the revision is locked until the commit, so a node that sees a change has seen all before it.
		if err := t.Do(`WITH next AS (UPDATE revision SET counter = counter + 1 RETURNING counter),
			old AS (DELETE FROM change WHERE seq <= (SELECT counter FROM next) - $3)
			INSERT INTO change (seq, kind, key) SELECT counter, $1, $2 FROM next`, string(c.kind), c.key, int64(KeptChanges)); err != nil {
			return err
		}
	}
	return nil
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
