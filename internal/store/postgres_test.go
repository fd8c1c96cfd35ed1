package store_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"parley"
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

// TestPostgresCountersWait: while a snapshot is held, a row that each commit changes makes the next one slower.
func TestPostgresCountersWait(t *testing.T) {
	address := postgrestest.Start(t).Schema(t)
	written, commits := 0, 50
	db, err := store.OpenNarrow(t.Context(), address, func(query string, _ []any) {
		if strings.HasPrefix(query, "INSERT INTO counter_minute") || strings.HasPrefix(query, "UPDATE channel SET last_received_at") {
			written++ // for one channel, for all channels, and when it last received
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range commits + 1 {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			if i == 0 {
				return tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Network: parley.Sandbox})
			}
			m := parley.Message{Channel: "demo", Chat: ann, ID: parley.MessageID(strconv.Itoa(i)), Content: parley.Text{Body: "Hi"},
				Status: parley.Received, CreatedAt: start}
			return errors.Join(tx.ReceiveMessage(t.Context(), &m, true),
				tx.AddEvent(t.Context(), &parley.Event{Type: parley.MessageReceived, Channel: "demo", At: start, Message: &m}))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if most := 3 * (2 + int(time.Since(began)/time.Second)); written > most {
		t.Errorf("%d rows were written for %d commits in %s", written, commits, time.Since(began))
	}
	for range 2 { // before they are read, and when the store is closed
		counts, err := db.Counters(t.Context(), time.Now().Add(-time.Hour))
		if err != nil || counts[store.CountReceived] != int64(commits) {
			t.Errorf("counted %v: %v", counts, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = store.Open(t.Context(), address); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
}
