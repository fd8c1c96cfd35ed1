package store_test

import (
	"database/sql"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"parley/internal/postgrestest"
	"parley/internal/store"
	"parley/internal/store/sqldb"
)

// TestPostgres runs the whole suite on PostgreSQL, and looks at the plans of all statements that ran.
func TestPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	var ran statements
	runSuite(t, func(t *testing.T) *store.DB {
		db, err := store.OpenNarrow(t.Context(), server.Schema(t), ran.trace)
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
	t.Run("plans", func(t *testing.T) { checkPostgresPlans(t, &ran, server.Schema(t)) })
}

// TestPostgresTables compares the tables of both databases, except those that only several nodes or only a file need.
func TestPostgresTables(t *testing.T) {
	server := postgrestest.Start(t)
	texts := func(driver, address string) func(string) ([]string, error) {
		return func(query string) (found []string, err error) {
			db, err := sql.Open(driver, address)
			if err != nil {
				return nil, err
			}
			defer db.Close()
			rows, err := db.Query(query)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var text string
				if err := rows.Scan(&text); err != nil {
					return nil, err
				}
				found = append(found, text)
			}
			return found, rows.Err()
		}
	}
	address, path := server.Schema(t), filepath.Join(t.TempDir(), "parley.db")
	for _, where := range []string{address, path} {
		db, err := store.Open(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	postgrestest.CompareTables(t, texts("sqlite", "file:"+path), texts("pgx", address), "cluster", "node", "shard", "log", "moved", "change")
}

// TestIndexesOfOldTablesAreApart: only a migration of indexes alone makes them while others write.
func TestIndexesOfOldTablesAreApart(t *testing.T) {
	files, err := fs.Glob(store.Migrations, "postgres/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(store.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		if sqldb.Indexes(string(text)) != nil {
			continue
		}
		for _, index := range regexp.MustCompile(`INDEX \w+ ON (\w+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(text), "CREATE TABLE "+index[1]+" (") {
				t.Errorf("%s makes an index of the table %s, which exists: give it a migration that makes indexes only", name, index[1])
			}
		}
	}
}
