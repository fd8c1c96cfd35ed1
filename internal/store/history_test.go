package store_test

import (
	"fmt"
	"math"
	"sync"

	"parley"
	"parley/internal/store"
)

var historyTests = map[string]func(*env){
	"pages, at the edges and beyond": func(e *env) {
		const total = 7
		for i := range total {
			m, op := outgoing(fmt.Sprint("A", i+1)), outgoing(fmt.Sprint("B", i+1))
			op.Content = parley.Seen{Target: m.Ref()}
			e.add(&m, &op)
		}
		for _, test := range []struct {
			limit  int
			offset int64
			want   []string
		}{
			{3, 0, []string{"A7", "A6", "A5"}},
			{3, 3, []string{"A4", "A3", "A2"}},
			{3, 6, []string{"A1"}},
			{3, 5, []string{"A2", "A1"}},
			{7, 0, []string{"A7", "A6", "A5", "A4", "A3", "A2", "A1"}},
			{100, 0, []string{"A7", "A6", "A5", "A4", "A3", "A2", "A1"}},
			{1, 6, []string{"A1"}},
			{1, 7, nil},
			{100, math.MaxInt64, nil},
			{0, 0, nil},
		} {
			page, n, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: test.limit, Offset: test.offset})
			e.must(err)
			e.same(fmt.Sprintf("limit %d offset %d", test.limit, test.offset), []any{ids(page), n}, []any{test.want, int64(total)})
		}
	},

	"records come back whole": func(e *env) {
		want := incoming("A1")
		want.ReplyTo = "B1"
		e.add(&want)
		page, _, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 1})
		e.must(err)
		e.same("page", page, []parley.Message{want})
	},

	"a contact without messages has an empty history": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		for _, of := range []struct {
			channel parley.ChannelCode
			chat    parley.ContactID
		}{{main, bob}, {other, ann}} {
			page, total, err := e.store.History(e.Context(), of.channel, of.chat, parley.Page{Limit: 10})
			e.must(err)
			e.same("history", []any{len(page), total}, []any{0, int64(0)})
		}
	},

	"reactions stand, change and go": func(e *env) {
		one, two, elsewhere := outgoing("A1"), incoming("A2"), outgoing("A1")
		elsewhere.Chat = bob
		e.add(&one, &two, &elsewhere)
		for _, step := range []struct {
			target parley.Message
			by     parley.ContactID
			emoji  string
			want   [][]string // of two, then one
		}{
			{one, ann, "👍", [][]string{nil, {"👍"}}},
			{two, "", "❤️", [][]string{{"❤️"}, {"👍"}}},
			{two, ann, "👍", [][]string{{"❤️", "👍"}, {"👍"}}},
			{one, ann, "😂", [][]string{{"❤️", "👍"}, {"😂"}}},
			{two, "", "", [][]string{{"👍"}, {"😂"}}},
			{two, "", "", [][]string{{"👍"}, {"😂"}}}, // twice is no error
			{elsewhere, bob, "🎉", [][]string{{"👍"}, {"😂"}}},
		} {
			e.tx(func(tx *store.Tx) error {
				return tx.SetReaction(e.Context(), main, step.target.Ref(), step.by, step.emoji)
			})
			page, _, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
			e.must(err)
			e.same("reactions", [][]string{page[0].Reactions, page[1].Reactions}, step.want)
		}
		// A page that does not hold the message does not hold its reactions either.
		page, _, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 1, Offset: 1})
		e.must(err)
		e.same("second page", page[0].Reactions, []string{"😂"})
	},

	"an operation has no reactions": func(e *env) {
		op := outgoing("A1")
		op.Content = parley.Archive{}
		e.add(&op)
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, op.Ref(), ann, "👍") })
	},

	"a page fits its total while messages arrive": func(e *env) {
		first := outgoing("A0")
		e.add(&first)
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(done)
			for i := range 200 {
				m := outgoing(fmt.Sprint("A", i+1))
				if err := e.store.Tx(e.Context(), func(tx *store.Tx) error { return tx.AddMessage(e.Context(), &m) }); err != nil {
					e.Error(err)
					return
				}
			}
		})
		defer wg.Wait()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			page, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 5})
			e.must(err)
			if newest := fmt.Sprint("A", total-1); string(page[0].ID) != newest || int64(len(page)) != min(5, total) {
				e.Fatalf("the newest of %d is %s, not %s; %d on the page", total, page[0].ID, newest, len(page))
			}
		}
	},

	"inside a transaction its own writes are seen": func(e *env) {
		m := outgoing("A1")
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddMessage(e.Context(), &m); err != nil {
				return err
			}
			page, total, err := tx.History(e.Context(), main, ann, parley.Page{Limit: 5})
			if err == nil && (total != 1 || len(page) != 1) {
				return fmt.Errorf("total %d, page %v", total, ids(page))
			}
			return err
		})
	},
}
