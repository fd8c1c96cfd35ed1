package sqldb

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"parley"
)

const (
	maxBatch = 512 // callers per commit; more gained nothing
	// With manyWrites in the last commit there is load. The next commit then waits gatherPause for more writes.
	manyWrites  = 16
	gatherPause = 500 * time.Microsecond
)

// write is one caller's function.
type write struct {
	do       func(*Tx) error
	tx       Tx
	onCommit [3]func() // the buffer of tx.then, which saves an allocation
	err      error
	then     func(error) // receives the outcome
}

// Write runs do in a transaction, alone or with others, and returns when it is committed. If do fails, all its changes
// are rolled back. It may run more than once.
func (db *DB) Write(ctx context.Context, do func(*Tx) error) error {
	done := make(chan error, 1)
	db.Begin(ctx, do, func(err error) { done <- err })
	return <-done // even if ctx ends: the caller must know whether it was committed
}

// Begin is Write without waiting: then receives the outcome. The writer calls then and everybody else waits for it, so
// it must be quick.
func (db *DB) Begin(ctx context.Context, do func(*Tx) error, then func(error)) {
	if err := db.enqueue(ctx, &write{do: do, then: then}); err != nil {
		then(err)
	}
}

// enqueue gives a write to the writer. It waits while the queue is full.
func (db *DB) enqueue(ctx context.Context, w *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.closing.RLock()
	defer db.closing.RUnlock()
	if db.closed {
		return unavailable(errClosed)
	}
	select {
	case db.queue <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is the writer: the only goroutine that changes the database.
func (db *DB) run() {
	defer close(db.done)
	batch := make([]*write, 0, maxBatch)
	for {
		var w *write
		select {
		case chore := <-db.chores:
			db.health.begin()
			chore()
			db.health.pause()
			continue
		case w = <-db.queue:
		}
		if w == nil { // closed
			return
		}
		// Fewer, larger commits are cheaper: each one writes the last pages of the tables again. So let callers that are
		// ready enqueue theirs first, and under load wait a moment for more.
		if len(batch) >= manyWrites {
			time.Sleep(gatherPause)
		} else {
			runtime.Gosched()
		}
		batch = db.gather(append(batch[:0], w))
		db.health.begin()
		db.lost = db.health.damaged()
		if db.lost == nil {
			db.commit(batch)
		} else {
			refuse(batch, db.lost)
		}
		db.checkLogSize()
		for _, f := range db.committed {
			f()
		}
		for _, w := range batch {
			db.unsure = append(db.unsure, w.finish()...)
		}
		db.inDoubt.Store(len(db.unsure) > 0)
		clear(batch) // lets go of the callers' data; the length stays as a measure of the load
		db.health.end(db.lost)
	}
}

// finish passes the outcome on. It returns what to call again once it is known.
func (w *write) finish() (unsure []func()) {
	after := w.tx.then
	if w.err != nil {
		after = nil
		if parley.ToCode(w.err) == parley.Unavailable {
			after, unsure = w.tx.unknown, w.tx.unknown
		}
	}
	for _, f := range after {
		f()
	}
	w.then(w.err)
	return unsure
}

// gather adds the enqueued writes to a batch.
func (db *DB) gather(batch []*write) []*write {
	for len(batch) < maxBatch {
		select {
		case w, open := <-db.queue:
			if !open {
				return batch
			}
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// maxLeftOut is how many failing writes are left out of a batch one by one on PostgreSQL, where a savepoint for each write takes a
// round trip. SQLite's savepoints cost less than running the others again.
const maxLeftOut = 4

// commit runs the batch in one transaction and sets each write's error. If one fails, the others run again: on PostgreSQL without it,
// because what it saw of earlier writes is committed with them and so its error holds. If many fail, if nobody knows which, and on
// SQLite, each runs with a savepoint, which undoes only the failed one.
func (db *DB) commit(batch []*write) {
	rest := batch
	failed, err := db.transact(rest, false)
	for failed != nil && failed != unknown && len(rest) > 1 && len(batch)-len(rest) < maxLeftOut &&
		db.writer.IsPostgres() {
		rest = slices.DeleteFunc(slices.Clone(rest), func(w *write) bool { return w == failed })
		failed, err = db.transact(rest, false)
	}
	if failed != nil && len(rest) > 1 {
		_, err = db.transact(rest, true)
	}
	if err == nil {
		return
	}
	if db.lost != nil { // what those left out saw may not be committed
		rest = batch
		for _, w := range batch {
			w.err = nil
		}
	}
	refuse(rest, err)
}

// refuse sets the error of the writes that have none.
func refuse(batch []*write, err error) {
	for _, w := range batch {
		if w.err == nil {
			w.err = err
		}
	}
}

// unknown is the write that failed if nobody knows which.
var unknown = &write{}

// transact runs the batch between BEGIN and COMMIT. It returns an error if the whole batch was rolled back, and the write that
// caused it. Without savepoints the first failure ends the transaction. With them a failed write is undone alone.
func (db *DB) transact(batch []*write, savepoints bool) (failed *write, err error) {
	db.committed = nil
	for _, w := range batch {
		w.err = nil
	}
	began := time.Now()
	if db.lost = db.begin(); db.lost != nil {
		return nil, db.lost
	}
	for _, f := range db.unsure { // now the database shows their outcome
		f()
	}
	db.unsure = nil
	db.batch++
	defer func() {
		if err == nil {
			return
		}
		if b := db.writer.write.failed(); b != nil && db.writer.broken == nil {
			failed, err = unknown, b.err
			for i, w := range batch {
				if w.err = nil; i == b.caller {
					failed, w.err = w, err
				}
			}
		}
		db.committed = nil
		db.lost = db.writer.broken // nil: a caller's own error
		db.control("ROLLBACK")     // the database may have rolled back already
	}()
	for i, w := range batch {
		db.writer.write.serve(i)
		if savepoints {
			err = db.alone(w)
		} else {
			err = db.call(w)
		}
		if err != nil {
			return w, err
		}
	}
	db.writer.write.serve(nobody)
	if db.beforeCommit != nil {
		end := &Tx{Conn: db.writer, Batch: db.batch}
		if err := db.writer.classed(db.beforeCommit(end)); err != nil {
			return nil, err
		}
		db.committed = end.then
	}
	if !db.writer.IsPostgres() { // which gets them with the commit
		if err = db.writer.Flush(); err != nil && db.writer.broken == nil {
			return unknown, err // a row that waited was refused
		}
	}
	if err == nil {
		err = db.writer.control("COMMIT")
	}
	switch {
	case err == nil:
		db.writer.write.committed(len(batch), time.Since(began))
	case db.writer.broken == nil && db.writer.IsPostgres():
		return unknown, err // a statement that waited for the commit failed
	case db.writer.broken == nil: // no caller caused it
		err = unavailable(err)
		db.writer.broken = err
	}
	return nil, err
}

// alone runs one write with a savepoint. It returns the database's own error only.
func (db *DB) alone(w *write) error {
	if err := db.control("SAVEPOINT one"); err != nil {
		return err
	}
	if db.call(w) == nil {
		w.err = db.writer.Flush()
	}
	if w.err != nil {
		if lost := db.writer.broken; lost != nil {
			return lost
		}
		if err := db.control("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return db.control("RELEASE one")
}

// call runs a write's function. A panic becomes an error: one caller must not end the writer. A write that went on after
// the transaction was lost has failed, even if it returns nil.
func (db *DB) call(w *write) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
		if err == nil {
			err = db.writer.broken
		}
		if err == nil && db.writer.write.failed() != nil {
			err = errOther
		}
		w.err = err
	}()
	w.tx = Tx{Conn: db.writer, Batch: db.batch, then: w.onCommit[:0]}
	return db.writer.classed(w.do(&w.tx)) // errors of rows are not classed yet
}

// begin starts a transaction. No caller caused its failure, so it means unavailable.
func (db *DB) begin() error {
	db.writer.broken = nil
	err := db.writer.begin()
	if err != nil && db.writer.broken == nil {
		err = unavailable(err)
	}
	return err
}

// control runs a statement of the writer itself. No caller caused its failure, so it means unavailable.
func (db *DB) control(statement string) error {
	db.writer.broken = nil
	err := db.writer.control(statement)
	if err != nil && db.writer.broken == nil {
		err = unavailable(err)
	}
	return err
}
