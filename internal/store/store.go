// Package store holds the gateway's data in one SQL database. It contains the statements only: the rules are in package
// parley, and package sqldb runs the database.
//
// Invariants:
//
//   - A method of [Tx] runs inside a transaction. When [DB.Tx] returns nil, everything in it is durable on disk.
//   - Every row names its channel by number. Deleting or resetting a channel retires its number, which hides the rows at
//     once. They are purged later (purge.go).
//   - A message of the history has a position in its chat. Positions have no gaps and grow with the seq. A purge of old messages
//     begins with the first ones, which makes the first position larger.
//   - A number in any known spelling (alias) leads to one chat.
//   - A change of a message's status and its event are in one transaction, so a timeline is complete.
//   - Counters are written in the transaction that they count; on PostgreSQL with the first one after a second, or before they are read.
//   - Rows that all nodes write are written at the end of a transaction, in one order (ending.go).
//   - An event's seq only grows and is never used again, so a cursor stays valid after a purge.
//   - Reads that could see many rows have a limit per call, so no call holds a connection for long.
package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"parley/internal/store/sqldb"
)

//go:embed migrations
var embedded embed.FS

// Migrations are the tables and their changes; see [sqldb.Options]. Tests of migrating add a step.
var Migrations, _ = fs.Sub(embedded, "migrations")

// DB is an open store. Its methods read. Changes happen in [DB.Tx].
type DB struct {
	Reader
	sql       *sqldb.DB
	logNumber uint32 // number of the event log, a part of event ids
	waiters   eventWaiters
	ending    batchEnding
	pending   pendingCounting
	channels  batchChannels
	chatEnds  chatEnds
	onEvents  func() // see Watch; nil: nothing
	onChanges func()
	onLogHeld func(time.Duration)
}

// Open opens the store in a file, which it creates if there is none. The path "memory:NAME" is a store in memory, for
// tests, and "postgres://…" one in PostgreSQL.
func Open(ctx context.Context, path string) (*DB, error) { return OpenAs(ctx, path, nil, 0) }

// OpenAs is Open for a server: with a number of connections for reading, zero: 4, and for a node of a cluster, which can write while it
// is a member; nil: there is no cluster.
func OpenAs(ctx context.Context, path string, member *sqldb.Member, readers int) (*DB, error) {
	o := options(path)
	o.Member, o.Readers = member, readers
	return open(ctx, o)
}

func options(path string) sqldb.Options {
	return sqldb.Options{Path: path, Durable: true, Migrations: Migrations}
}

func open(ctx context.Context, o sqldb.Options) (s *DB, err error) {
	s = &DB{}
	s.pending.wake = func() { s.writeCounters(context.Background()) }
	o.BeforeCommit = s.beforeCommit
	if s.sql, err = sqldb.Open(ctx, o); err != nil {
		return nil, err
	}
	s.Reader = Reader{conn: s.sql.Read(context.Background())}
	if err := s.row(`SELECT number FROM log`, nil, &s.logNumber); err != nil {
		return nil, errors.Join(fmt.Errorf("number of the event log: %w", err), s.sql.Close())
	}
	return s, nil
}

// now is the time at which rows are stored.
func (db *DB) now() int64 { return time.Now().UnixMilli() }

// Tx runs do in a transaction and returns when it is durable on disk. Transactions of several callers may be committed
// together, so do may run more than once: outside the transaction it may only set results, again at each run. Inside it may
// use only the Tx. If do fails, its changes are rolled back and Tx returns its error.
func (db *DB) Tx(ctx context.Context, do func(*Tx) error) error {
	return db.sql.Write(ctx, db.writing(do))
}

func (db *DB) writing(do func(*Tx) error) func(*sqldb.Tx) error {
	return func(t *sqldb.Tx) error {
		own := &Tx{Reader: Reader{conn: t.Conn}, sql: t, db: db}
		if err := do(own); err != nil {
			return err
		}
		db.ending.of(t.Batch).merge(&own.ending)
		return nil
	}
}

// WithProgress makes migrations report to f what they do, while a store is opened with the context.
func WithProgress(ctx context.Context, f func(text string)) context.Context {
	return sqldb.WithProgress(ctx, f)
}

// For returns a context whose reads count as those of a caller, such as a token. Callers share the connections for reading fairly.
func For(ctx context.Context, caller string) context.Context { return sqldb.For(ctx, caller) }

// Caller is the caller of [For]; empty: none.
func Caller(ctx context.Context) string { return sqldb.Caller(ctx) }

// Close waits for running transactions and closes the database. It may be called twice.
func (db *DB) Close() error {
	db.writeCounters(context.Background()) // if it fails, the last second is not counted
	return db.sql.Close()
}

// CheckStart looks for damage in the schema and at the beginning of every table.
func (db *DB) CheckStart(ctx context.Context) error { return db.sql.CheckStart(ctx) }

// Check looks for damage in the whole database. CheckSlowly does the same with pauses.
func (db *DB) Check(ctx context.Context) error       { return db.sql.Check(ctx) }
func (db *DB) CheckSlowly(ctx context.Context) error { return db.sql.CheckSlowly(ctx) }

// Damaged returns a channel that is closed when damage is found. From then on nothing is written.
func (db *DB) Damaged() <-chan struct{} { return db.sql.Damaged() }

// Damage returns the damage that was found, or nil.
func (db *DB) Damage() error { return db.sql.Damage() }

// IsDamage reports whether an error says that a file is damaged or not a database.
func IsDamage(err error) bool { return sqldb.IsDamage(err) }

// FoundDamage is what a check found. It is empty if a statement met the damage.
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

// Writable returns nil if a write would succeed now, else why not. It returns at the latest when ctx ends.
func (db *DB) Writable(ctx context.Context) error { return db.sql.Writable(ctx) }

// Size returns the size of the database in bytes.
func (db *DB) Size(ctx context.Context) (int64, error) { return db.sql.Size(ctx) }

// TrustedTime reads the newest time at which the clock was trusted.
func (r Reader) TrustedTime(ctx context.Context) (time.Time, error) {
	return r.with(ctx).moment(`SELECT at FROM clock`)
}

// SetTrustedTime stores that the clock was trusted at a time. It never moves back.
func (t *Tx) SetTrustedTime(_ context.Context, at time.Time) error {
	return t.exec(`UPDATE clock SET at = $1 WHERE at < $1`, millis(at))
}
