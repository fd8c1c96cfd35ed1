package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"parley/internal/postgrestest"
	"parley/internal/store"
)

var remoteSum = make([]byte, 32)

// addRemote stores one row of everything that a network with ids of its own needs.
func addRemote(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.BeginRemoteSend(t.Context(), main, "A1", ann, start, false); err != nil {
			return err
		}
		if err := tx.SetRemoteFile(t.Context(), main, remoteSum, "77", start.Add(time.Hour)); err != nil {
			return err
		}
		c := store.RemoteContact{Contact: ann, UserID: "ID.1", Inbound: "wamid.1", InboundAt: start}
		return tx.AddRemoteInbound(t.Context(), main, "WA1", c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkRemote expects what addRemote stored.
func checkRemote(t *testing.T, where string, db *store.DB) {
	t.Helper()
	send, err := db.RemoteSend(t.Context(), main, "A1")
	if err != nil || !send.AttemptAt.Equal(start) {
		t.Errorf("%s: the attempt is %+v, %v", where, send, err)
	}
	if m, err := db.RemoteMessage(t.Context(), main, "wamid.1"); err != nil || m != (store.RemoteMessage{ID: "WA1", Contact: ann}) {
		t.Errorf("%s: the message is %+v, %v", where, m, err)
	}
	if c, err := db.RemoteUser(t.Context(), main, "ID.1"); err != nil || c.Contact != ann || !c.InboundAt.Equal(start) {
		t.Errorf("%s: the contact is %+v, %v", where, c, err)
	}
	if file, err := db.RemoteFile(t.Context(), main, remoteSum, start); err != nil || file != "77" {
		t.Errorf("%s: the file is %q, %v", where, file, err)
	}
}

// TestPostgresCopyOfRemote moves what a network calls things to PostgreSQL and back.
func TestPostgresCopyOfRemote(t *testing.T) {
	address := postgrestest.Start(t).Schema(t)
	dir := t.TempDir()
	from, back := filepath.Join(dir, "parley.db"), filepath.Join(dir, "back.db")
	db := open(t, from)
	addMain(t, db)
	addRemote(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{{from, address}, {address, back}} {
		if _, err := store.CopyTo(t.Context(), step[0], step[1]); err != nil {
			t.Fatal(err)
		}
		copied, err := store.Open(t.Context(), step[1])
		if err != nil {
			t.Fatal(err)
		}
		checkRemote(t, step[1], copied)
		if err := copied.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
