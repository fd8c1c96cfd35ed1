package sqldb

import (
	"fmt"
	"os"
	"time"
)

// Commits are appended to SQLite's log (WAL), and a checkpoint writes it back to the database file. A checkpoint by the
// writer would stop all writes for its whole length, so the writer leaves it to a connection of its own: when the log has
// grown, that one writes it back, which blocks nobody. Then the writer, between two transactions, writes back the little that
// came since, and begins the log again at its start. Readers that overlap all the time could keep it from that, so it waits for
// those of a moment ago. If a reader that takes long is what keeps the log, as a copy of the database does, nothing is tried:
// it ends by itself.
const (
	maxLog         = 64 << 20               // bytes of log from which a checkpoint is made
	autoCheckpoint = 262144                 // pages of log, 1 GiB: the writer's own checkpoint, if the other one does not keep up
	sizeEvery      = 50 * time.Millisecond  // how often a busy writer looks at the size of its log
	restartEvery   = 5 * time.Second        // how often the log is begun again, if a long reader keeps that from succeeding
	restartWaits   = 100 * time.Millisecond // for readers, while writers wait
	restartShare   = 16                     // at most one part in so many is left to the writer
)

// checkLogSize is called by the writer after every transaction. It starts a checkpoint if the log is too large.
func (db *DB) checkLogSize() {
	if now := time.Now(); now.Sub(db.logSizeAt) >= sizeEvery {
		db.logSizeAt = now
		db.watchLog()
	}
}

// watchLog starts a checkpoint if the log is too large and none is under way. It does not wait for it.
func (db *DB) watchLog() {
	if info, err := os.Stat(db.path + "-wal"); err != nil || info.Size() <= db.maxLog {
		return
	}
	if !db.emptying.CompareAndSwap(false, true) {
		return
	}
	db.watching.Go(db.emptyLog)
}

// emptyLog writes the log back and has the writer begin it again.
func (db *DB) emptyLog() {
	defer db.emptying.Store(false)
	restarted := make(chan bool, 1)
	if db.checkpoint() {
		select {
		case db.chores <- func() { restarted <- db.restartLog() }:
			select {
			case ok := <-restarted:
				if ok {
					return
				}
			case <-db.ending.Done():
				return
			}
		default: // it is asked already
		}
	}
	select {
	case <-time.After(db.emptyEvery):
	case <-db.ending.Done():
	}
}

// checkpoint writes the log back as far as that is possible, and reports whether nearly all of it is.
func (db *DB) checkpoint() bool {
	c, err := db.ownConnection(db.ending)
	if err != nil {
		return false
	}
	defer c.close()
	for range 3 { // each has less to do than the one before
		var blocked, frames, done int64
		if err := c.queryRow("PRAGMA wal_checkpoint(PASSIVE)", nil, []any{&blocked, &frames, &done}); err != nil {
			return false
		}
		if (frames-done)*restartShare <= frames {
			return true
		}
	}
	return false
}

// restartLog is done by the writer. If it fails it is tried again later.
func (db *DB) restartLog() bool {
	db.writer.Exec(fmt.Sprintf("PRAGMA busy_timeout = %d", restartWaits.Milliseconds()))
	var blocked, frames, done int64
	err := db.writer.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)", nil, &blocked, &frames, &done)
	db.writer.Exec("PRAGMA " + busyTimeout)
	db.writer.broken = nil // no transaction was under way
	return err == nil && blocked == 0
}
