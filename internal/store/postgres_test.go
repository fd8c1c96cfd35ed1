package store_test

import (
	"database/sql"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"parley/internal/postgrestest"
	"parley/internal/store"
)

// TestPostgres runs the whole suite on PostgreSQL.
func TestPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	runSuite(t, func(t *testing.T) *store.DB {
		db, err := store.Open(t.Context(), server.Schema(t))
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
}

// TestPostgresTables compares the tables of both databases, column by column, except those that only several nodes need.
func TestPostgresTables(t *testing.T) {
	server := postgrestest.Start(t)
	address := server.Schema(t)
	path := filepath.Join(t.TempDir(), "parley.db")
	for _, where := range []string{address, path} {
		db, err := store.Open(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	type column struct {
		Name     string
		Type     string
		Nullable bool
	}
	types := map[string]string{"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB"}
	read := func(driver, address, query string, scan func(rows *sql.Rows) (table string, c column, err error)) map[string][]column {
		db, err := sql.Open(driver, address)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all := map[string][]column{}
		for rows.Next() {
			table, c, err := scan(rows)
			if err != nil {
				t.Fatal(err)
			}
			all[table] = append(all[table], c)
		}
		if err := rows.Err(); err != nil || len(all) < 20 {
			t.Fatalf("%d tables, %v", len(all), err)
		}
		return all
	}
	inSQLite := read("sqlite", "file:"+path, `SELECT m.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0 FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT IN ('sqlite_sequence', 'schema_version') ORDER BY m.name, c.name`, func(rows *sql.Rows) (table string, c column, err error) {
		return table, c, rows.Scan(&table, &c.Name, &c.Type, &c.Nullable)
	})
	inPostgres := read("pgx", address, `SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name NOT IN ('schema_version', 'schema_serves', 'cluster', 'node', 'shard')
		AND column_name <> 'last_event' ORDER BY table_name, column_name`, func(rows *sql.Rows) (table string, c column, err error) {
		err = rows.Scan(&table, &c.Name, &c.Type, &c.Nullable)
		c.Type = types[c.Type]
		return table, c, err
	})
	for table := range maps.Keys(inSQLite) {
		if !slices.Equal(inSQLite[table], inPostgres[table]) {
			t.Errorf("%s:\nSQLite:     %v\nPostgreSQL: %v", table, inSQLite[table], inPostgres[table])
		}
	}
	if len(inPostgres) != len(inSQLite) {
		t.Errorf("PostgreSQL has %d tables, SQLite %d", len(inPostgres), len(inSQLite))
	}
}
