// Package store remembers what the gateway knows, in one SQL database. It holds the statements and
// nothing else: the rules are in package parley, and how a database is run is in package sqldb.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

//go:embed migrations
var embedded embed.FS

// DB is an open store.
type DB struct {
	reader
	sql    *sqldb.DB
	filing filing
	memory memory // for the writer
	// lastSeq is the writer's own: the newest seq that was ever given to a message, kept or not. Only one
	// process adds messages to a database.
	lastSeq int64
	log     eventLog
	close   func() error
}

var _ parley.Store = (*DB)(nil)

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
	s := &DB{memory: newMemory()}
	o.BeforeCommit = s.writeLog
	db, err := sqldb.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.reader, s.sql = reader{conn: db.Read(context.Background())}, db
	if err := errors.Join(s.startIDs(), s.startLog(), s.startFiling()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// startIDs reads the key of message ids, which the first process makes.
func (db *DB) startIDs() error {
	var key []byte
	const read = `SELECT key FROM message_ids`
	err := db.row(read, nil, &key)
	if err == parley.ErrNotFound {
		key = make([]byte, parley.MessageIDKey)
		rand.Read(key) // never fails
		err = db.sql.Write(context.Background(), func(t *sqldb.Tx) error {
			if _, err := t.Exec(`INSERT INTO message_ids (one, key) VALUES (1, $1) ON CONFLICT DO NOTHING`, key); err != nil {
				return err
			}
			return t.QueryRow(read, nil, &key) // another process may have been faster
		})
	}
	if err == nil {
		db.ids, err = parley.NewMessageIDs(key)
	}
	return err
}

// startFiling finds out what an earlier process left, and files from then on.
func (db *DB) startFiling() error {
	var newest, mark int64
	if err := db.row(`SELECT coalesce(max(seq), 0) FROM message`, nil, &newest); err != nil {
		return err
	}
	if err := db.row(`SELECT seq FROM filed`, nil, &mark); err != nil {
		return err
	}
	f := &db.filing
	f.newest.Store(newest)
	db.lastSeq = newest
	f.mark.Store(mark)
	f.reached, f.began = mark, newest
	f.enough, f.one = make(chan struct{}, 1), make(chan struct{}, 1)
	closing, stop := context.WithCancel(context.Background())
	f.closing = closing
	f.done.Go(db.fileInTime)
	db.close = sync.OnceValue(func() error {
		stop()
		f.done.Wait()
		return db.sql.Close()
	})
	return nil
}

func options(path string) (sqldb.Options, error) {
	migrations, err := fs.Sub(embedded, "migrations")
	return sqldb.Options{Path: path, Durable: true, Migrations: migrations}, err
}

// Tx runs do in a transaction and returns once it is durable. See [parley.Store].
func (db *DB) Tx(ctx context.Context, do func(parley.Tx) error) error {
	return db.sql.Write(ctx, db.writing(do))
}

// Begin runs do in a transaction and tells how it ended. See [parley.Store].
func (db *DB) Begin(ctx context.Context, do func(parley.Tx) error, then func(error)) {
	db.sql.Begin(ctx, db.writing(do), then)
}

func (db *DB) writing(do func(parley.Tx) error) func(*sqldb.Tx) error {
	return func(t *sqldb.Tx) error {
		own := &tx{reader: reader{conn: t.Conn, ids: db.ids}, Tx: t, db: db}
		if err := do(own); err != nil {
			return err
		}
		for _, code := range own.deleted {
			db.log.discard(t.Batch, code)
		}
		db.log.take(t.Batch, own.logged)
		return nil
	}
}

// Close waits for transactions under way and closes the database. It may be called twice.
func (db *DB) Close() error { return db.close() }

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

// reader asks, through the pool or inside a transaction.
type reader struct {
	conn *sqldb.Conn
	ids  parley.MessageIDs
}

// tx writes.
type tx struct {
	reader
	*sqldb.Tx
	db      *DB
	added   []added              // messages, for when they are committed
	logged  []logged             // events, to be written when all callers of the transaction are done
	deleted []parley.ChannelCode // channels
}

var _ parley.Tx = (*tx)(nil)

// change runs a statement that must change a row.
func (t *tx) change(query string, args ...any) error {
	n, err := t.count(query, args...)
	if err == nil && n == 0 {
		return parley.ErrNotFound
	}
	return err
}

// count runs a statement and returns how many rows it changed.
func (t *tx) count(query string, args ...any) (int64, error) {
	return t.Exec(query, args...)
}

// add runs an INSERT … ON CONFLICT DO NOTHING of a row that must be new. It does not let the
// statement fail, because on some databases that would end the whole transaction.
func (t *tx) add(query string, args ...any) error {
	n, err := t.count(query, args...)
	if err == nil && n == 0 {
		return parley.ErrExists
	}
	return err
}

// with returns a reader whose statements end with ctx. Inside a transaction they do not: it is shared.
func (r reader) with(ctx context.Context) reader {
	r.conn = r.conn.With(ctx)
	return r
}

// row reads one row into variables.
func (r reader) row(query string, args []any, into ...any) error {
	err := r.conn.QueryRow(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return parley.ErrNotFound
	}
	return err
}

// scanner is a row to be read.
type scanner interface{ Scan(into ...any) error }

// one reads the first row with scan.
func one[T any](r reader, query string, args []any, scan func(scanner) (T, error)) (T, error) {
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
func list[T any](r reader, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
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
