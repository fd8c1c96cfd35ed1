package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const defaultReaders = 4 // connections for reading

// Options say which database to open and how.
type Options struct {
	// Path is the file; "memory:NAME" is a database in memory.
	Path string
	// Durable makes every commit survive a power cut; else it survives only the end of the process.
	Durable bool
	// ReaderCache is how many KiB of pages each connection for reading caches; 0: 512.
	ReaderCache int
	// Migrations holds a folder per dialect with files NNNN_name.sql, applied in order.
	Migrations fs.FS
	// Readers is how many connections for reading there are; zero: 4.
	Readers int
	// BeforeCommit is called in every transaction when the functions of all its callers have run, for what
	// is better written once for all of them; nil: there is no such thing. If it fails, nothing is kept.
	BeforeCommit func(tx *Tx) error

	// For tests; zero: the constants.
	stuckAfter, watchEvery, sliceLimit, rangeLimit, emptyEvery time.Duration
	maxLog                                                     int64
}

// DB is an open database.
type DB struct {
	dialect *Dialect
	path    string
	reader  *Conn
	writer  *Conn

	in    chan *write
	done  chan struct{} // closed when the writer has ended
	batch int64         // the writer's own: how many transactions it began

	beforeCommit func(*Tx) error
	lost         error // the writer's own: why the transaction under way is lost; nil: it is not

	health     *health
	stuckAfter time.Duration
	watchEvery time.Duration
	sliceLimit time.Duration
	rangeLimit time.Duration
	maxLog     int64
	emptyEvery time.Duration

	// watching are the goroutines beside the writer, which end when ending is over.
	watching sync.WaitGroup
	ending   context.Context
	end      context.CancelFunc
	emptying atomic.Bool
	chores   chan func() // what the writer does between transactions

	closing sync.RWMutex // held for reading while a write is handed in
	closed  bool
}

// Open opens a database, checks its settings, brings its tables up to date and starts the writer.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db := &DB{
		dialect: &sqliteDialect, in: make(chan *write, maxBatch), done: make(chan struct{}), beforeCommit: o.BeforeCommit,
		health: newHealth(), stuckAfter: cmp.Or(o.stuckAfter, stuckAfter), watchEvery: cmp.Or(o.watchEvery, watchEvery),
		sliceLimit: cmp.Or(o.sliceLimit, sliceLimit), rangeLimit: cmp.Or(o.rangeLimit, rangeLimit),
		maxLog: cmp.Or(o.maxLog, maxLog), emptyEvery: cmp.Or(o.emptyEvery, emptyEvery), chores: make(chan func(), 1),
	}
	o.Readers = cmp.Or(o.Readers, defaultReaders)
	if err := db.open(o); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	db.ending, db.end = context.WithCancel(context.Background())
	go db.run()
	if !strings.HasPrefix(o.Path, memory) || o.watchEvery != 0 { // memory has no log, and a tick costs a fake clock much
		db.watching.Go(db.watch)
	}
	return db, nil
}

func (db *DB) open(o Options) error {
	writer, pool, err := openSQLite(o)
	if err != nil {
		return err
	}
	db.path = o.Path
	db.reader = &Conn{dialect: db.dialect, runner: newPooled(pool, db.dialect, o.Readers, db.health.observe), observe: db.health.observe, ctx: context.Background()}
	db.writer = &Conn{dialect: db.dialect, runner: writer, writes: true, observe: db.health.observe}
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
	db.end()
	db.watching.Wait()
	return errors.Join(db.writer.runner.close(), db.reader.runner.close())
}

// Read returns the connection pool for reading, whose statements end with ctx. It sees what is committed.
func (db *DB) Read(ctx context.Context) *Conn { return db.reader.With(ctx) }

// IsUnique reports whether err says that a unique key is there already.
func (db *DB) IsUnique(err error) bool { return db.dialect.isUnique(err) }

var errClosed = errors.New("database is closed")
