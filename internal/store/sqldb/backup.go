package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	copyStep = 256 // pages between two looks at the context: 1 MiB
	// copyPatience is how long a copy waits for somebody who has the database for itself, as at its start.
	copyPatience = 10 * time.Second
)

// CopyTo writes a copy of the database to a new file, as it is at this moment, while others go on
// reading and writing. It calls progress, which may be nil, with the bytes copied and to copy.
func (db *DB) CopyTo(ctx context.Context, to string, progress func(done, total int64)) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s is there already", to)
	}
	from, close, err := db.ownConn(ctx)
	if err != nil {
		return err
	}
	defer close()
	part := to + ".part"
	defer os.Remove(part) // it is gone if all went well
	if err := copyFile(ctx, from, part, progress); err != nil {
		return err
	}
	if err := inspect(ctx, part, "quick_check", nil); err != nil {
		return err
	}
	return put(part, to)
}

// CopyFile writes a copy of the database in a file to a new file, as it is at this moment, while others go
// on reading and writing. It calls progress, which may be nil, with the bytes copied and to copy.
func CopyFile(ctx context.Context, from, to string, progress func(done, total int64)) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	source, err := sql.Open("sqlite", address(from, url.Values{"mode": {"rw"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", copyPatience.Milliseconds())}}))
	if err != nil {
		return err
	}
	defer source.Close()
	c, err := source.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer c.Close()
	part := to + ".part"
	defer os.Remove(part) // it is gone if all went well
	if err := copyFile(ctx, c, part, progress); err != nil {
		return err
	}
	if err := inspect(ctx, part, "quick_check", nil); err != nil {
		return err
	}
	return put(part, to)
}

// Replace puts a copy of the database in the file from in the place of another, which nobody may have
// open. It does so only once the copy is complete, undamaged and of a version that o.Migrations knows.
func Replace(ctx context.Context, from string, o Options, progress func(done, total int64)) error {
	source, close, err := openFile(ctx, from)
	if err != nil {
		return err
	}
	defer close()
	part := o.Path + ".part"
	defer os.Remove(part) // it is gone if all went well
	if err := copyFile(ctx, source, part, progress); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	known := func(c *sql.Conn) error { return checkVersion(ctx, c, &sqliteDialect, o.Migrations) }
	if err := inspect(ctx, part, "integrity_check", known); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := claim(ctx, o.Path); err != nil {
		return err
	}
	// A log that belongs to the old file must not be taken for one of the new.
	for _, side := range []string{"-wal", "-shm"} {
		if err := os.Remove(o.Path + side); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return put(part, o.Path)
}

// copyFile copies the database behind a connection to a file, which it replaces.
func copyFile(ctx context.Context, from *sql.Conn, to string, progress func(done, total int64)) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := create(to); err != nil {
		return err
	}
	// Inside a transaction the copy is of one moment. Without it, every commit of others would make it
	// begin anew.
	if _, err := from.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	defer from.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	var pages, pageSize int64
	if err := from.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil { // the moment: the first look at the file
		return err
	}
	if err := from.QueryRowContext(ctx, "PRAGMA page_size").Scan(&pageSize); err != nil {
		return err
	}
	return from.Raw(func(driver any) error {
		source, ok := driver.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return fmt.Errorf("the driver's %T cannot copy", driver)
		}
		// No journal and no waiting for the disk: the copy counts only when it is complete, and put
		// waits once.
		b, err := source.NewBackup(address(to, url.Values{"_pragma": {"journal_mode(OFF)", "synchronous(OFF)"}}))
		if err != nil {
			return err
		}
		if err := copyPages(ctx, b, pageSize, progress); err != nil {
			b.Finish()
			return err
		}
		return b.Finish()
	})
}

func copyPages(ctx context.Context, b *sqlite.Backup, pageSize int64, progress func(done, total int64)) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = b.Step(copyStep); err != nil {
			return err
		}
		if progress != nil {
			total := int64(b.PageCount())
			progress((total-int64(b.Remaining()))*pageSize, total*pageSize)
		}
	}
	return nil
}

// inspect checks a file that nobody else uses, with one of SQLite's checks and a further one.
func inspect(ctx context.Context, path, pragma string, further func(*sql.Conn) error) error {
	c, close, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer close()
	if err := check(ctx, c, pragma+"(1)"); err != nil || further == nil {
		return err
	}
	return further(c)
}

// openFile opens a database for reading only, so that no side files come to lie beside a backup.
func openFile(ctx context.Context, path string) (*sql.Conn, func(), error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, err
	}
	query := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		query.Set("immutable", "1")
	}
	db, err := sql.Open("sqlite", address(path, query))
	if err != nil {
		return nil, nil, err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	return c, func() { c.Close(); db.Close() }, nil
}

// claim makes sure that nobody has the database open: only then its log can be taken away. A file
// that cannot be read as a database is nobody's.
func claim(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", address(path, nil))
	if err != nil {
		return err
	}
	defer db.Close()
	var mode string
	err = db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		return fmt.Errorf("%s is in use: stop the server first", path)
	}
	return nil
}

// put gives a complete file its name, durably.
func put(part, name string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
