package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"parley"
)

// narrow opens a database with one connection for reading and a short wait for it.
func narrow(t *testing.T) (*DB, *pool) {
	t.Helper()
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: things, Readers: 1})
	pool := db.reader.engine.(poolReader).pool
	pool.wait = 10 * time.Millisecond
	add(t, db, "a")
	add(t, db, "b")
	return db, pool
}

// holdReader opens rows, which hold a connection until they are closed.
func holdReader(t *testing.T, db *DB) *Rows {
	t.Helper()
	rows, err := db.Read(t.Context()).Query(`SELECT name FROM thing`)
	if err != nil || !rows.Next() {
		t.Fatalf("no rows: %v", err)
	}
	return rows
}

func TestWaitingForAReaderEnds(t *testing.T) {
	db, _ := narrow(t)
	rows := holdReader(t, db)
	var name string
	err := db.Read(t.Context()).QueryRow(`SELECT name FROM thing`, nil, &name)
	if e, ok := errors.AsType[*parley.Error](err); !ok || e.Code != parley.Unavailable || e.RetryAfter <= 0 || !errors.Is(err, errNoReader) {
		t.Errorf("with no connection free: %v", err)
	}
	rows.Close()
	if err := db.Read(t.Context()).QueryRow(`SELECT name FROM thing`, nil, &name); err != nil {
		t.Errorf("with a connection free again: %v", err)
	}
}

func TestWaitingForAReaderEndsWithTheContext(t *testing.T) {
	db, pool := narrow(t)
	pool.wait = time.Hour
	defer holdReader(t, db).Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Read(ctx).QueryRow(`SELECT name FROM thing`, nil, new(string)) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestOpenRowsAreClosed: rows that the caller does not close return their connection after the limit.
func TestOpenRowsAreClosed(t *testing.T) {
	db, pool := narrow(t)
	pool.limit, pool.wait = 50*time.Millisecond, time.Minute
	rows := holdReader(t, db)
	pool.limit = readLimit
	if err := db.Read(t.Context()).QueryRow(`SELECT name FROM thing`, nil, new(string)); err != nil {
		t.Errorf("the connection did not come back: %v", err)
	}
	for rows.Next() {
	}
	if err := rows.Err(); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("the rows ended with %v", err)
	}
}

// TestRowsThatEndedHoldNoConnection: as with package sql, rows that were read completely are closed.
func TestRowsThatEndedHoldNoConnection(t *testing.T) {
	db, _ := narrow(t)
	rows := holdReader(t, db)
	defer rows.Close()
	for rows.Next() {
	}
	if err := db.Read(t.Context()).QueryRow(`SELECT name FROM thing`, nil, new(string)); err != nil {
		t.Error(err)
	}
}

// TestLongWorkHasItsOwnConnection: a copy and a check run while all readers are busy.
func TestLongWorkHasItsOwnConnection(t *testing.T) {
	db, _ := narrow(t)
	defer holdReader(t, db).Close()
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if err := db.CopyTo(t.Context(), filepath.Join(t.TempDir(), "copy.db"), nil); err != nil {
		t.Errorf("copy: %v", err)
	}
}
