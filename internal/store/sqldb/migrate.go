package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// migrate applies the migrations that were not applied yet, each in a transaction of its own, so
// that a crash leaves the database at one version or the next.
func migrate(ctx context.Context, c *sql.Conn, d Dialect, migrations fs.FS) error {
	names, err := fs.Glob(migrations, path.Join(d.Name, "*.sql")) // sorted
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)`); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	var at int
	if err := c.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&at); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	newest := 0
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("migration %s has no number", name)
		}
		newest = version
		if version <= at {
			continue
		}
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return err
		}
		if err := apply(ctx, c, d, version, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	if at > newest {
		return fmt.Errorf("the database is at version %d, this program knows only %d: run a newer one", at, newest)
	}
	return nil
}

func apply(ctx context.Context, c *sql.Conn, d Dialect, version int, text string) (err error) {
	if _, err := c.ExecContext(ctx, d.begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.ExecContext(ctx, d.rollback)
		}
	}()
	var there int // another process may have applied it while we waited for the lock
	if err := c.QueryRowContext(ctx, `SELECT count(*) FROM schema_version WHERE version = $1`, version).Scan(&there); err != nil {
		return err
	}
	if there == 0 {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, version); err != nil {
			return err
		}
	}
	_, err = c.ExecContext(ctx, d.commit)
	return err
}
