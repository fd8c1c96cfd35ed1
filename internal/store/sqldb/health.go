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
	// stuckAfter is how long one transaction may take before the writer counts as stuck: writes that wait behind it
	// are refused then, in place of waiting for ever.
	stuckAfter = 10 * time.Second
	// slowAfter is how long one transaction may take before [DB.Writable] says that the database cannot be written to.
	slowAfter = 2 * time.Second
	// probeEvery is how long a failed transaction or a probe answers [DB.Writable].
	probeEvery = time.Second
	// watchEvery is how often the writer and the size of the log are looked at.
	watchEvery = time.Second
)

// health is what others may know of the writer.
type health struct {
	opened time.Time     // times are counted from here, so that a changed clock does not matter
	began  atomic.Int64  // when the transaction under way began; zero: there is none
	ended  atomic.Int64  // when the last one ended; zero: there was none
	proven atomic.Int64  // when a probe last succeeded; zero: none did since a write failed
	lost   atomic.Value  // of failure: why the last one was lost
	damage atomic.Value  // of failure: the damage that was found
	found  chan struct{} // closed when damage is found
	fresh  time.Duration // probeEvery, but in tests

	mu    sync.Mutex
	probe *probe // the one under way; nil: there is none
}

// failure wraps an error for an atomic.Value, which takes only one type.
type failure struct{ err error }

func newHealth() *health {
	return &health{opened: time.Now().Add(-time.Nanosecond), found: make(chan struct{}), fresh: probeEvery}
}

func (h *health) now() int64 { return int64(time.Since(h.opened)) }

// begin and end are called by the writer around a transaction.
func (h *health) begin() { h.began.Store(h.now()) }

func (h *health) end(lost error) {
	h.lost.Store(failure{lost})
	if lost != nil {
		h.proven.Store(0)
	}
	h.ended.Store(h.now())
	h.began.Store(0)
}

// pause is called by the writer after something that was no transaction.
func (h *health) pause() { h.began.Store(0) }

// busyFor is how long the transaction under way has taken.
func (h *health) busyFor() time.Duration {
	if began := h.began.Load(); began != 0 {
		return time.Duration(h.now() - began)
	}
	return 0
}

// isProven reports whether a probe succeeded a moment ago, and no write failed since.
func (h *health) isProven() bool {
	proven := h.proven.Load()
	return proven != 0 && time.Duration(h.now()-proven) <= h.fresh
}

// lastFailure returns why the last transaction failed, if it did so a moment ago.
func (h *health) lastFailure() error {
	ended := h.ended.Load()
	if ended == 0 || time.Duration(h.now()-ended) > h.fresh {
		return nil
	}
	return h.lost.Load().(failure).err
}

// observe notes damage that a statement or a check met. From then on nothing is written.
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

// Damaged returns a channel that is closed when damage is found, by a check or by any statement. From then on every
// write is refused: what is acknowledged must not go into a damaged file.
func (db *DB) Damaged() <-chan struct{} { return db.health.found }

// Damage returns the damage that was found, or nil.
func (db *DB) Damage() error { return db.health.damaged() }

// probe is a write that changes nothing.
type probe struct {
	done chan struct{}
	err  error
}

// Writable returns nil if a write would succeed now, else why not, at the latest when ctx ends. Unless it did so
// a moment ago it tries, with a write that changes nothing but needs the lock, the log and the disk. That others succeeded is
// no proof: a transaction that happened to change nothing does not write.
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
		if p.err == nil || parley.CodeOf(p.err) == parley.Unavailable {
			return p.err
		}
	case <-ctx.Done():
	}
	return stuck(db.health.busyFor())
}

// startProbe has the writer probe, unless it does so already.
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
	db.Begin(ctx, touch, func(err error) {
		h.mu.Lock()
		h.probe = nil
		h.mu.Unlock()
		if err == nil {
			h.proven.Store(h.now())
		}
		p.err = err
		close(p.done)
	})
	return p
}

// touch writes the first page of the file, and nothing new in it. A row that is updated to what it was is not written
// at all, but this is.
func touch(tx *Tx) error {
	_, err := tx.Exec("PRAGMA user_version = 0")
	return err
}

// stuck is the error of a writer that does not get on.
func stuck(busy time.Duration) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: retryAfter,
		Message: "The server cannot write to its database (disk slow, or locked by another program?). Try again soon.",
		Cause:   fmt.Errorf("the writer is busy for %s", busy.Round(time.Millisecond))}
}

// watch looks after the writer and the log until the database is closed.
func (db *DB) watch() {
	tick := time.NewTicker(db.watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-db.ending.Done():
			return
		case <-tick.C:
		}
		if busy := db.health.busyFor(); busy > db.stuckAfter {
			db.refuseWaiting(stuck(busy))
		}
		db.watchLog()
	}
}

// refuseWaiting answers the writes that wait behind a writer that is stuck. What the writer works on cannot be
// answered: nobody knows whether it will be committed.
func (db *DB) refuseWaiting(err error) {
	for {
		select {
		case w, open := <-db.in:
			if !open {
				return
			}
			w.then(err)
		default:
			return
		}
	}
}
