package keystore

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

var (
	victim   = types.NewJID("6281211112222", types.DefaultUserServer)
	attacker = types.NewJID("900000000001", types.HiddenUserServer)
	real     = types.NewJID("900000000002", types.HiddenUserServer)
)

func lidOf(t *testing.T, d *store.Device, number types.JID) types.JID {
	t.Helper()
	lid, err := d.LIDs.GetLIDForPN(t.Context(), number)
	must(t, err)
	return lid
}

// TestAddressesAreOfOneDevice tells one device a wrong address of somebody. Another device does not learn it, neither
// where it knows no address nor where it knows the right one, and neither from memory nor from the file.
func TestAddressesAreOfOneDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	s := open(t, path)
	one, other := linked(t, s, number), linked(t, s, friend)
	for range 2 {
		must(t, one.LIDs.PutLIDMapping(t.Context(), attacker, victim))
		if got := lidOf(t, other, victim); !got.IsEmpty() {
			t.Errorf("the other device writes to %s", got)
		}
		if got, err := other.LIDs.GetPNForLID(t.Context(), attacker); !got.IsEmpty() || err != nil {
			t.Errorf("the other device takes the sender for %s (%v)", got, err)
		}
		must(t, s.Close())
		s = open(t, path)
		one, other = again(t, s, number), again(t, s, friend)
	}
	must(t, other.LIDs.PutLIDMapping(t.Context(), real, victim))
	must(t, one.LIDs.PutLIDMapping(t.Context(), attacker, victim))
	if got := lidOf(t, other, victim); got != real {
		t.Errorf("the other device writes to %s", got)
	}
	if got := lidOf(t, one, victim); got != attacker {
		t.Errorf("the first device writes to %s", got)
	}
	must(t, s.Forget(t.Context(), number))
	var left int
	must(t, s.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM people`, nil, &left))
	if left != 1 {
		t.Errorf("%d addresses are left after one of two devices went", left)
	}
}

// TestAddressesOfAnOlderStore gives each device the addresses of those whom it has sessions with.
func TestAddressesOfAnOlderStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	first, err := fs.ReadFile(embedded, "migrations/sqlite/0001_first.sql")
	must(t, err)
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Migrations: fstest.MapFS{"sqlite/0001_first.sql": {Data: first}}})
	must(t, err)
	device := func(id, jid string) string {
		return `INSERT INTO devices VALUES (` + id + `, '` + jid + `', '', 1, zeroblob(32), zeroblob(32), zeroblob(32), 1, zeroblob(64), x'', x'', '', '', '', 0, '')`
	}
	for _, statement := range []string{
		device("1", number.String()), device("2", friend.String()),
		`INSERT INTO people VALUES ('` + real.User + `', '` + victim.User + `'), ('` + attacker.User + `', '6281233334444')`,
		`INSERT INTO states VALUES (1, 1, '` + real.User + `_1:0', x'00'), (1, 1, '` + real.User + `_1:3', x'00'), (1, 2, '` + attacker.User + `_1:0', x'00'), (2, 1, '6281233334444:0', x'00')`,
		`INSERT INTO contacts (device, jid, full_name, push_name) VALUES (1, '` + real.User + `@lid', '', 'Her own'), (1, '` + number.User + `@s.whatsapp.net', 'Me', ''),
			(1, '6281200000001@s.whatsapp.net', 'Ann', ''), (1, '` + attacker.User + `@lid', 'Nobody', '')`,
	} {
		must(t, db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(statement); return err }))
	}
	must(t, db.Close())
	s := open(t, path)
	one, other := again(t, s, number), again(t, s, friend)
	if got := lidOf(t, one, victim); got != real {
		t.Errorf("the device that had a session knows %q", got)
	}
	if got := lidOf(t, other, victim); !got.IsEmpty() {
		t.Errorf("a device without one knows %s", got)
	}
	var all int
	must(t, s.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM people`, nil, &all))
	if all != 1 {
		t.Errorf("%d addresses are kept", all)
	}
	listed, total, err := one.LIDs.(ContactList).ListContacts(t.Context(), 10, 0)
	must(t, err)
	if want := []Listed{{Number: "6281200000001", Name: "Ann"}, {Number: victim.User, Name: "Her own"}}; total != 2 || !slices.Equal(listed, want) {
		t.Errorf("%d are listed: %v", total, listed)
	}
}
