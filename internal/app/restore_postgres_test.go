package app

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/network/whatsapp"
	"parley/internal/postgrestest"
	"parley/internal/store"
	"parley/internal/token"
)

// TestPostgresRestore copies a database as pg_dump and pg_restore do, takes things away in the present one, and makes the copy safe.
func TestPostgresRestore(t *testing.T) {
	server := postgrestest.Start(t)
	ctx := t.Context()
	for name, lost := range map[string]bool{"with the database before": false, "without it": true} {
		t.Run(name, func(t *testing.T) {
			c := Config{DataDir: Dir(t.TempDir()), Database: server.Schema(t)}
			before := server.Schema(t)
			keyring, err := encrypt.OpenKeyFile(c.KeyFile())
			if err != nil {
				t.Fatal(err)
			}
			db, authority := openBoth(t, before, keyring)
			var raw [3]string
			for i, role := range []parley.Role{parley.Owner, parley.Owner, parley.Operator} {
				raw[i], err = authority.Issue(ctx, parley.Token{Kind: parley.AdminToken, Role: role})
				if err != nil {
					t.Fatal(err)
				}
			}
			_, session := parley.NewTicket(parley.SessionTicket, "", time.Now(), time.Hour)
			backup := func() error {
				dump := filepath.Join(t.TempDir(), "dump.db")
				_, err := store.CopyTo(ctx, before, dump)
				_, err2 := store.CopyTo(ctx, dump, c.Database)
				return errors.Join(err, err2)
			}
			audit := func(action string) error {
				return db.Tx(ctx, func(tx *store.Tx) error { return tx.AddAudit(ctx, store.AuditEntry{At: time.Now(), Action: action}) })
			}
			err = errors.Join(db.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, session) }),
				audit("before"), backup(), audit("after"))
			revoked, err2 := authority.Verify(ctx, raw[0])
			demoted, err3 := authority.Verify(ctx, raw[1])
			err = errors.Join(err, err2, err3, authority.Revoke(ctx, revoked.ID), setRole(ctx, authority, demoted.ID, parley.Viewer))
			if err != nil {
				t.Fatal(err)
			}
			// Sessions of Signal, which the present database has used since.
			keys := strings.Split(c.Database, "search_path=")[1] + "_keys"
			if err := errors.Join(whatsapp.PrepareRestored(ctx, c.Database, quiet), // makes the tables
				server.Exec("SET session_replication_role = replica; INSERT INTO "+keys+".states "+
					"SELECT 1, kind, 'x', '' FROM generate_series(0, 9) kind"),
			); err != nil {
				t.Fatal(err)
			}

			known := before
			if lost {
				known = ""
			}
			r, err := RestorePostgres(ctx, c, known, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if r.Ended.Sessions != 1 || r.Compared == lost {
				t.Errorf("it says %+v", r)
			}
			if left, err := server.Query("SELECT count(*)::text FROM " + keys + ".states"); err != nil || left != "8" {
				t.Errorf("%s states are left, want all but sessions and sender keys: %v", left, err)
			}
			restored, authority := openBoth(t, c.Database, keyring)
			for i, want := range map[bool][3]parley.Role{false: {"", parley.Viewer, parley.Operator}, true: {}}[lost] {
				got, err := authority.Verify(ctx, raw[i])
				if got.Role != want || (err == nil) != (want != "") {
					t.Errorf("token %d is %q, want %q: %v", i, got.Role, want, err)
				}
			}
			entries, _, err := restored.Audit(ctx, store.AuditQuery{}, parley.Page{Limit: 10})
			if err != nil || entries[0].Action != "server.restore" || (len(entries) == 3) == lost {
				t.Errorf("audit log: %+v, %v", entries, err)
			}
		})
	}
}

func openBoth(t *testing.T, address string, keyring *encrypt.Keyring) (*store.DB, *token.Authority) {
	t.Helper()
	db, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := token.Open(t.Context(), db, keyring)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		authority.Close()
		db.Close()
	})
	return db, authority
}

func setRole(ctx context.Context, a *token.Authority, id parley.TokenID, role parley.Role) error {
	_, err := a.Update(ctx, id, func(k *parley.Token) { k.Role = role }, func(*store.Tx, parley.Token, parley.Token) error { return nil })
	return err
}
