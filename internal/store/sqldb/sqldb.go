package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"

	"parley"
)

const (
	maxBatch = 512 // callers per commit; more gained nothing
	readers  = 4   // connections for reading

	// memory, before a name, makes a database that lives in memory: tests with a fake clock need it.
	memory = "memory:"
)

// Options say which database to open and how.
type Options struct {
	// Path is the file; "memory:NAME" is a database in memory.
	Path string
	// Durable makes every commit survive a power cut; else it survives only the end of the process.
	Durable bool
	// Migrations holds a folder per dialect with files NNNN_name.sql, applied in order.
	Migrations fs.FS
}

// DB is an open database.
type DB struct {
	dialect Dialect
	write   *sql.DB
	read    *sql.DB
	reader  *Conn
	writer  *Conn
	conn    *sql.Conn

	in   chan *write
	done chan struct{} // closed when the writer has ended

	closing sync.RWMutex // held for reading while a write is handed in
	closed  bool
}

// write is one caller's function on its way to the writer.
type write struct {
	do   func(*Tx) error
	then []func() // after the commit
	err  error
	done chan struct{}
}

// Open opens a database, checks its settings, brings its tables up to date and starts the writer.
func Open(ctx context.Context, o Options) (*DB, error) {
	w, r, err := openSQLite(o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	db := &DB{dialect: sqliteDialect, write: w, read: r, in: make(chan *write, maxBatch), done: make(chan struct{})}
	if err := db.prepare(ctx, o); err != nil {
		w.Close()
		r.Close()
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	go db.run()
	return db, nil
}

func (db *DB) prepare(ctx context.Context, o Options) (err error) {
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return err
	}
	if err := checkSQLite(ctx, db.conn, o); err != nil {
		return err
	}
	db.writer = newConn(db.conn.PrepareContext)
	db.reader = newConn(db.read.PrepareContext)
	return migrate(ctx, db.conn, db.dialect, o.Migrations)
}

// Close waits for the writes that were handed in and closes the database. It may be called twice.
func (db *DB) Close() error {
	db.closing.Lock()
	already := db.closed
	db.closed = true
	db.closing.Unlock()
	if already {
		<-db.done
		return nil
	}
	close(db.in)
	<-db.done
	return errors.Join(db.writer.close(), db.reader.close(), db.conn.Close(), db.write.Close(), db.read.Close())
}

// Read returns the connection pool for reading. It sees what is committed.
func (db *DB) Read() *Conn { return db.reader }

// Write runs do in a transaction, alone or with others, and returns when it is committed. If do
// fails, nothing of it is kept. It may run more than once.
func (db *DB) Write(ctx context.Context, do func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{do: do, done: make(chan struct{})}
	db.closing.RLock()
	if db.closed {
		db.closing.RUnlock()
		return unavailable(errors.New("database is closed"))
	}
	db.in <- w
	db.closing.RUnlock()
	<-w.done // even if ctx ends: the caller must know whether it was committed
	return w.err
}

// run is the writer: the only goroutine that changes the database.
func (db *DB) run() {
	defer close(db.done)
	batch := make([]*write, 0, maxBatch)
	for w := range db.in {
		runtime.Gosched() // let callers that are ready hand in theirs first: fewer, larger commits
		batch = append(batch[:0], w)
		for len(batch) < maxBatch && len(db.in) > 0 {
			batch = append(batch, <-db.in)
		}
		db.commit(batch)
		for _, w := range batch {
			if w.err == nil {
				for _, f := range w.then {
					f()
				}
			}
			close(w.done)
		}
	}
}

// commit runs the batch in one transaction and sets each write's error.
func (db *DB) commit(batch []*write) {
	err := db.transact(batch, false)
	if err != nil && len(batch) > 1 {
		err = db.transact(batch, true)
	}
	if err != nil {
		for _, w := range batch {
			if w.err == nil {
				w.err = err
			}
		}
	}
}

// transact runs the batch between BEGIN and COMMIT. Without savepoints it stops at the first write
// that fails, or keeps its error if it is the only one; with them a failing write is undone alone.
func (db *DB) transact(batch []*write, savepoints bool) (err error) {
	if err := db.exec(db.dialect.begin); err != nil {
		return db.classed(err)
	}
	defer func() {
		if err != nil {
			db.exec(db.dialect.rollback) // after a failed COMMIT there may be none to roll back
		}
	}()
	for _, w := range batch {
		if savepoints {
			if err := db.exec(db.dialect.savepoint); err != nil {
				return db.classed(err)
			}
		}
		tx := &Tx{Conn: db.writer}
		w.err = db.classed(call(w.do, tx))
		w.then = tx.then
		if w.err != nil && !savepoints {
			return w.err
		}
		if savepoints {
			if w.err != nil {
				if err := db.exec(db.dialect.rollbackPoint); err != nil {
					return db.classed(err)
				}
			}
			if err := db.exec(db.dialect.release); err != nil {
				return db.classed(err)
			}
		}
	}
	return db.classed(db.exec(db.dialect.commit))
}

// call runs do and turns a panic into an error, so that one caller cannot end the writer of all.
func call(do func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return do(tx)
}

func (db *DB) exec(statement string) error {
	_, err := db.writer.Exec(statement)
	return err
}

// classed marks the errors that mean "the database does not work now".
func (db *DB) classed(err error) error {
	if err != nil && db.dialect.isUnavailable(err) {
		return unavailable(err)
	}
	return err
}

func unavailable(cause error) error {
	return &parley.Error{Code: parley.Unavailable, Message: "The database cannot be written to. Try again soon.", Cause: cause}
}

// IsUnique reports whether err says that a unique key is there already.
func (db *DB) IsUnique(err error) bool { return db.dialect.isUnique(err) }
