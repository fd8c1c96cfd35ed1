package store_test

import (
	"errors"
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

	"old messages are deleted with what refers to them": func(e *env) {
		gone, waits, behind := incoming("B1"), outgoing("C1"), incoming("C2")
		gone.Chat, waits.Chat, behind.Chat = bob, "6281100000003@c.us", "6281100000003@c.us"
		e.add(&gone, &waits, &behind)
		all := make([]parley.Message, 6)
		for i := range all {
			all[i] = incoming(fmt.Sprint("A", i))
			all[i].CreatedAt = start.Add(time.Duration(i) * time.Minute)
		}
		all[1].ReplyTo, all[3].ReplyTo = "A0", "A2"
		all[0].Content = parley.File{Caption: "a report", Media: parley.Media{Key: "ab/cd", MIME: "application/pdf"}}
		e.add(&all[0], &all[1], &all[2], &all[3], &all[4], &all[5])
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.SetReaction(e.Context(), main, all[0].Ref(), ann, "👍"),
				tx.SetResend(e.Context(), main, all[0].Ref(), []byte("x"), start),
				tx.AddRemoteInbound(e.Context(), main, all[0].ID, store.RemoteContact{Contact: ann, Inbound: "remote"}),
				tx.AddEvent(e.Context(), &parley.Event{Type: parley.MessageReceived, Channel: main, At: start, Message: &all[0]}))
		})
		before, kept := start.Add(150*time.Second), map[int64]bool{}
		var deleted []int64
		var files []parley.Media
		for after := int64(0); ; {
			old, last, err := e.store.OldMessages(e.Context(), after, before, 2, kept)
			e.must(err)
			var seqs []int64
			for _, m := range old {
				seqs = append(seqs, m.Seq)
			}
			e.tx(func(tx *store.Tx) (err error) {
				var some []parley.Media
				some, err = tx.DeleteMessages(e.Context(), seqs)
				files = append(files, some...)
				return err
			})
			if deleted = append(deleted, seqs...); last == 0 {
				break
			}
			after = last
		}
		// Those behind a pending one of their chat stay with it.
		e.same("deleted", deleted, []int64{gone.Seq, all[0].Seq, all[1].Seq, all[2].Seq})
		e.same("files", []any{len(files), files[0].Key}, []any{1, "ab/cd"})
		e.same("events", len(e.events(0)), 0)
		_, err := e.store.Resend(e.Context(), all[0].Seq)
		_, remote := e.store.RemoteMessage(e.Context(), main, "remote")
		e.same("what referred to it", []any{err, remote}, []any{parley.ErrNotFound, parley.ErrNotFound})
		_, err = e.store.Message(e.Context(), main, gone.Ref())
		e.same("a deleted message", err, parley.ErrNotFound)

		page := func(offset int64, limit int) []string {
			ms, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: limit, Offset: offset})
			e.must(err)
			e.same("total", total, int64(3))
			return ids(ms)
		}
		e.same("first page", page(0, 2), []string{"A5", "A4"})
		e.same("last page", page(2, 2), []string{"A3"})
		e.same("after it", page(3, 2), []string(nil))
		ms, from, total, err := e.store.HistoryAt(e.Context(), main, ann, 0, 10)
		e.must(err)
		e.same("by position", []any{ids(ms), from, total, ms[2].QuotedBody}, []any{[]string{"A5", "A4", "A3"}, int64(6), int64(3), ""})
		chat, err := e.store.Chat(e.Context(), main, ann)
		e.must(err)
		e.same("chat", chat.Messages, int64(3))
		chats, err := e.store.ListChats(e.Context(), parley.ChatQuery{Limit: 10})
		e.must(err)
		e.same("chats", []any{len(chats), chats[0].Messages}, []any{2, int64(3)})
		_, _, number, err := e.store.Chats(e.Context(), main, parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		e.same("chats of the channel", number, int64(2))
		found, err := e.store.FindMessages(e.Context(), parley.MessageQuery{Contact: ann, Before: all[4].Seq, Limit: 10})
		e.must(err)
		e.same("search", ids(found.Messages), []string{"A3"})

		// The chat goes on where it was, and one that was deleted begins again.
		next, again := incoming("A6"), incoming("B2")
		again.Chat = bob
		e.add(&next, &again)
		for m, want := range map[*parley.Message]int64{&next: 7, &again: 1} {
			position, err := e.store.Position(e.Context(), m.Seq)
			e.must(err)
			e.same("position", position, want)
		}
		_, _, number, err = e.store.Chats(e.Context(), main, parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		e.same("chats of the channel", number, int64(3))
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, bob, ann) })
		ms, total, err = e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("merged", []any{ids(ms), total}, []any{[]string{"B2", "A6", "A5", "A4", "A3"}, int64(5)})
	},

	"retention of an unknown channel is not found": func(e *env) {
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			_, _, err := tx.EraseOlder(e.Context(), "none", start, 10)
			return err
		})
	},
}
