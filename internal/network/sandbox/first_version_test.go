package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store/sqldb"
)

// firstVersion makes a database of the first version with two messages and a number of bundles to Ayu, of two messages
// each. The last bundle has another copy of the first message.
func firstVersion(t *testing.T, path string, bundles int) {
	t.Helper()
	if postgrestest.Running() {
		t.Skip("the first version had only SQLite")
	}
	tables := fstest.MapFS{}
	for _, name := range []string{"sqlite/0001_tables.sql", "sqlite/0002_files.sql"} {
		text, err := fs.ReadFile(migrations, "migrations/"+name)
		must(t, err)
		tables[name] = &fstest.MapFile{Data: text}
	}
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Migrations: tables})
	must(t, err)
	defer db.Close()
	must(t, db.Write(t.Context(), func(tx *sqldb.Tx) error {
		for _, query := range []string{
			`INSERT INTO worlds (id, channel) VALUES (7, 'test')`,
			`INSERT INTO phones (id, world, number, name, delivered) VALUES (1, 7, '` + ayu + `', 'Ayu', 2)`,
			`INSERT INTO messages (seq, phone, from_phone, id, kind, body, reply_to, at, votes) VALUES
				(1, 1, 0, '3EB001', 'text', 'first', '', 1000, ''), (2, 1, 1, '3A01', 'text', 'answer', '3EB001', 1000, '')`,
		} {
			if _, err := tx.Exec(query); err != nil {
				return err
			}
		}
		seq := 2
		for i := range bundles {
			seq += 2
			body := bundled(1, "", "3EB0A"+fmt.Sprint(i), "text", strings.Repeat("a", i), "", "")
			if i < bundles-1 {
				body = bundled(1, string(body), "3EB0B"+fmt.Sprint(i), "location", "Toko", `{"latitude":"-6.2","longitude":"106.8"}`, "3EB001")
			} else {
				body = bundled(1, string(body), "3EB001", "text", "first", "", "")
			}
			if _, err := tx.Exec(`INSERT INTO bundles (seq, at, body) VALUES ($1, $2, $3)`, seq, 2000+i, body); err != nil {
				return err
			}
		}
		return nil
	}))
}

// bundled appends a message to a bundle.
func bundled(phone uint64, bundle string, parts ...string) []byte {
	body := binary.AppendUvarint([]byte(bundle), phone)
	for _, part := range parts {
		body = append(binary.AppendUvarint(body, uint64(len(part))), part...)
	}
	return body
}

func expectUnpacked(t *testing.T, n *Network, bundles int) {
	t.Helper()
	all := chatAfter(t, n, ayu, "")
	if want := 2 + 2*bundles - 1; len(all) != want {
		t.Fatalf("the phone shows %d messages, want %d", len(all), want)
	}
	first := all[0]
	if first.Body != "first" || first.Copies != 2 || first.Status != parley.Delivered {
		t.Errorf("the first one is %+v", first)
	}
	for i := range bundles {
		m := all[2+2*i]
		if m.Cursor != cursorAt(int64(3+2*i)) || len(m.Body) != i || m.At.UnixMilli() != int64(2000+i) || m.Status != parley.Sent {
			t.Errorf("message %d of bundle %d is %+v", 0, i, m)
		}
	}
	place := all[3]
	if content, ok := place.Content.(parley.Location); !ok || content.Latitude != "-6.2" || place.Body != "Toko" || place.ReplyTo != "3EB001" {
		t.Errorf("the location is %+v", place)
	}
	if number := numberOf(t, n, "test"); number != "99900000007" {
		t.Errorf("the channel's number is %s", number)
	}
	var tables int
	must(t, n.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'bundles'`, nil, &tables))
	if tables != 0 {
		t.Error("the table of the bundles is still there")
	}
	if last, err := n.Cursor(t.Context(), "test"); err != nil || last != cursorAt(int64(2+2*bundles)) {
		t.Errorf("the newest position is %s (%v)", last, err)
	}
}

func TestFirstVersionIsUnpacked(t *testing.T) {
	const bundles = 150 // more than one transaction moves
	path := filepath.Join(t.TempDir(), "sandbox.db")
	firstVersion(t, path, bundles)
	for range 2 {
		n := openNetwork(t, path)
		expectUnpacked(t, n, bundles)
		must(t, n.Close())
	}
}

// TestUnpackingGoesOnAfterACrash ends the move after its first transaction.
func TestUnpackingGoesOnAfterACrash(t *testing.T) {
	const bundles = 150
	path := filepath.Join(t.TempDir(), "sandbox.db")
	firstVersion(t, path, bundles)
	tables, err := fs.Sub(migrations, "migrations")
	must(t, err)
	db, err := sqldb.Open(context.Background(), sqldb.Options{Path: path, Migrations: tables})
	must(t, err)
	must(t, db.Write(t.Context(), func(tx *sqldb.Tx) error {
		if more, err := unpackBundles(tx); err != nil || !more {
			t.Errorf("it ended with %t, %v", more, err)
		}
		return nil
	}))
	must(t, db.Close())
	expectUnpacked(t, openNetwork(t, path), bundles)
}

func TestDamagedBundle(t *testing.T) {
	whole := bundled(1<<40, "", "3EB0A", "text", strings.Repeat("long", 100), "", "")
	if list, err := (bundle{body: whole}).messages(); err != nil || len(list) != 1 || list[0].phone != 1<<40 || list[0].parts[3] != "" {
		t.Errorf("the bundle has %+v (%v)", list, err)
	}
	for cut := 1; cut < len(whole); cut++ {
		if list, err := (bundle{body: whole[:cut]}).messages(); err == nil {
			t.Errorf("%d of %d bytes hold %+v", cut, len(whole), list)
		}
	}
}
