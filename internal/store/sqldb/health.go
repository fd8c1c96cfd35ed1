package sqldb

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

const (
	// stuckAfter is the age of a transaction from which the writer counts as stuck. Enqueued writes then fail.
	stuckAfter = 10 * time.Second
	// slowAfter is the age of a transaction from which [DB.Writable] returns an error.
	slowAfter = 2 * time.Second
	// probeEvery is how long [DB.Writable] uses the result of a failed transaction or a probe.
	probeEvery = time.Second
	// watchEvery is how often the writer and the size of the log are checked.
	watchEvery = time.Second
)

// health is the state of the writer that other goroutines can read.
type health struct {
	opened time.Time     // times are relative to it, so a changed clock does not matter
	began  atomic.Int64  // when the current transaction began; 0: there is none
	ended  atomic.Int64  // when the last one ended; 0: there was none
	proven atomic.Int64  // when a probe last succeeded; 0: not since a write failed
	lost   atomic.Value  // of failure: why the last one was lost
	full   atomic.Bool   // the disk was full, and no probe has shown since that there is space
	damage atomic.Value  // of failure: the damage that was found
	found  chan struct{} // closed when damage is found
	fresh  time.Duration // probeEvery, except in tests

	mu    sync.Mutex
	probe *probe // the running one; nil: there is none
}

// failure wraps an error for an atomic.Value, whose values must have one type.
type failure struct{ err error }

func newHealth() *health {
	return &health{opened: time.Now().Add(-time.Nanosecond), found: make(chan struct{}), fresh: probeEvery}
}

func (h *health) now() int64 { return int64(time.Since(h.opened)) }

// The writer calls begin and end around a transaction.
func (h *health) begin() { h.began.Store(h.now()) }

func (h *health) end(lost error) {
	h.lost.Store(failure{lost})
	if lost != nil {
		h.proven.Store(0)
	}
	if IsFull(lost) {
		h.full.Store(true)
	}
	h.ended.Store(h.now())
	h.began.Store(0)
}

// pause replaces end after work that was not a transaction.
func (h *health) pause() { h.began.Store(0) }

// busyFor is the age of the current transaction.
func (h *health) busyFor() time.Duration {
	if began := h.began.Load(); began != 0 {
		return time.Duration(h.now() - began)
	}
	return 0
}

// isProven reports whether a probe succeeded recently and no write failed since.
func (h *health) isProven() bool {
	proven := h.proven.Load()
	return proven != 0 && time.Duration(h.now()-proven) <= h.fresh
}

// lastFailure returns why the last transaction failed, if that was recently.
func (h *health) lastFailure() error {
	ended := h.ended.Load()
	if ended == 0 || time.Duration(h.now()-ended) > h.fresh {
		return nil
	}
	return h.lost.Load().(failure).err
}

// observe stores damage that a statement or a check found. From then on nothing is written.
func (h *health) observe(err error) {
	if !IsDamage(err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.damage.Load() == nil {
		h.damage.Store(failure{unavailable(err)})
		close(h.found)
	}
}

// damaged returns the damage that was found, or nil.
func (h *health) damaged() error {
	if f, ok := h.damage.Load().(failure); ok {
		return f.err
	}
	return nil
}

// Damaged returns a channel that is closed when a check or a statement finds damage. From then on every write fails: what
// is acknowledged must not go into a damaged file.
func (db *DB) Damaged() <-chan struct{} { return db.health.found }

// Damage returns the damage that was found, or nil.
func (db *DB) Damage() error { return db.health.damaged() }

// probe is a write that changes nothing.
type probe struct {
	done chan struct{}
	err  error
}

// Writable returns nil if a write would succeed now, else why not. It returns at the latest when ctx ends. Unless the
// last result is recent it probes, with a write that changes nothing but needs the lock, the log and the disk. A
// transaction of others is no proof: one that changes nothing does not write.
func (db *DB) Writable(ctx context.Context) error {
	if err := db.health.damaged(); err != nil {
		return err
	}
	if busy := db.health.busyFor(); busy > slowAfter {
		return stuck(busy)
	}
	if err := db.health.lastFailure(); err != nil {
		return err
	}
	if db.health.isProven() {
		return nil
	}
	p := db.startProbe(ctx)
	select {
	case <-p.done:
		if p.err == nil || parley.ToCode(p.err) == parley.Unavailable {
			return p.err
		}
	case <-ctx.Done():
	}
	return stuck(db.health.busyFor())
}

// startProbe starts a probe, or returns the running one.
func (db *DB) startProbe(ctx context.Context) *probe {
	h := db.health
	h.mu.Lock()
	p := h.probe
	if p != nil {
		h.mu.Unlock()
		return p
	}
	p = &probe{done: make(chan struct{})}
	h.probe = p
	h.mu.Unlock()
	full := h.full.Load()
	statement := db.writer.write.dialect().touch
	if full { // other writes may succeed where there is still space in a page
		statement = db.writer.write.dialect().takeSpace
	}
	db.Begin(ctx, func(tx *Tx) error {
		_, err := tx.Exec(statement)
		return err
	}, func(err error) {
		h.mu.Lock()
		h.probe = nil
		h.mu.Unlock()
		if err == nil {
			h.proven.Store(h.now())
			if full {
				h.full.Store(false)
			}
		}
		p.err = err
		close(p.done)
	})
	return p
}

// stuck is the error of a writer that makes no progress.
func stuck(busy time.Duration) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: retryAfter,
		Message: "The server cannot write to its database (disk slow, or locked by another program?). Try again soon.",
		Cause:   fmt.Errorf("the writer has been busy for %s", busy.Round(time.Millisecond))}
}

// watch checks the writer and the log until the database is closed.
func (db *DB) watch() {
	tick := time.NewTicker(db.limits.watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-db.ending.Done():
			return
		case <-tick.C:
		}
		if busy := db.health.busyFor(); busy > db.limits.stuckAfter {
			db.refuseWaiting(stuck(busy))
		}
		if db.inDoubt.Load() {
			db.startProbe(db.ending) // begins a transaction
		}
		db.watchLog(db.Read(db.ending))
	}
}

// refuseWaiting fails the writes that are enqueued behind a stuck writer. The writes in the current transaction must wait:
// it may still be committed.
func (db *DB) refuseWaiting(err error) {
	for {
		select {
		case w, open := <-db.queue:
			if !open {
				return
			}
			w.then(err)
		default:
			return
		}
	}
}
