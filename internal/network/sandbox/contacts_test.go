package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store/sqldb"
)

// plan returns how the database runs a query.
func plan(t *testing.T, n *Network, query string, args ...any) string {
	t.Helper()
	steps, err := sqldb.Collect(n.db.Read(t.Context()), func(row scanner) (step string, err error) {
		var id, parent, unused int64
		err = row.Scan(&id, &parent, &unused, &step)
		return step, err
	}, `EXPLAIN QUERY PLAN `+query, args...)
	must(t, err)
	return strings.Join(steps, "; ")
}

// TestPagesDoNotReadTheWholeWorld checks the query plans of totals and pages: one row for a total, and a walk over an index
// in the order of the page, without a sort.
func TestPagesDoNotReadTheWholeWorld(t *testing.T) {
	if postgrestest.Running() {
		t.Skip("a test of its own looks at the plans of PostgreSQL")
	}
	withDesk(t, func(t *testing.T, d *desk) {
		for query, want := range map[string]string{
			contactTotal: "SEARCH worlds USING INTEGER PRIMARY KEY (rowid=?)",
			groupTotal:   "SEARCH worlds USING INTEGER PRIMARY KEY (rowid=?)",
		} {
			if got := plan(t, d.network, query, 1); got != want {
				t.Errorf("%s: %s", query, got)
			}
		}
		for query, want := range map[string]string{
			contactPage: "SEARCH phones USING INDEX contacts_by_name (world=?)",
			groupPage: "SEARCH groups USING INDEX groups_by_world (world=?); " +
				"CORRELATED SCALAR SUBQUERY 1; SEARCH members USING PRIMARY KEY (grp=?)",
		} {
			if got := plan(t, d.network, query, 1, 2, 3); got != want {
				t.Errorf("%s: %s", query, got)
			}
		}
	})
}

// TestTotalsFollowEveryChange compares the stored totals with the rows after each kind of change.
func TestTotalsFollowEveryChange(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx, n := t.Context(), d.network
		check := func(when string, wantContacts, wantGroups int64) {
			t.Helper()
			contacts, contactTotal, err := d.session.Contacts(ctx, parley.Page{Limit: 100})
			must(t, err)
			groups, groupTotal, err := d.session.Groups(ctx, parley.Page{Limit: 100})
			must(t, err)
			got := []int64{int64(len(contacts)), contactTotal, int64(len(groups)), groupTotal}
			if want := []int64{wantContacts, wantContacts, wantGroups, wantGroups}; !slices.Equal(got, want) {
				t.Errorf("%s: contacts, their total, groups, their total: %v, want %v", when, got, want)
			}
		}
		check("at first", 2, 1)
		for i := range 5 {
			_, err := n.CreatePhone(ctx, "test", fmt.Sprint("628555000", i), fmt.Sprint("N", i))
			must(t, err)
		}
		d.send(text("6285550009", "to a phone without a name"))
		check("with five more", 7, 1)
		d.patch(ayu, PhonePatch{Name: new("Ayu Lestari")})
		check("after a new name", 7, 1)
		d.patch(budi, PhonePatch{Name: new("")})
		check("without a name", 6, 1)
		_, err := d.session.CreateGroup(ctx, "Team", []parley.ContactID{parley.NewContactID(ayu)})
		must(t, err)
		check("with a group", 6, 2)
		page, total, err := d.session.Contacts(ctx, parley.Page{Limit: 2, Offset: 4})
		if err != nil || total != 6 || len(page) != 2 || page[0].Name != "N3" || page[1].Name != "N4" {
			t.Errorf("the last page of %d is %+v: %v", total, page, err)
		}
		must(t, n.Reset(ctx, "test"))
		check("after a reset", 2, 1)
		must(t, n.purgeRemovedWorlds(ctx))
		check("after the purge", 2, 1)
	})
}
