package sqldb

import (
	"fmt"
	"os"
	"time"
)

// SQLite writes its log back to the file after commits, as far as no reader needs the old pages, and begins it anew once
// all of it is written back and no reader uses it. Readers that overlap all the time keep that from ever happening. So
// when the log has become large it is emptied by force, without letting writers wait for long: first it is written back
// from another connection, which stops nobody; then the writer, between two transactions, writes back the little that came
// since and waits for the readers of a moment ago. If a reader that takes long is what keeps the log, as a copy of the
// database does, nothing is tried: it ends by itself.
const (
	maxLog      = 256 << 20
	emptyEvery  = 5 * time.Second
	emptyWaits  = 100 * time.Millisecond // for readers, while writers wait
	emptyShares = 16                     // at most one part in so many is left to the writer
)

// watchLog empties the log if it is too large. It does not wait for that.
func (db *DB) watchLog() {
	if info, err := os.Stat(db.path + "-wal"); err != nil || info.Size() <= db.maxLog {
		return
	}
	if !db.emptying.CompareAndSwap(false, true) {
		return
	}
	db.watching.Go(func() {
		defer db.emptying.Store(false)
		if db.writeBack() {
			select {
			case db.chores <- db.emptyLog:
			default: // it is told already
			}
		}
		select {
		case <-time.After(db.emptyEvery):
		case <-db.ending.Done():
		}
	})
}

// writeBack writes the log back as far as that is possible, and reports whether nearly all of it is.
func (db *DB) writeBack() bool {
	c, close, err := db.ownConn(db.ending)
	if err != nil {
		return false
	}
	defer close()
	var blocked, frames, done int64
	err = c.QueryRowContext(db.ending, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&blocked, &frames, &done)
	return err == nil && (frames-done)*emptyShares <= frames
}

// emptyLog is done by the writer. If it fails it is tried again later.
func (db *DB) emptyLog() {
	db.writer.Exec(fmt.Sprintf("PRAGMA busy_timeout = %d", emptyWaits.Milliseconds()))
	db.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	db.writer.Exec("PRAGMA " + busyTimeout)
	db.writer.broken = nil // no transaction was under way
}
