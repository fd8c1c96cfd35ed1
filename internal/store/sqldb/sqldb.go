package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"parley"
)

const readers = 4 // connections for reading

// Options say which database to open and how.
type Options struct {
	// Path is the file; "memory:NAME" is a database in memory.
	Path string
	// Durable makes every commit survive a power cut; else it survives only the end of the process.
	Durable bool
	// ReaderCache is how many KiB of pages each connection for reading caches; 0: as many as the writer.
	ReaderCache int
	// Migrations holds a folder per dialect with files NNNN_name.sql, applied in order.
	Migrations fs.FS
	// BeforeCommit is called in every transaction when the functions of all its callers have run, for what
	// is better written once for all of them; nil: there is no such thing. If it fails, nothing is kept.
	BeforeCommit func(tx *Tx) error
}

// DB is an open database.
type DB struct {
	dialect *Dialect
	read    *sql.DB // the readers' pool, for what needs a connection to itself
	reader  *Conn
	writer  *Conn

	in    chan *write
	done  chan struct{} // closed when the writer has ended
	batch int64         // the writer's own: how many transactions it began

	beforeCommit func(*Tx) error

	closing sync.RWMutex // held for reading while a write is handed in
	closed  bool
}

// Open opens a database, checks its settings, brings its tables up to date and starts the writer.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db := &DB{dialect: &sqliteDialect, in: make(chan *write, maxBatch), done: make(chan struct{}), beforeCommit: o.BeforeCommit}
	if err := db.open(o); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	go db.run()
	return db, nil
}

func (db *DB) open(o Options) error {
	writer, pool, err := openSQLite(o)
	if err != nil {
		return err
	}
	db.read = pool
	db.reader = &Conn{dialect: db.dialect, runner: newPooled(pool, db.dialect.rewrite)}
	db.writer = &Conn{dialect: db.dialect, runner: writer, writes: true}
	if err = checkSQLite(db.writer, o); err == nil {
		err = migrate(db.writer, writer.script, o.Migrations)
	}
	if err != nil {
		return errors.Join(err, db.writer.runner.close(), db.reader.runner.close())
	}
	return nil
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
	return errors.Join(db.writer.runner.close(), db.reader.runner.close())
}

// Read returns the connection pool for reading. It sees what is committed.
func (db *DB) Read() *Conn { return db.reader }

// IsUnique reports whether err says that a unique key is there already.
func (db *DB) IsUnique(err error) bool { return db.dialect.isUnique(err) }

var errClosed = errors.New("database is closed")

func unavailable(cause error) error {
	return &parley.Error{Code: parley.Unavailable, Message: "The database does not work now. Try again soon.", Cause: cause}
}
