package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// memory, before a name, makes a database that lives in memory: tests with a fake clock need it.
const memory = "memory:"

// openSQLite opens the writer and the pool for reading. The file is made readable by its owner only; SQLite
// gives its side files the same mode.
func openSQLite(o Options) (write *direct, read *sql.DB, err error) {
	synchronous := "OFF" // survives the end of the process, not of the machine
	if o.Durable {
		synchronous = "FULL" // NORMAL would lose the last commits when the power fails
	}
	pragmas := []string{
		"busy_timeout(5000)", // another process may hold the lock for a moment
		"journal_mode(WAL)",
		"synchronous(" + synchronous + ")",
		"foreign_keys(1)",
		"secure_delete(1)",             // what is erased is overwritten, not only forgotten
		"cache_size(-8192)",            // more was measured to gain nothing
		"journal_size_limit(67108864)", // give the disk back after a burst
	}
	path, query := o.Path, url.Values{}
	if name, ok := strings.CutPrefix(o.Path, memory); ok {
		path = "/" + name
		query.Set("vfs", "memdb")
	} else if err := create(path); err != nil {
		return nil, nil, err
	}
	if write, err = openDirect(address(path, query), pragmas); err != nil {
		return nil, nil, err
	}
	query["_pragma"] = append(pragmas, "query_only(1)")
	if o.ReaderCache > 0 {
		query["_pragma"] = append(query["_pragma"], fmt.Sprintf("cache_size(-%d)", o.ReaderCache))
	}
	if read, err = sql.Open("sqlite", address(path, query)); err != nil {
		return nil, nil, errors.Join(err, write.close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return write, read, nil
}

// create makes the file if it is not there.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// address is how the driver is told which file to open and how.
func address(path string, query url.Values) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// checkSQLite makes sure that the settings that our promises rest on are in force.
func checkSQLite(writer *Conn, o Options) error {
	var synchronous, foreignKeys int
	var journal string
	for pragma, into := range map[string]any{"synchronous": &synchronous, "foreign_keys": &foreignKeys, "journal_mode": &journal} {
		if err := writer.QueryRow("PRAGMA "+pragma, nil, into); err != nil {
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

// Check looks for damage and tells of the first that it finds.
func (db *DB) Check(ctx context.Context) error {
	c, err := db.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return check(ctx, c, "quick_check")
}

// check runs one of SQLite's checks, which answer "ok" or what is wrong.
func check(ctx context.Context, c *sql.Conn, pragma string) error {
	var found string
	if err := c.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&found); err != nil {
		return fmt.Errorf("the database is damaged or unreadable: %w", err)
	}
	if found != "ok" {
		return fmt.Errorf("the database is damaged: %s", strings.Join(strings.Fields(found), " "))
	}
	return nil
}

// Size returns how many bytes the database holds, without what waits to be written back to it.
func (db *DB) Size(ctx context.Context) (int64, error) {
	c, err := db.read.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	pages, pageSize, err := sizes(ctx, c)
	return pages * pageSize, err
}

func sizes(ctx context.Context, c *sql.Conn) (pages, pageSize int64, err error) {
	if err := c.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return 0, 0, err
	}
	err = c.QueryRowContext(ctx, "PRAGMA page_size").Scan(&pageSize)
	return pages, pageSize, err
}
