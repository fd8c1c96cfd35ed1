package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const defaultReaders = 4 // connections for reading

// Options say which database to open and how.
type Options struct {
	// Path is the file; "memory:NAME" is a database in memory, and "postgres://…" one of a PostgreSQL server.
	Path string
	// Schema is the schema of PostgreSQL that the tables are in; empty: that of the address.
	Schema string
	// Member ties the writes to a membership of a cluster; nil: there is no cluster.
	Member *Member
	// Durable makes every commit survive a power cut; else it survives only the end of the process.
	Durable bool
	// ReaderCache is the page cache of each connection for reading, in KiB; 0: 512.
	ReaderCache int
	// Migrations holds files sqlite/NNNN_name.sql and postgres/NNNN_name.sql, applied in order. The first one has all tables.
	Migrations fs.FS
	// Readers is the number of connections for reading; 0: 4.
	Readers int
	// BeforeCommit is called in every transaction after the functions of all its callers. If it fails, nothing is
	// committed. What it leaves to OnCommit is called before what they left. It may be nil.
	BeforeCommit func(tx *Tx) error
	// Trace is called before every statement, for tests that look at plans. It may be nil.
	Trace func(query string, args []any)

	limits // only tests set them; zero: the constants
}

// limits are how long and how large things may become.
type limits struct {
	stuckAfter, watchEvery, sliceLimit, rangeLimit, restartEvery time.Duration
	maxLog                                                       int64
}

func (l limits) withDefaults() limits {
	return limits{cmp.Or(l.stuckAfter, stuckAfter), cmp.Or(l.watchEvery, watchEvery), cmp.Or(l.sliceLimit, sliceLimit),
		cmp.Or(l.rangeLimit, rangeLimit), cmp.Or(l.restartEvery, restartEvery), cmp.Or(l.maxLog, maxLog)}
}

// DB is an open database.
type DB struct {
	path   string
	reader *Conn
	writer *Conn

	queue        chan *write
	done         chan struct{} // closed when the writer has ended
	beforeCommit func(*Tx) error

	// Only the writer uses these.
	batch     int64     // how many transactions it began
	lost      error     // why the current transaction is lost
	unsure    []func()  // of writes whose outcome is not known until the next transaction begins
	committed []func()  // to call after the commit, before what its callers want called
	logSizeAt time.Time // when it last looked at the size of the log

	inDoubt atomic.Bool // there are unsure ones
	health  *health
	limits  limits

	// watching are the goroutines beside the writer. They end with the context ending.
	watching   sync.WaitGroup
	ending     context.Context
	end        context.CancelFunc
	restarting atomic.Bool // a goroutine is restarting the log
	file       *os.File    // SQLite's file, for sync only; nil: it is not synced
	chores     chan func() // the writer runs them between transactions

	closing sync.RWMutex // held for reading while a write is enqueued
	closed  bool
}

// Open opens a database, checks its settings, brings its tables up to date and starts the writer.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db := &DB{
		path: o.Path, queue: make(chan *write, maxBatch), done: make(chan struct{}), beforeCommit: o.BeforeCommit,
		health: newHealth(), limits: o.limits.withDefaults(), chores: make(chan func(), 1),
	}
	o.Readers = cmp.Or(o.Readers, defaultReaders)
	if err := db.open(ctx, o); err != nil {
		return nil, fmt.Errorf("open %s: %w", Redacted(o.Path), err)
	}
	db.ending, db.end = context.WithCancel(context.Background())
	go db.run()
	if !strings.HasPrefix(o.Path, memory) || o.watchEvery != 0 { // memory has no log, and ticks are slow with a fake clock
		db.watching.Go(db.watch)
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, o Options) (err error) {
	db.path = o.Path
	var write writeEngine
	var read engine
	if IsPostgres(o.Path) {
		write, read, err = openPostgres(o)
	} else {
		write, read, err = openSQLite(o, db.health.observe)
	}
	if err != nil {
		return err
	}
	db.reader = &Conn{engine: read, observe: db.health.observe, trace: o.Trace}
	db.writer = &Conn{engine: write, write: write, observe: db.health.observe, trace: o.Trace}
	if err = db.prepare(ctx, o); err == nil && !write.isPostgres() && o.Durable && !strings.HasPrefix(o.Path, memory) {
		db.file, err = os.OpenFile(o.Path, os.O_RDWR, 0)
	}
	if err != nil {
		return errors.Join(err, read.close(), write.close())
	}
	return nil
}

// prepare checks the settings and brings the tables up to date.
func (db *DB) prepare(ctx context.Context, o Options) error {
	if err := db.writer.write.check(o); err != nil {
		return err
	}
	if err := migrate(ctx, db.writer, o); err != nil {
		return err
	}
	return db.writer.write.ready(o)
}

// Close waits for the enqueued writes and closes the database. It may be called twice.
func (db *DB) Close() error {
	db.closing.Lock()
	already := db.closed
	db.closed = true
	db.closing.Unlock()
	if already {
		<-db.done
		return nil
	}
	close(db.queue)
	<-db.done
	db.end()
	db.watching.Wait()
	err := errors.Join(db.reader.engine.close(), db.writer.engine.close())
	if db.file != nil {
		err = errors.Join(err, db.file.Close()) // the last: closing a file ends all locks that the process has on it
	}
	return err
}

// Read returns the connection pool for reading. Its statements end with ctx and see what is committed.
func (db *DB) Read(ctx context.Context) *Conn { return db.reader.With(ctx) }
