package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
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
	from, err := db.ownConnection(ctx)
	if err != nil {
		return err
	}
	defer from.close()
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
	source, err := openConnection(address(from, nil), sqlite.OpenReadWrite, fmt.Sprintf("busy_timeout(%d)", copyPatience.Milliseconds()))
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer source.close()
	source.interruptWith(ctx)
	part := to + ".part"
	defer os.Remove(part) // it is gone if all went well
	if err := copyFile(ctx, source, part, progress); err != nil {
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
	source, err := openFile(ctx, from)
	if err != nil {
		return err
	}
	defer source.close()
	part := o.Path + ".part"
	defer os.Remove(part) // it is gone if all went well
	if err := copyFile(ctx, source, part, progress); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	known := func(c *connection) error { return checkVersion(c, o.Migrations) }
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
func copyFile(ctx context.Context, from *connection, to string, progress func(done, total int64)) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := create(to); err != nil {
		return err
	}
	// Inside a transaction the copy is of one moment. Without it, every commit of others would make it
	// begin anew.
	if _, err := from.exec("BEGIN", nil); err != nil {
		return err
	}
	defer func() {
		from.conn.SetInterrupt(nil) // it must be undone also when ctx is over
		from.exec("ROLLBACK", nil)
	}()
	var pages, pageSize int64
	if err := from.queryRow("PRAGMA page_count", nil, []any{&pages}); err != nil { // the moment: the first look at the file
		return err
	}
	if err := from.queryRow("PRAGMA page_size", nil, []any{&pageSize}); err != nil {
		return err
	}
	// No journal and no waiting for the disk: the copy counts only when it is complete, and put
	// waits once.
	target, err := openConnection(address(to, nil), sqlite.OpenReadWrite, "journal_mode(OFF)", "synchronous(OFF)")
	if err != nil {
		return err
	}
	b, err := sqlite.NewBackup(target.conn, "main", from.conn, "main")
	if err != nil {
		return errors.Join(err, target.close())
	}
	return errors.Join(copyPages(ctx, b, pageSize, progress), b.Close(), target.close())
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
func inspect(ctx context.Context, path, pragma string, further func(*connection) error) error {
	c, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer c.close()
	if err := check(c, pragma+"(1)"); err != nil || further == nil {
		return err
	}
	return further(c)
}

// openFile opens a database for reading only, so that no side files come to lie beside a backup.
func openFile(ctx context.Context, path string) (*connection, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	query := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		query.Set("immutable", "1")
	}
	c, err := openConnection(address(path, query), sqlite.OpenReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c.interruptWith(ctx)
	return c, nil
}

// claim makes sure that nobody has the database open: only then its log can be taken away. A file
// that cannot be read as a database is nobody's.
func claim(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	c, err := openConnection(address(path, nil), sqlite.OpenReadWrite)
	if err != nil {
		return nil // it is no database
	}
	defer c.close()
	c.conn.SetBusyTimeout(0)
	var mode string
	if err := c.queryRow("PRAGMA journal_mode = DELETE", nil, []any{&mode}); resultCode(err) == sqlite.ResultBusy {
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

// ReadFile reads from the database in a file, of whatever version, without changing it. Nobody else may have it
// open.
func ReadFile(ctx context.Context, path string, read func(*Conn) error) error {
	c, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer c.close()
	return read(&Conn{own: c, observe: func(error) {}})
}
