package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

func TestBackupIsASnapshot(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "parley.db"), filepath.Join(dir, "backup.db")
	db := open(t, path)
	addMain(t, db)
	first, second := benchText(1), benchText(2)
	first.CreatedAt = time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)
	add := func(m *parley.Message) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddMessage(t.Context(), m) }); err != nil {
			t.Fatal(err)
		}
	}
	add(&first)
	addRemote(t, db)
	var done, total int64
	if err := store.Backup(t.Context(), db, backup, func(d, n int64) { done, total = d, n }); err != nil {
		t.Fatal(err)
	}
	if size, err := db.Size(t.Context()); err != nil || done != total || total != size || size == 0 {
		t.Errorf("%d of %d bytes copied, the size is %d: %v", done, total, size, err)
	}
	add(&second)
	restored := open(t, backup)
	if err := restored.Check(t.Context()); err != nil {
		t.Error(err)
	}
	checkRemote(t, "backup", restored)
	got, err := restored.Message(t.Context(), first.Channel, first.Ref())
	if err != nil || !got.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("first: %+v, %v", got, err)
	}
	if _, err := restored.Message(t.Context(), second.Channel, second.Ref()); err != parley.ErrNotFound {
		t.Errorf("second: %v", err)
	}
}
