package sqldb

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/internal/wait"
)

// migration is one version of the tables.
type migration struct {
	version int
	name    string
}

// listMigrations returns the migrations in order.
func listMigrations(migrations fs.FS, database string) ([]migration, error) {
	names, err := fs.Glob(migrations, database+"/*.sql") // sorted
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

// migrate applies the missing migrations, each in its own transaction. A new database, which nobody uses yet, gets all in one. A crash
// leaves the database at a whole version.
func migrate(ctx context.Context, c *Conn, o Options) error {
	unlock, err := c.write.lockMigrations(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer unlock()
	all, err := listMigrations(o.Migrations, c.write.dialect().migrations)
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
	if err := checkEarly(at, all, o.Path); err != nil {
		return err
	}
	if n := len(all); n > 0 && at > all[n-1].version {
		return refuseNewer(c, at, all[n-1].version)
	}
	if at == 0 {
		return inTransaction(c, func() error { return applyAll(c, o.Migrations, all) })
	}
	for _, m := range all {
		if m.version <= at {
			continue
		}
		text, err := fs.ReadFile(o.Migrations, m.name)
		if err != nil {
			return err
		}
		progress(ctx, "Changing the tables: "+m.name)
		err = apply(ctx, c, m.version, string(text))
		for ; isLockTimeout(err) && ctx.Err() == nil; err = apply(ctx, c, m.version, string(text)) {
			c.broken = nil
			progress(ctx, "Changing the tables: "+m.name+" waits for a lock that another session holds, perhaps a dump.")
			wait.Sleep(ctx, lockPause)
		}
		if err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

// lockPause is how long other sessions have the tables before a migration tries again to lock them.
const lockPause = 3 * time.Second

type progressKey struct{}

// WithProgress makes migrations report to f what they do, while a database is opened with the context.
func WithProgress(ctx context.Context, f func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

func progress(ctx context.Context, text string) {
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok {
		f(text)
	}
}

// Indexes returns the statements of a migration that only makes indexes; nil: it does something else. On PostgreSQL such a migration
// is not a transaction, and stops nobody.
func Indexes(text string) (statements []string) {
	for statement := range strings.SplitSeq(comments.ReplaceAllString(text, ""), ";") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if !makesIndex.MatchString(statement) {
			return nil
		}
		statements = append(statements, statement)
	}
	return statements
}

var (
	comments   = regexp.MustCompile(`--.*`)
	makesIndex = regexp.MustCompile(`^CREATE (UNIQUE )?INDEX `)
)

const currentVersion = `SELECT coalesce(max(version), 0) FROM schema_version`

// FileVersion reads the version of the database in a file, without changing it, and the last version of the migrations. A new
// file is at version 0. No other process may have the file open.
func FileVersion(ctx context.Context, file string, migrations fs.FS) (at, last int, err error) {
	all, err := listMigrations(migrations, "sqlite")
	if err != nil {
		return 0, 0, err
	}
	err = ReadFile(ctx, file, func(c *Conn) error {
		var tables int // 0: a new file
		err := c.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'`, nil, &tables)
		if err != nil || tables == 0 {
			return err
		}
		return c.QueryRow(currentVersion, nil, &at)
	})
	if err == nil {
		err = checkEarly(at, all, file)
	}
	return at, all[len(all)-1].version, err
}

// EarlyError says that the tables of a database are older than the first ones that the program knows.
type EarlyError struct{ Path string }

func (e *EarlyError) Error() string {
	return "The database " + e.Path + " is from before 1.0.0, the first release, and cannot be migrated: " +
		"start with an empty data directory or an empty PostgreSQL database."
}

func checkEarly(at int, all []migration, path string) error {
	if at > 0 && len(all) > 0 && at < all[0].version {
		return &EarlyError{Redacted(path)}
	}
	return nil
}

// refuseNewer refuses a database of a newer program. On PostgreSQL, where nodes are upgraded one by one, a newer database
// may say that it still serves this program.
func refuseNewer(c *Conn, at, known int) error {
	serves := at
	if query := c.write.dialect().serves; query != "" {
		if err := c.QueryRow(query, nil, &serves); err != nil {
			return fmt.Errorf("oldest program that the database serves: %w", err)
		}
	}
	if serves > known {
		return fmt.Errorf("the database is at version %d, this program knows only %d: run a newer one", at, known)
	}
	return nil
}

func apply(ctx context.Context, c *Conn, version int, text string) error {
	if indexes := Indexes(text); indexes != nil && c.IsPostgres() {
		if err := c.write.makeIndexes(ctx, indexes); err != nil {
			return err
		}
		text = ""
	}
	return inTransaction(c, func() error { return applyOnce(c, version, text) })
}

// applyOnce applies a migration, unless another process applied it meanwhile.
func applyOnce(c *Conn, version int, text string) error {
	var applied int
	err := c.QueryRow(`SELECT count(*) FROM schema_version WHERE version = $1`, []any{version}, &applied)
	if err != nil || applied > 0 {
		return err
	}
	if err := c.write.script(text); err != nil {
		return err
	}
	_, err = c.Exec(`INSERT INTO schema_version (version) VALUES ($1)`, version)
	return err
}

// applyAll applies all migrations to a new database.
func applyAll(c *Conn, migrations fs.FS, all []migration) error {
	for _, m := range all {
		text, err := fs.ReadFile(migrations, m.name)
		if err == nil {
			err = applyOnce(c, m.version, string(text))
		}
		if err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

func inTransaction(c *Conn, do func() error) (err error) {
	if err := c.begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.broken = nil
			c.Exec("ROLLBACK")
		}
	}()
	if err := do(); err != nil {
		return err
	}
	_, err = c.Exec("COMMIT")
	return err
}
