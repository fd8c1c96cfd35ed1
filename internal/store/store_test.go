package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) parley.Store { return open(t, filepath.Join(t.TempDir(), "parley.db")) })
}

func TestSQLiteInMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) parley.Store { return open(t, "memory:"+strings.ReplaceAll(t.Name(), "/", "_")) })
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
