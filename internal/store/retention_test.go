package store_test

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

var retentionTests = map[string]func(*env){
	"an erased message stays as a record": func(e *env) {
		m := outgoing("A1")
		m.Content = parley.Poll{Title: "t", Options: []string{"a", "b"}}
		e.add(&m)
		for range 2 { // twice is no error
			e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, m.Ref()) })
			want := m
			want.Content = parley.Poll{}
			e.same("message", e.message(m), want)
		}
		_, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 1})
		e.must(err)
		e.same("total", total, int64(1))
	},

	"what is old and settled is erased, in steps": func(e *env) {
		e.channel(main, other)
		old := make([]parley.Message, 5)
		for i := range old {
			old[i] = incoming(fmt.Sprint("A", i))
			e.add(&old[i])
		}
		waiting, elsewhere, young := outgoing("B1"), incoming("B2"), incoming("B3")
		elsewhere.Channel = other
		young.CreatedAt = start.Add(time.Hour)
		e.add(&waiting, &elsewhere, &young)
		before := start.Add(time.Minute)
		erase := func(limit, want int) {
			e.Helper()
			var n int
			e.tx(func(tx *store.Tx) (err error) {
				n, _, err = tx.EraseOlder(e.Context(), main, before, limit)
				return err
			})
			e.same("erased", n, want)
		}
		erase(2, 2)
		e.same("the oldest", e.message(old[0]).Content.Text(), "")
		e.same("the third", e.message(old[2]).Content.Text(), "text of A2")
		erase(10, 3)
		erase(10, 0)
		for _, m := range old {
			e.same("old", e.message(m).Content, parley.Content(parley.Text{}))
		}
		for _, m := range []parley.Message{waiting, elsewhere, young} {
			e.same("kept", e.message(m), m)
		}

		// Once it is final, the one that waited goes too; once it is old, the young one.
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, waiting.Ref(), parley.Sent, nil, start)
			return err
		})
		erase(10, 1)
		before = start.Add(2 * time.Hour)
		erase(10, 1)
		e.same("the other channel's", e.message(elsewhere), elsewhere)
	},

	"the files of what is erased are named": func(e *env) {
		e.channel(main)
		file, plain := incoming("A1"), incoming("A2")
		file.Content = parley.File{Caption: "a report", Media: parley.Media{Key: "ab/cd", MIME: "application/pdf"}}
		e.add(&file, &plain)
		var files []parley.Media
		e.tx(func(tx *store.Tx) (err error) {
			_, files, err = tx.EraseOlder(e.Context(), main, start.Add(time.Hour), 10)
			return err
		})
		e.same("files", len(files), 1)
		e.same("file", files[0].Key, "ab/cd")
	},

	"what is empty already does not count": func(e *env) {
		e.channel(main)
		empty, full := incoming("A1"), incoming("A2")
		empty.Content = parley.Text{}
		e.add(&empty, &full)
		e.tx(func(tx *store.Tx) error {
			n, _, err := tx.EraseOlder(e.Context(), main, start.Add(time.Hour), 1)
			if n != 1 {
				return fmt.Errorf("erased %d", n)
			}
			return err
		})
		e.same("text", e.message(full).Content.Text(), "")
	},

	"a message exactly as old as the limit is kept": func(e *env) {
		e.channel(main)
		m := incoming("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			n, _, err := tx.EraseOlder(e.Context(), main, start, 10)
			if n != 0 {
				return fmt.Errorf("erased %d", n)
			}
			return err
		})
	},

	"messages that come after a deleted channel are erased too": func(e *env) {
		e.channel(main, other)
		kept, removed := incoming("A1"), incoming("A2")
		removed.Channel = other
		e.add(&kept, &removed)
		before := start.Add(time.Hour)
		erase := func() (n int) {
			e.tx(func(tx *store.Tx) (err error) {
				n, _, err = tx.EraseOlder(e.Context(), main, before, 10)
				return err
			})
			return n
		}
		e.same("erased", erase(), 1)
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), other) })
		next := incoming("A3")
		e.add(&next)
		e.same("erased after", erase(), 1)
	},

	"retention of an unknown channel is not found": func(e *env) {
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			_, _, err := tx.EraseOlder(e.Context(), "none", start, 10)
			return err
		})
	},
}
