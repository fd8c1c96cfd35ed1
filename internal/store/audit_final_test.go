package store

import (
	"path/filepath"
	"testing"

	"parley"
)

// TestAuditIsAppendOnly: the database itself refuses to change an entry.
func TestAuditIsAppendOnly(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	entry := AuditEntry{Action: "channel.create", Object: "main"}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.AddAudit(t.Context(), entry) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.exec(`UPDATE audit SET object = 'other'`) }); err == nil {
		t.Error("an entry was changed")
	}
	entries, _, err := db.Audit(t.Context(), AuditQuery{}, parley.Page{Limit: 10})
	if err != nil || len(entries) != 1 || entries[0].Object != "main" {
		t.Errorf("entries: %v, %v", entries, err)
	}
}
