package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/store"
)

// TestSQLite runs everything with a single connection for reading: no call may need two at a time. With several, as
// many such calls as there are connections would wait for each other. Then it looks at the plans of all statements that ran.
func TestSQLite(t *testing.T) {
	var ran statements
	runSuite(t, func(t *testing.T) *store.DB {
		db, err := store.OpenNarrow(t.Context(), filepath.Join(t.TempDir(), "parley.db"), ran.trace)
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
	t.Run("plans", func(t *testing.T) { checkSQLitePlans(t, &ran) })
}

// TestSQLiteInMemory runs what a database in memory could do otherwise: the statements are the same, and so
// are those who carry them out.
func TestSQLiteInMemory(t *testing.T) {
	in := func(t *testing.T) *store.DB { return open(t, "memory:"+strings.ReplaceAll(t.Name(), "/", "_")) }
	runSuite(t, in, "messages", "transactions", "events")
}

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// addMain adds the channel that the messages of tests are on.
func addMain(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "main", Network: parley.Sandbox})
	}); err != nil {
		t.Fatal(err)
	}
}
