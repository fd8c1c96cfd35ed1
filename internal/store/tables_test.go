package store

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/store/sqldb"
)

// firstRows are the rows of a new database.
const firstRows = `
INSERT INTO revision (counter) VALUES (0);
INSERT INTO log (number) VALUES (abs(random()) % 16777216);
INSERT INTO clock (at) VALUES (0);
`

// TestNewTables compares a new database with one that all migrations made.
func TestNewTables(t *testing.T) {
	const file = "migrations/sqlite.sql"
	o, err := options(filepath.Join(t.TempDir(), "migrated.db"))
	if err != nil {
		t.Fatal(err)
	}
	migrations := fstest.MapFS{}
	for _, name := range must(fs.Glob(o.Migrations, "sqlite/*.sql"))(t) {
		migrations[name] = &fstest.MapFile{Data: must(fs.ReadFile(o.Migrations, name))(t)}
	}
	o.Migrations = migrations
	migrated := dump(t, o)

	text := []byte("-- The tables of a new database, as the migrations make them. After a new migration run\n" +
		"-- PARLEY_UPDATE=1 go test ./internal/store -run TestNewTables\n\n" + strings.Join(migrated.tables, ";\n\n") + ";\n" + firstRows)
	if os.Getenv("PARLEY_UPDATE") != "" {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(must(os.ReadFile(file))(t), text) {
		t.Fatalf("%s is not what the migrations make. Run the test with PARLEY_UPDATE=1.", file)
	}
	migrations["sqlite.sql"] = &fstest.MapFile{Data: text}
	o.Path = filepath.Join(t.TempDir(), "new.db")
	created := dump(t, o)
	if !slices.Equal(created.tables, migrated.tables) {
		t.Errorf("the tables differ:\n%s\n%s", created.tables, migrated.tables)
	}
	if !slices.Equal(created.rows, migrated.rows) {
		t.Errorf("the rows differ:\n%s\n%s", created.rows, migrated.rows)
	}
}

// dumped is what a database contains.
type dumped struct {
	tables []string // statements that make the tables and indexes
	rows   []string // the number of the log is random and left out
}

func dump(t *testing.T, o sqldb.Options) (d dumped) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	err = sqldb.ReadFile(context.Background(), o.Path, func(c *sqldb.Conn) error {
		var names []string
		err := query(c, `SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY rowid`, func(row []string) {
			if row[0] == "table" && row[1] != "log" && row[1] != "sqlite_sequence" {
				names = append(names, row[1])
			}
			// The migrations' own table exists before, and SQLite makes its own.
			if row[2] != "" && row[1] != "schema_version" && !strings.HasPrefix(row[1], "sqlite_") {
				d.tables = append(d.tables, row[2])
			}
		})
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			var columns []string
			err := query(c, `SELECT name, '', '' FROM pragma_table_info('`+name+`')`, func(row []string) {
				columns = append(columns, row[0])
			})
			if err != nil {
				return err
			}
			err = query(c, `SELECT json_array(`+strings.Join(columns, ", ")+`), '', '' FROM `+name+` ORDER BY 1`, func(row []string) {
				d.rows = append(d.rows, name+" "+row[0])
			})
			if err != nil {
				return err
			}
		}
		return query(c, `SELECT 'log ' || removed_to, '', '' FROM log`, func(row []string) { d.rows = append(d.rows, row[0]) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// query calls each with the three columns of a row.
func query(c *sqldb.Conn, statement string, each func(row []string)) error {
	rows, err := c.Query(statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]string, 3)
		if err := rows.Scan(&row[0], &row[1], &row[2]); err != nil {
			return err
		}
		each(row)
	}
	return rows.Err()
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
