// Package store remembers what the gateway knows, in one SQL database. It holds the statements and
// nothing else: the rules are in package parley, and how a database is run is in package sqldb.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

//go:embed migrations
var embedded embed.FS

// DB is an open store. Its methods read; what changes it happens in [DB.Tx].
type DB struct {
	Reader
	sql       *sqldb.DB
	logNumber uint32 // of the event log
	waiters   eventWaiters
	counting  batchCounting

	// The first bytes of the ids of messages that the current commit adds. Only the writer uses them.
	idBatch int64
	idBytes [2]byte
}

// Open opens the store in a file, which it makes where there is none. The path "memory:NAME" is a
// store in memory, for tests.
func Open(ctx context.Context, path string) (*DB, error) {
	o, err := options(path)
	if err != nil {
		return nil, err
	}
	return open(ctx, o)
}

func open(ctx context.Context, o sqldb.Options) (*DB, error) {
	s := &DB{}
	o.BeforeCommit = s.writeCounters
	db, err := sqldb.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.Reader, s.sql = Reader{conn: db.Read(context.Background())}, db
	if err := s.startLog(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// now is the time at which rows are stored.
func (db *DB) now() int64 { return time.Now().UnixMilli() }

func options(path string) (sqldb.Options, error) {
	migrations, err := fs.Sub(embedded, "migrations")
	return sqldb.Options{Path: path, Durable: true, Migrations: migrations, Upgrade: upgrade}, err
}

// Tx runs do in a transaction and returns once it is durable on disk. Many callers' transactions may be committed
// together, so do may run more than once: its only effects outside the transaction must be results that it sets again at each
// run. Inside, only the Tx may be used. If do fails, nothing of it is stored and Tx returns its error.
func (db *DB) Tx(ctx context.Context, do func(*Tx) error) error {
	return db.sql.Write(ctx, db.writing(do))
}

// Begin is [DB.Tx] for a caller that does something else meanwhile: then is called once with how it ended. All others may
// wait for it, so it must be quick.
func (db *DB) Begin(ctx context.Context, do func(*Tx) error, then func(error)) {
	db.sql.Begin(ctx, db.writing(do), then)
}

func (db *DB) writing(do func(*Tx) error) func(*sqldb.Tx) error {
	return func(t *sqldb.Tx) error {
		own := &Tx{Reader: Reader{conn: t.Conn}, sql: t, db: db}
		if err := do(own); err != nil {
			return err
		}
		db.counting.of(t.Batch).merge(&own.counting)
		return nil
	}
}

// Close waits for transactions under way and closes the database. It may be called twice.
func (db *DB) Close() error { return db.sql.Close() }

// CheckStart looks for damage in the schema and at the beginning of every table.
func (db *DB) CheckStart(ctx context.Context) error { return db.sql.CheckStart(ctx) }

// Check looks for damage in the whole database, CheckSlowly too, but leaves time to others.
func (db *DB) Check(ctx context.Context) error       { return db.sql.Check(ctx) }
func (db *DB) CheckSlowly(ctx context.Context) error { return db.sql.CheckSlowly(ctx) }

// Damaged returns a channel that is closed when damage is found. From then on nothing is written.
func (db *DB) Damaged() <-chan struct{} { return db.sql.Damaged() }

// Damage returns the damage that was found, or nil.
func (db *DB) Damage() error { return db.sql.Damage() }

// IsDamage reports whether an error says that a database file is damaged, or none.
func IsDamage(err error) bool { return sqldb.IsDamage(err) }

// FoundDamage is what a check found, or empty where a statement met the damage.
func FoundDamage(err error) string {
	if e, ok := errors.AsType[*sqldb.DamageError](err); ok {
		return e.Found
	}
	return ""
}

// IsFull reports whether an error says that the disk of a database is full.
func IsFull(err error) bool { return sqldb.IsFull(err) }

// IsDiskError reports whether an error says that the files of a database cannot be read or written.
func IsDiskError(err error) bool { return sqldb.IsDiskError(err) }

// Writable returns nil if a write would succeed now, else why not, at the latest when ctx ends.
func (db *DB) Writable(ctx context.Context) error { return db.sql.Writable(ctx) }

// Size returns how many bytes the database holds.
func (db *DB) Size(ctx context.Context) (int64, error) { return db.sql.Size(ctx) }

// Reader reads: through the pool, where every method ends with its context, or inside a transaction, which is shared and
// ignores contexts. A row that is not there is [parley.ErrNotFound].
type Reader struct {
	conn *sqldb.Conn
}

// Tx is a transaction: it reads and writes.
type Tx struct {
	Reader
	sql      *sqldb.Tx
	db       *DB
	counting counting
	lastCode parley.ChannelCode // the channel that channelID last looked up
	lastID   int64
	notifies bool // readers of the event log are notified after the commit
}

// OnCommit has f called after the commit, before the next transaction begins and in the order of the transactions. It must
// not block and must not use the store.
func (t *Tx) OnCommit(f func()) { t.sql.OnCommit(f) }

// change runs a statement that must change a row.
func (t *Tx) change(query string, args ...any) error {
	n, err := t.count(query, args...)
	if err == nil && n == 0 {
		return parley.ErrNotFound
	}
	return err
}

// count runs a statement and returns how many rows it changed.
func (t *Tx) count(query string, args ...any) (int64, error) {
	return t.sql.Exec(query, args...)
}

// add runs an INSERT … ON CONFLICT DO NOTHING of a row that must be new. It does not let the
// statement fail, because on some databases that would end the whole transaction.
func (t *Tx) add(query string, args ...any) error {
	n, err := t.count(query, args...)
	if err == nil && n == 0 {
		return parley.ErrExists
	}
	return err
}

// with returns a reader whose statements end with ctx. Inside a transaction they do not: it is shared.
func (r Reader) with(ctx context.Context) Reader {
	r.conn = r.conn.With(ctx)
	return r
}

// row reads one row into variables.
func (r Reader) row(query string, args []any, into ...any) error {
	err := r.conn.QueryRow(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return parley.ErrNotFound
	}
	return err
}

// scanner is a row to be read.
type scanner interface{ Scan(into ...any) error }

// one reads the first row with scan.
func one[T any](r Reader, query string, args []any, scan func(scanner) (T, error)) (T, error) {
	all, err := list(r, query, args, scan)
	if err == nil && len(all) == 0 {
		err = parley.ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// list reads all rows, each with scan.
func list[T any](r Reader, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
	rows, err := r.conn.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read row: %w", err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// millis is a time as it is stored.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// moment is a stored time.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// flag is a truth as it is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nullable is a blob whose absence is NULL.
func nullable(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// nullableText is a text whose absence is NULL.
func nullableText(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return string(b)
}
