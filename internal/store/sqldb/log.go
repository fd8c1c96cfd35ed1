package sqldb

import (
	"fmt"
	"time"
)

// Commits are appended to SQLite's log (WAL). A checkpoint copies the log to the database file. A checkpoint by the writer
// would block all writes, so another connection does most of it. Then the writer, between two transactions, copies the
// rest and restarts the log at its beginning. The file stays as large as it is: to truncate it and let it grow again
// took the writer 30 to 50 ms, each second under load.
//
// Overlapping readers could prevent the restart, so the writer waits a moment for them. A long reader, such as a copy of
// the database, also prevents it. The restart is then tried again later.
const (
	maxLog         = 16 << 20              // bytes of log that start a checkpoint: commits wait while the disk writes it
	autoCheckpoint = 262144                // pages of log, 1 GiB: the writer's own checkpoint, if the other one is too slow
	sizeEvery      = 50 * time.Millisecond // how often a busy writer looks at the size of its log
	restartEvery   = 5 * time.Second       // the pause after a restart that a reader prevented: writers waited for it
	copyEvery      = time.Second / 4       // the pause after a checkpoint that a reader prevented
	restartWaits   = 20 * time.Millisecond // for readers; writers wait meanwhile
	restartShare   = 64                    // at most this fraction (1/n) is left to the writer
	frameSize      = 4096 + 24             // bytes of log for each page that was written
)

// checkLogSize starts a checkpoint if the log is too large. The writer calls it after every transaction.
func (db *DB) checkLogSize() {
	if now := time.Now(); now.Sub(db.logSizeAt) >= sizeEvery {
		db.logSizeAt = now
		db.watchLog(db.writer)
		db.writer.broken = nil // there was no transaction
	}
}

// watchLog starts a checkpoint if the log is too large and none is running. It does not wait for it.
func (db *DB) watchLog(c *Conn) {
	if c.IsPostgres() {
		return // PostgreSQL looks after its own log
	}
	frames, copied, err := c.logFrames()
	if err == nil && frames*frameSize > db.limits.maxLog && copied < frames && db.restarting.CompareAndSwap(false, true) {
		db.watching.Go(db.emptyLog)
	}
}

// logFrames is how many frames the log has, and how many of them are copied to the database file. The file of the log may
// be larger.
func (c *Conn) logFrames() (frames, copied int64, err error) {
	var blocked int64
	err = c.QueryRow("PRAGMA wal_checkpoint(NOOP)", nil, &blocked, &frames, &copied)
	return frames, copied, err
}

// emptyLog makes a checkpoint and lets the writer restart the log.
func (db *DB) emptyLog() {
	defer db.restarting.Store(false)
	restarted, pause := make(chan bool, 1), min(copyEvery, db.limits.restartEvery)
	if db.checkpoint() {
		pause = db.limits.restartEvery
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
		default: // the last one is still waiting
		}
	}
	select {
	case <-time.After(pause):
	case <-db.ending.Done():
	}
}

// checkpoint copies as much of the log as possible and reports whether nearly all of it is copied.
func (db *DB) checkpoint() bool {
	c, err := db.ownConnection(db.ending)
	if err != nil {
		return false
	}
	defer c.close()
	last := int64(-1)
	for range 8 { // each has less to do than the previous one
		var blocked, frames, done int64
		if err := c.queryRow("PRAGMA wal_checkpoint(PASSIVE)", nil, []any{&blocked, &frames, &done}); err != nil {
			return false
		}
		// SQLite syncs the file only with the last frame. The writer copies that one, and would wait for all the others.
		if db.file != nil && db.file.Sync() != nil {
			return false
		}
		if (frames-done)*restartShare <= frames {
			return true
		}
		if done == last {
			return false // a reader needs the rest
		}
		last = done
	}
	return false
}

// restartLog runs on the writer. If it fails it is tried again later.
func (db *DB) restartLog() bool {
	db.writer.Exec(fmt.Sprintf("PRAGMA busy_timeout = %d", restartWaits.Milliseconds()))
	var blocked, frames, done int64
	err := db.writer.QueryRow("PRAGMA wal_checkpoint(RESTART)", nil, &blocked, &frames, &done)
	db.writer.Exec("PRAGMA " + busyTimeout)
	db.writer.broken = nil // there was no transaction
	return err == nil && blocked == 0
}
