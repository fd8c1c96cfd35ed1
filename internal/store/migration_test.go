package store

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"parley"
	"parley/internal/store/sqldb"
)

// openAt makes a database as it was before a migration, for the statements of a test.
func openAt(t *testing.T, path, before string, statements ...string) {
	t.Helper()
	o, err := options(path)
	if err != nil {
		t.Fatal(err)
	}
	old := fstest.MapFS{}
	files, err := fs.Glob(o.Migrations, "sqlite/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if name >= "sqlite/"+before {
			continue
		}
		data, err := fs.ReadFile(o.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		old[name] = &fstest.MapFile{Data: data}
	}
	o.Migrations = old
	db, err := sqldb.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(s)
			return err
		}); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestKnownContactsOfAnOlderStore upgrades a store in which people wrote, got messages and approved codes.
func TestKnownContactsOfAnOlderStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	message := func(seq, fromMe, urgent string) string {
		return `INSERT INTO message (seq, channel, chat, id, from_me, kind, reply_to, request, urgent, pool, expires_at, created_at, body)
			VALUES (` + seq + `, 'main', ` + seq + `, 'A` + seq + `', ` + fromMe + `, 'text', '', '', ` + urgent + `, '', 0, 0, '')`
	}
	statements := []string{
		`INSERT INTO channel (code, name, network, number, phone_name, enabled, settings, created_at, status, reason, since, working_at)
			VALUES ('main', '', 'sandbox', '', '', 1, '{}', 0, '', '', 0, 0)`,
		message("1", "0", "0"), message("2", "1", "0"), message("3", "1", "1"), message("4", "1", "0"), message("5", "1", "1"),
		`INSERT INTO history (chat, ordinal, seq) VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), (5, 1, 5)`,
		`UPDATE filed SET seq = 5`,
		message("6", "0", "0"), message("7", "1", "0"), // not filed yet
		`INSERT INTO status (seq, status, updated_at) VALUES (2, 2, 0), (3, 2, 0), (4, 5, 0), (5, 1, 0), (7, 1, 0)`,
		`INSERT INTO otp_code (contact, channel, id, hash, status, tries, created_at, expires_at, ended_at)
			VALUES ('5@c.us', 'main', 'otc_5', x'00', 1, 0, 0, 0, 0), ('3@c.us', 'main', 'otc_3', x'00', 3, 0, 0, 0, 0)`,
	}
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		statements = append(statements, `INSERT INTO chat (id, contact, channel, messages, last_at) VALUES (`+id+`, '`+id+`@c.us', 'main', 1, 0)`)
	}
	openAt(t, path, "0013_otp_attack.sql", statements...)
	db, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for contact, want := range map[string]bool{
		"1@c.us": true, "2@c.us": true, "3@c.us": false, "4@c.us": false, "5@c.us": true, "6@c.us": true, "7@c.us": true, "8@c.us": false,
	} {
		if known, err := db.KnowsContact(t.Context(), "main", parley.ContactID(contact)); err != nil || known != want {
			t.Errorf("%s is known: %t, %v", contact, known, err)
		}
	}
}

// TestAuditIsAppendOnly: the database itself refuses to change an entry.
func TestAuditIsAppendOnly(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	entry := parley.AuditEntry{Action: "channel.create", Object: "main"}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.AddAudit(t.Context(), entry) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.exec(`UPDATE audit SET object = 'other'`) }); err == nil {
		t.Error("an entry was changed")
	}
	entries, _, err := db.Audit(t.Context(), parley.AuditQuery{}, parley.Page{Limit: 10})
	if err != nil || len(entries) != 1 || entries[0].Object != "main" {
		t.Errorf("entries: %v, %v", entries, err)
	}
}
