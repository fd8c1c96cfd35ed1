package keystore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/postgrestest"
	"parley/internal/store/sqldb"
)

// TestListFollowsContacts changes names and addresses at random. The list must agree with what the whole of the contacts says.
func TestListFollowsContacts(t *testing.T) {
	_, d, _ := fresh(t)
	own := d.LIDs.(*device)
	numbers := []string{"6281000000001", "6281000000002", "6281000000003", "6281234567890", "0", "13135550002"}
	lids := []string{"101", "102", "103", "104"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(all []string) string { return all[r.IntN(len(all))] }
	for range 400 {
		jid := types.NewJID(pick(numbers), types.DefaultUserServer)
		if r.IntN(2) == 0 {
			jid = types.NewJID(pick(lids), types.HiddenUserServer)
		}
		name := pick([]string{"", "Ann", "Bob", "Eve"})
		var err error
		switch r.IntN(5) {
		case 0:
			_, _, err = own.PutPushName(t.Context(), jid, name)
		case 1:
			_, _, err = own.PutBusinessName(t.Context(), jid, name)
		case 2:
			err = own.PutContactName(t.Context(), jid, name, "")
		case 3:
			err = own.PutAllContactNames(t.Context(), []store.ContactEntry{{JID: jid, FullName: name}})
		case 4:
			err = own.PutLIDMapping(t.Context(), types.NewJID(pick(lids), types.HiddenUserServer),
				types.NewJID(pick(numbers), types.DefaultUserServer))
		}
		must(t, err)
		compareLists(t, own)
	}
}

// compareLists makes the list from all contacts and compares it.
func compareLists(t *testing.T, d *device) {
	t.Helper()
	all := map[types.JID]types.ContactInfo{}
	jids, err := sqldb.Collect(d.s.db.Read(t.Context()), sqldb.ScanOne[string], `SELECT jid FROM contacts WHERE device = $1`, d.id)
	must(t, err)
	for _, text := range jids {
		jid, err := types.ParseJID(text)
		must(t, err)
		all[jid], err = d.GetContact(t.Context(), jid)
		must(t, err)
	}
	by := map[string]ListedContact{}
	for _, server := range []string{types.DefaultUserServer, types.HiddenUserServer} {
		for jid, c := range all {
			number := jid
			if jid.Server != server {
				continue
			}
			if server == types.HiddenUserServer {
				number, err = d.GetPNForLID(t.Context(), jid)
				must(t, err)
			}
			if number.User == "" || number.User == "0" || number.IsBot() || number.User == "6281234567890" {
				continue
			}
			is := by[number.User]
			is.Number, is.Business = number.User, is.Business || c.BusinessName != ""
			is.Name = cmp.Or(is.Name, c.FullName, c.FirstName, c.BusinessName, c.PushName)
			by[number.User] = is
		}
	}
	var want []ListedContact
	for _, c := range by {
		want = append(want, c)
	}
	slices.SortFunc(want, func(a, b ListedContact) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
	})
	got, total, err := d.s.ListContacts(t.Context(), number, 100, 0)
	must(t, err)
	if !slices.Equal(got, want) || total != int64(len(want)) {
		t.Fatalf("%d are listed:\n got %v\nwant %v", total, got, want)
	}
}

// TestPageOfContactsReadsOneIndex looks at how the database finds a page: by a walk over an index that has all columns. The total
// is stored.
func TestPageOfContactsReadsOneIndex(t *testing.T) {
	s, d, _ := fresh(t)
	own := d.LIDs.(*device)
	var many []store.ContactEntry
	for i := range 500 {
		many = append(many, store.ContactEntry{JID: types.NewJID(fmt.Sprintf("628%09d", i), types.DefaultUserServer),
			FullName: fmt.Sprintf("N%03d", i)})
	}
	must(t, own.PutAllContactNames(t.Context(), many))
	page, total, err := own.s.ListContacts(t.Context(), number, 2, 498)
	must(t, err)
	if total != 500 || len(page) != 2 || page[1] != (ListedContact{Number: "628000000499", Name: "N499"}) {
		t.Errorf("the last page of %d is %v", total, page)
	}
	if postgrestest.Running() {
		return
	}
	rows, err := s.db.Read(t.Context()).Query(`EXPLAIN QUERY PLAN `+pageOfContacts, own.id, 2, 498)
	must(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		must(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	if got := strings.Join(plan, "; "); got != "SEARCH listed USING COVERING INDEX listed_name (device=?)" {
		t.Errorf("the plan is %s", got)
	}
}

var (
	victim   = types.NewJID("6281211112222", types.DefaultUserServer)
	attacker = types.NewJID("900000000001", types.HiddenUserServer)
	real     = types.NewJID("900000000002", types.HiddenUserServer)
)

func readLID(t *testing.T, d *store.Device, number types.JID) types.JID {
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
		if got := readLID(t, other, victim); !got.IsEmpty() {
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
	if got := readLID(t, other, victim); got != real {
		t.Errorf("the other device writes to %s", got)
	}
	if got := readLID(t, one, victim); got != attacker {
		t.Errorf("the first device writes to %s", got)
	}
	must(t, s.RemoveDevice(t.Context(), number))
	var left int
	must(t, s.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM people`, nil, &left))
	if left != 1 {
		t.Errorf("%d addresses are left after one of two devices went", left)
	}
}
