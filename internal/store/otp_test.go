package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// TestLedgerOfADeletedChannel has another process delete a channel whose codes this one remembers.
func TestLedgerOfADeletedChannel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	here, there := open(t, path), open(t, path)
	defer here.Close()
	defer there.Close()
	const contact = parley.ContactID("6281100000001@c.us")
	within := func(db *store.DB, do func(tx parley.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	code := parley.OTPCode{ID: parley.NewCodeID(), Channel: "main", Contact: contact, Hash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}
	known := func(tx parley.Tx) bool {
		l, err := tx.Ledger(t.Context(), "main", contact)
		if err != nil {
			t.Error(err)
		}
		return l.Code.ID != ""
	}
	within(here, func(tx parley.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "main", Network: parley.Sandbox})
	})
	within(here, func(tx parley.Tx) error { return tx.PutLedger(t.Context(), parley.OTPLedger{Code: code}) })
	within(here, func(tx parley.Tx) error {
		if !known(tx) {
			t.Error("the code is not known")
		}
		return nil
	})
	within(there, func(tx parley.Tx) error {
		_, err := tx.DeleteChannel(t.Context(), "main")
		return err
	})
	within(here, func(tx parley.Tx) error {
		if known(tx) {
			t.Error("the code of a channel that another process deleted is still known")
		}
		return nil
	})
}
