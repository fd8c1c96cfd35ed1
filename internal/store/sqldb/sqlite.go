package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"zombiezen.com/go/sqlite"
)

// memory before a name means a database in memory. Tests with a fake clock need it.
const memory = "memory:"

// readerCache is the page cache of a connection for reading, in KiB. It is small: there are several connections, the
// system caches the same pages, and a page of 4 KiB uses 8.
const readerCache = 512

const busyTimeout = "busy_timeout(5000)" // another process may hold the lock for a moment

// openSQLite opens the writer's connection and the pool for reading. Only the owner can read the file. SQLite gives its
// side files the same mode.
func openSQLite(o Options, observe func(error)) (writeEngine, engine, error) {
	synchronous := "OFF" // survives the end of the process, not of the machine
	if o.Durable {
		synchronous = "FULL" // NORMAL would lose the last commits when the power fails
	}
	pragmas := []string{
		busyTimeout,
		"journal_mode(WAL)",
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
		"secure_delete(1)",              // overwrites what is erased
		"cache_size(-4096)",             // KiB; more gained nothing when measured
		"journal_size_limit(134217728)", // frees disk space after a burst; far more than maxLog
		fmt.Sprintf("wal_autocheckpoint(%d)", autoCheckpoint),
	}
	if !strings.HasPrefix(o.Path, memory) {
		if err := create(o.Path); err != nil {
			return nil, nil, err
		}
	}
	write, err := openConnection(location(o.Path, url.Values{}), sqlite.OpenReadWrite, pragmas...)
	if err != nil {
		return nil, nil, err
	}
	cache := fmt.Sprintf("cache_size(-%d)", cmp.Or(o.ReaderCache, readerCache))
	read := newPool(o.Readers, func() (*connection, error) {
		return openConnection(location(o.Path, url.Values{}), sqlite.OpenReadWrite, busyTimeout, "query_only(1)", cache)
	}, observe)
	return write, poolReader{read, context.Background()}, nil
}

// location is the address of a database in a file or in memory.
func location(path string, query url.Values) string {
	if name, ok := strings.CutPrefix(path, memory); ok {
		path = "/" + name
		query.Set("vfs", "memdb")
	}
	return address(path, query)
}

// ownConnection opens a connection for long work, which must not block a reader. Its statements end with ctx.
func (db *DB) ownConnection(ctx context.Context) (*connection, error) {
	c, err := openConnection(location(db.path, url.Values{}), sqlite.OpenReadWrite, busyTimeout, "query_only(1)")
	if err != nil {
		return nil, classed(err)
	}
	c.interruptWith(ctx)
	return c, nil
}

// asConn makes a Conn that uses one connection only.
func (c *connection) asConn() *Conn { return &Conn{engine: c, observe: func(error) {}} }

// create creates the file if it does not exist.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// address is the URI of a database file.
func address(path string, query url.Values) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// check makes sure that the settings which durability needs are in force.
func (c *connection) check(o Options) error {
	var synchronous, foreignKeys int
	var journal string
	for pragma, into := range map[string]any{"synchronous": &synchronous, "foreign_keys": &foreignKeys, "journal_mode": &journal} {
		if err := c.queryRow("PRAGMA "+pragma, nil, []any{into}); err != nil {
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

// Size returns the size of the database in bytes, without the log.
func (db *DB) Size(ctx context.Context) (int64, error) {
	var size int64
	err := db.Read(ctx).QueryRow(db.writer.write.dialect().size, nil, &size)
	return size, err
}
