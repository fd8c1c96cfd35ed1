package keystore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
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
			err = own.PutLIDMapping(t.Context(), types.NewJID(pick(lids), types.HiddenUserServer), types.NewJID(pick(numbers), types.DefaultUserServer))
		}
		must(t, err)
		compareLists(t, own)
	}
}

// compareLists makes the list from all contacts and compares it.
func compareLists(t *testing.T, d *device) {
	t.Helper()
	all, err := d.GetAllContacts(t.Context())
	must(t, err)
	by := map[string]Listed{}
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
	var want []Listed
	for _, c := range by {
		want = append(want, c)
	}
	slices.SortFunc(want, func(a, b Listed) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number)) })
	got, total, err := d.ListContacts(t.Context(), 100, 0)
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
		many = append(many, store.ContactEntry{JID: types.NewJID(fmt.Sprintf("628%09d", i), types.DefaultUserServer), FullName: fmt.Sprintf("N%03d", i)})
	}
	must(t, own.PutAllContactNames(t.Context(), many))
	page, total, err := own.ListContacts(t.Context(), 2, 498)
	must(t, err)
	if total != 500 || len(page) != 2 || page[1] != (Listed{Number: "628000000499", Name: "N499"}) {
		t.Errorf("the last page of %d is %v", total, page)
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
