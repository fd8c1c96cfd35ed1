package sqldb

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// migration is one step of the tables' history.
type migration struct {
	version int
	name    string
}

// listMigrations returns the migrations in order.
func listMigrations(migrations fs.FS) ([]migration, error) {
	names, err := fs.Glob(migrations, "sqlite/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number", name)
		}
		if n := len(all); n > 0 && all[n-1].version == version {
			return nil, fmt.Errorf("the migrations %s and %s have the same number", all[n-1].name, name)
		}
		all = append(all, migration{version, name})
	}
	return all, nil
}

// migrate applies the migrations that were not applied yet, each in a transaction of its own, so
// that a crash leaves the database at one version or the next.
func migrate(c *Conn, o Options) error {
	migrations := o.Migrations
	all, err := listMigrations(migrations)
	if err != nil {
		return err
	}
	if _, err := c.Exec(`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)`); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	var at int
	if err := c.QueryRow(currentVersion, nil, &at); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := refuseNewer(at, all); err != nil {
		return err
	}
	for _, m := range all {
		if m.version <= at {
			continue
		}
		text, err := fs.ReadFile(migrations, m.name)
		if err != nil {
			return err
		}
		if err := apply(c, m.version, string(text), o.Upgrade); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

const currentVersion = `SELECT coalesce(max(version), 0) FROM schema_version`

func refuseNewer(at int, known []migration) error {
	newest := 0
	for _, m := range known {
		newest = max(newest, m.version)
	}
	if at > newest {
		return fmt.Errorf("the database is at version %d, this program knows only %d: run a newer one", at, newest)
	}
	return nil
}

// checkVersion makes sure that a database is one of ours and not newer than we are.
func checkVersion(c *connection, migrations fs.FS) error {
	all, err := listMigrations(migrations)
	if err != nil {
		return err
	}
	var at int
	if err := c.queryRow(currentVersion, nil, []any{&at}); err != nil || at == 0 {
		return errors.New("this is not a database of this program")
	}
	return refuseNewer(at, all)
}

func apply(c *Conn, version int, text string, upgrade func(*Conn, int) error) (err error) {
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.broken = nil
			c.Exec("ROLLBACK")
		}
	}()
	var there int // another process may have applied it while we waited for the lock
	if err := c.QueryRow(`SELECT count(*) FROM schema_version WHERE version = $1`, []any{version}, &there); err != nil {
		return err
	}
	if there == 0 {
		if err := c.own.script(text); err != nil {
			return err
		}
		if upgrade != nil {
			if err := upgrade(c, version); err != nil {
				return err
			}
		}
		if _, err := c.Exec(`INSERT INTO schema_version (version) VALUES ($1)`, version); err != nil {
			return err
		}
	}
	_, err = c.Exec("COMMIT")
	return err
}
