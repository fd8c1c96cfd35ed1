package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var optOutTests = map[string]func(e *env){
	"are listed in pages, also after two spellings became one contact": func(e *env) {
		contacts := []parley.ContactID{"6281200000001@c.us", "6281200000002@c.us", "6281200000003@c.us"}
		set := func(c parley.ContactID, since time.Time, want bool) {
			e.Helper()
			var changed bool
			e.tx(func(tx *store.Tx) (err error) {
				changed, err = tx.SetOptedOut(e.Context(), main, c, since)
				return err
			})
			e.same("changed", changed, want)
		}
		isOut := func(c parley.ContactID, want bool) {
			e.Helper()
			out, err := e.store.IsOptedOut(e.Context(), main, c)
			e.must(err)
			e.same("opted out", out, want)
		}
		set(contacts[0], time.Time{}, false) // not known
		for i, c := range contacts {
			set(c, start.Add(time.Duration(i)*time.Second), true)
			set(c, start.Add(time.Hour), false)
		}
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, contacts[0], contacts[2]) })
		var got []parley.ContactID
		for after := (parley.ChatCursor{}); ; {
			some, err := e.store.OptOuts(e.Context(), main, after, 1)
			e.must(err)
			if len(some) == 0 {
				break
			}
			got, after = append(got, some[0].Contact), some[0].Cursor
		}
		e.same("the list", got, []parley.ContactID{contacts[2], contacts[1]})
		n, err := e.store.CountOptOuts(e.Context(), main)
		e.must(err)
		e.same("their number", n, int64(2))
		isOut(contacts[0], true)
		set(contacts[0], time.Time{}, true)
		isOut(contacts[2], false)
		isOut(contacts[1], true)
	},
}
