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
	copyStep    = 256              // pages (1 MiB) between two checks of the context
	copyTimeout = 10 * time.Second // how long a copy waits for an exclusive lock on the database
)

// CopyTo writes a snapshot of the database to a new file while others read and write. It calls progress, which may be nil,
// with the bytes copied and the total.
func (db *DB) CopyTo(ctx context.Context, to string, progress func(done, total int64)) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s already exists", to)
	}
	if db.writer.IsPostgres() {
		return errors.New("the database is PostgreSQL: back it up with pg_dump or with your provider's tools")
	}
	from, err := db.ownConnection(ctx)
	if err != nil {
		return err
	}
	defer from.close()
	return copyChecked(ctx, from, to, progress)
}

// CopyFile is [DB.CopyTo] for a database in a file that is not open here.
func CopyFile(ctx context.Context, from, to string, progress func(done, total int64)) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	source, err := openConnection(address(from, nil), sqlite.OpenReadWrite, fmt.Sprintf("busy_timeout(%d)", copyTimeout.Milliseconds()))
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer source.close()
	source.interruptWith(ctx)
	return copyChecked(ctx, source, to, progress)
}

// copyChecked copies the database behind a connection and checks the copy before it gets its name.
func copyChecked(ctx context.Context, from *connection, to string, progress func(done, total int64)) error {
	part := to + ".part"
	defer os.Remove(part) // not found after success
	if err := copyFile(ctx, from, part, progress); err != nil {
		return err
	}
	c, err := openFile(ctx, part)
	if err != nil {
		return err
	}
	defer c.close()
	if err := check(c, "quick_check(1)"); err != nil {
		return err
	}
	return renameDurably(part, to)
}

// copyFile copies the database behind a connection to a file, which it replaces.
func copyFile(ctx context.Context, from *connection, to string, progress func(done, total int64)) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := create(to); err != nil {
		return err
	}
	// The transaction makes the copy a snapshot. Without it, every commit of others would restart the copy.
	if _, err := from.exec("BEGIN", nil); err != nil {
		return err
	}
	defer func() {
		from.conn.SetInterrupt(nil) // the rollback must run even if ctx has ended
		from.exec("ROLLBACK", nil)
	}()
	var pages, pageSize int64
	if err := from.queryRow("PRAGMA page_count", nil, []any{&pages}); err != nil { // the first read fixes the snapshot
		return err
	}
	if err := from.queryRow("PRAGMA page_size", nil, []any{&pageSize}); err != nil {
		return err
	}
	// No journal and no fsync: the copy has no name before it is complete, and renameDurably syncs once.
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

// openFile opens a database for reading only, which creates no side files beside a backup.
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

// renameDurably gives a complete file its name.
func renameDurably(part, name string) error {
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

// ReadFile reads from a database file of any version without changing it. No other process may have it open.
func ReadFile(ctx context.Context, path string, read func(*Conn) error) error {
	c, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer c.close()
	return read(c.asConn())
}
