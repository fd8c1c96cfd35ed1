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
	// Migrations holds files sqlite/NNNN_name.sql, applied in order.
	Migrations fs.FS
	// Upgrade does what SQL alone cannot do for a migration, after its script and in the same transaction; nil: nothing.
	Upgrade func(c *Conn, version int) error
	// Readers is how many connections for reading there are; zero: 4.
	Readers int
	// BeforeCommit is called in every transaction when the functions of all its callers have run; nil: nothing is. If it
	// fails, nothing is committed.
	BeforeCommit func(tx *Tx) error
	// For tests; zero: the constants.
	stuckAfter, watchEvery, sliceLimit, rangeLimit, emptyEvery time.Duration
	maxLog                                                     int64
}

// DB is an open database.
type DB struct {
	path   string
	reader *Conn
	writer *Conn

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
	watching  sync.WaitGroup
	ending    context.Context
	end       context.CancelFunc
	emptying  atomic.Bool
	logSizeAt time.Time   // of the writer: when it last looked at the size of the log
	chores    chan func() // what the writer does between transactions

	closing sync.RWMutex // held for reading while a write is handed in
	closed  bool
}

// Open opens a database, checks its settings, brings its tables up to date and starts the writer.
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db := &DB{
		in: make(chan *write, maxBatch), done: make(chan struct{}), beforeCommit: o.BeforeCommit,
		health: newHealth(), stuckAfter: cmp.Or(o.stuckAfter, stuckAfter), watchEvery: cmp.Or(o.watchEvery, watchEvery),
		sliceLimit: cmp.Or(o.sliceLimit, sliceLimit), rangeLimit: cmp.Or(o.rangeLimit, rangeLimit),
		maxLog: cmp.Or(o.maxLog, maxLog), emptyEvery: cmp.Or(o.emptyEvery, restartEvery), chores: make(chan func(), 1),
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
	writer, pool, err := openSQLite(o, db.health.observe)
	if err != nil {
		return err
	}
	db.path = o.Path
	db.reader = &Conn{pool: pool, ctx: context.Background(), observe: db.health.observe}
	db.writer = &Conn{own: writer, observe: db.health.observe}
	if err = checkSQLite(db.writer, o); err == nil {
		err = migrate(db.writer, o)
	}
	if err != nil {
		return errors.Join(err, pool.close(), writer.close())
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
	return errors.Join(db.reader.pool.close(), db.writer.own.close())
}

// Read returns the connection pool for reading, whose statements end with ctx. It sees what is committed.
func (db *DB) Read(ctx context.Context) *Conn { return db.reader.With(ctx) }
