package sqldb

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	maxBatch = 512 // callers per commit; more gained nothing
	// manyWrites in the last commit mean that there is load, and gatherPause is how long the next one then waits for more.
	manyWrites  = 16
	gatherPause = 500 * time.Microsecond
)

// write is one caller's function on its way to the writer.
type write struct {
	do   func(*Tx) error
	tx   Tx
	room [3]func() // for what most want to be done after the commit
	err  error
	then func(error) // told how it ended
}

// Write runs do in a transaction, alone or with others, and returns when it is committed. If do
// fails, nothing of it is kept. It may run more than once.
func (db *DB) Write(ctx context.Context, do func(*Tx) error) error {
	done := make(chan error, 1)
	db.Begin(ctx, do, func(err error) { done <- err })
	return <-done // even if ctx ends: the caller must know whether it was committed
}

// Begin is Write for a caller that does something else meanwhile: then is told how it ended. Mostly it is
// called by the writer, for which all others wait: it must be quick.
func (db *DB) Begin(ctx context.Context, do func(*Tx) error, then func(error)) {
	if err := ctx.Err(); err != nil {
		then(err)
		return
	}
	if err := db.handIn(ctx, &write{do: do, then: then}); err != nil {
		then(err)
	}
}

// handIn gives a write to the writer.
func (db *DB) handIn(ctx context.Context, w *write) error {
	db.closing.RLock()
	defer db.closing.RUnlock()
	if db.closed {
		return unavailable(errClosed)
	}
	select {
	case db.in <- w:
		return nil
	default:
	}
	select { // so many wait that it must wait to be let in
	case db.in <- w:
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
		case w = <-db.in:
		}
		if w == nil { // closed
			return
		}
		// Let callers that are ready hand in theirs first: fewer, larger commits. Every commit writes the same pages at the
		// ends of the tables again, so under load it waits a moment for more.
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
		for _, w := range batch {
			if w.err == nil {
				for _, f := range w.tx.then {
					f()
				}
			}
			w.then(w.err)
		}
		clear(batch) // what callers hold is theirs again; its length is the load
		db.checkLogSize()
		db.health.end(db.lost)
	}
}

// gather adds to a batch those that wait.
func (db *DB) gather(batch []*write) []*write {
	for len(batch) < maxBatch {
		select {
		case w, open := <-db.in:
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

// commit runs the batch in one transaction and sets each write's error. If one of several fails, it
// runs them again with a savepoint each, so that only that one is undone.
func (db *DB) commit(batch []*write) {
	failed, err := db.transact(batch, false)
	if failed && len(batch) > 1 {
		_, err = db.transact(batch, true)
	}
	if err != nil {
		refuse(batch, err)
	}
}

// refuse sets the error of those that have none.
func refuse(batch []*write, err error) {
	for _, w := range batch {
		if w.err == nil {
			w.err = err
		}
	}
}

// transact runs the batch between BEGIN and COMMIT. It returns an error if nothing of the batch was
// kept, and whether that came while a write ran. Without savepoints the first one that fails ends
// it; with them a failing write is undone alone.
func (db *DB) transact(batch []*write, savepoints bool) (failed bool, err error) {
	for _, w := range batch {
		w.err = nil
	}
	if db.lost = db.control("BEGIN IMMEDIATE"); db.lost != nil {
		return false, db.lost
	}
	db.batch++
	defer func() {
		if err != nil {
			db.lost = db.writer.broken // nil: a caller's own error
			db.control("ROLLBACK")     // the database may have done so already
		}
	}()
	for _, w := range batch {
		if savepoints {
			err = db.alone(w)
		} else {
			err = db.call(w)
		}
		if err != nil {
			return true, err
		}
	}
	if db.beforeCommit != nil {
		if err := db.writer.classed(db.beforeCommit(&Tx{Conn: db.writer, Batch: db.batch})); err != nil {
			return false, err
		}
	}
	if err = db.control("COMMIT"); err != nil && db.writer.broken == nil {
		db.writer.broken = err
	}
	return false, err
}

// alone runs one write so that it can be undone by itself. Its error is the database's own.
func (db *DB) alone(w *write) error {
	if err := db.control("SAVEPOINT one"); err != nil {
		return err
	}
	if db.call(w) != nil {
		if lost := db.writer.broken; lost != nil {
			return lost
		}
		if err := db.control("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return db.control("RELEASE one")
}

// call runs a write's function. A panic becomes an error, so that one caller cannot end the writer of
// all. A write that went on after the transaction was lost has failed, whatever it says.
func (db *DB) call(w *write) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
		if err == nil {
			err = db.writer.broken
		}
		w.err = err
	}()
	w.tx = Tx{Conn: db.writer, Batch: db.batch, then: w.room[:0]}
	return db.writer.classed(w.do(&w.tx)) // rows that were being read tell their errors unclassed
}

// control runs a statement of the writer's own. Its failure is nobody's fault.
func (db *DB) control(statement string) error {
	db.writer.broken = nil
	_, err := db.writer.Exec(statement)
	if err != nil && db.writer.broken == nil {
		err = unavailable(err)
	}
	return err
}
