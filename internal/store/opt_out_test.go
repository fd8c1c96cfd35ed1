package store_test

import (
	"fmt"
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
	"the text for callers is sent once in a while": func(e *env) {
		for _, c := range []struct {
			at   time.Duration
			want bool
		}{{0, true}, {59 * time.Minute, false}, {time.Hour, true}, {2*time.Hour - time.Second, false}} {
			var may bool
			e.tx(func(tx *store.Tx) (err error) {
				at := start.Add(c.at)
				may, err = tx.SetCallText(e.Context(), main, "6281200000001@c.us", at, at.Add(-time.Hour))
				return err
			})
			e.same(fmt.Sprintf("after %s", c.at), may, c.want)
		}
	},
	"do not hide who got a first message, and who wrote": func(e *env) {
		for i, m := range []parley.Message{
			{Chat: "6281200000001@c.us", FromMe: true, Status: parley.Sent},
			{Chat: "6281200000002@c.us", FromMe: true, Status: parley.Failed},
			{Chat: "6281200000003@c.us", Status: parley.Received}, {Chat: "6281200000003@c.us", FromMe: true, Status: parley.Sent},
			{Chat: "6281200000004@c.us", FromMe: true, Status: parley.Sent, Priority: parley.PriorityStranger},
			{Chat: "6281200000005@g.us", FromMe: true, Status: parley.Sent},
			{Chat: "6281200000006@c.us", FromMe: true, Status: parley.Sent, CreatedAt: start.Add(-time.Hour)},
		} {
			m.Channel, m.ID, m.Content = main, parley.MessageID(fmt.Sprintf("A%d", i)), parley.Text{Body: "x"}
			if m.CreatedAt.IsZero() {
				m.CreatedAt = start
			}
			e.add(&m)
		}
		n, err := e.store.CountFirsts(e.Context(), main, start.Add(-time.Minute))
		e.must(err)
		e.same("first messages", n, int64(1))
		wrote := map[parley.ContactID]bool{"6281200000001@c.us": false, "6281200000003@c.us": true, "6281200000009@c.us": false}
		for contact, want := range wrote {
			recently, err := e.store.WroteSince(e.Context(), main, contact, start.Add(-time.Minute), 0)
			e.must(err)
			later, err := e.store.WroteSince(e.Context(), main, contact, start, 0)
			e.must(err)
			e.same(string(contact), []bool{recently, later}, []bool{want, false})
		}
	},
}
