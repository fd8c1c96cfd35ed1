package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Dialect is what differs between the databases that we run on.
type Dialect struct {
	Name string // the folder of its migrations
	// The statements that bracket a transaction and one caller's part in it.
	begin, commit, rollback           string
	savepoint, release, rollbackPoint string
	// isUnique and isUnavailable class the errors of the driver.
	isUnique, isUnavailable func(error) bool
}

var sqliteDialect = Dialect{
	Name:  "sqlite",
	begin: "BEGIN IMMEDIATE", commit: "COMMIT", rollback: "ROLLBACK",
	savepoint: "SAVEPOINT one", release: "RELEASE one", rollbackPoint: "ROLLBACK TO one",
	isUnique: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
	},
	isUnavailable: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		if !ok {
			return false
		}
		switch e.Code() & 0xff { // the low byte is the class, the rest says more
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB:
			return true
		}
		return false
	},
}

// openSQLite opens the pools for writing and for reading. The file is made readable by its owner
// only; SQLite gives its side files the same mode.
func openSQLite(o Options) (write, read *sql.DB, err error) {
	synchronous := "OFF" // survives the end of the process, not of the machine
	if o.Durable {
		synchronous = "FULL" // NORMAL would lose the last commits when the power fails
	}
	pragmas := []string{
		"busy_timeout(5000)", // another process may hold the lock for a moment
		"journal_mode(WAL)",
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
		"cache_size(-8192)",            // more was measured to gain nothing
		"journal_size_limit(67108864)", // give the disk back after a burst
	}
	query := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	dsn := "file:" + (&url.URL{Path: o.Path}).EscapedPath()
	if strings.HasPrefix(o.Path, memory) {
		dsn = "file:/" + strings.TrimPrefix(o.Path, memory)
		query.Set("vfs", "memdb")
	} else {
		f, err := os.OpenFile(o.Path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, nil, err
		}
		f.Close()
	}
	if write, err = sql.Open("sqlite", dsn+"?"+query.Encode()); err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	query["_pragma"] = append(pragmas, "query_only(1)")
	if read, err = sql.Open("sqlite", dsn+"?"+query.Encode()); err != nil {
		write.Close()
		return nil, nil, err
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return write, read, nil
}

// checkSQLite makes sure that the settings that our promises rest on are in force.
func checkSQLite(ctx context.Context, c *sql.Conn, o Options) error {
	var synchronous, foreignKeys int
	var journal string
	for pragma, into := range map[string]any{"synchronous": &synchronous, "foreign_keys": &foreignKeys, "journal_mode": &journal} {
		if err := c.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return fmt.Errorf("read %s: %w", pragma, err)
		}
	}
	const full = 2
	if o.Durable && synchronous != full {
		return fmt.Errorf("synchronous is %d, not %d: a commit would not survive a power cut", synchronous, full)
	}
	if foreignKeys != 1 {
		return errors.New("foreign keys are off")
	}
	if journal != "wal" && !strings.HasPrefix(o.Path, memory) {
		return fmt.Errorf("journal mode is %s, not wal: does the file system of %s support shared memory?", journal, o.Path)
	}
	return nil
}
