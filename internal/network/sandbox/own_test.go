package sandbox

import (
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

// TestOwnMessages has the owner write to a phone and to a group on a phone of their own. Receipts come after the messages.
func TestOwnMessages(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		groups, _, err := d.session.Groups(t.Context(), parley.Page{Limit: 1})
		must(t, err)
		known := map[parley.MessageID]bool{}
		d.refuseWith(func(e network.Event) error {
			switch e := e.(type) {
			case network.Message:
				known[e.ID] = true
			case network.Receipt:
				if slices.ContainsFunc(e.IDs, func(id parley.MessageID) bool { return !known[id] }) {
					return parley.ErrNotFound
				}
			}
			return nil
		})
		for _, to := range []Outgoing{{}, {Group: groups[0].ID}} {
			to.Owner, to.Content = true, parley.Text{Body: "it's me"}
			m, err := d.network.SendAs(t.Context(), "test", ayu, to)
			must(t, err)
			waitFor(t, 5*time.Second)
			want := network.Message{Own: true, Group: to.Group, ID: m.ID.ID}
			if to.Group == "" {
				want.From = parley.NewContactID(ayu)
			}
			said := came[network.Message](d)
			if got := said[len(said)-1]; got.From != want.From || got.Group != want.Group || !got.Own || got.ID != want.ID || !m.ID.FromMe {
				t.Errorf("there came %+v, want %+v", got, want)
			}
			if !slices.ContainsFunc(came[network.Receipt](d), func(r network.Receipt) bool { return slices.Contains(r.IDs, m.ID.ID) }) {
				t.Error("it was not delivered")
			}
		}
		page, err := d.network.Messages(t.Context(), "test", ayu, Query{})
		if must(t, err); len(page.Messages) != 2 {
			t.Errorf("on the phone: %+v", page.Messages)
		}
	})
}
