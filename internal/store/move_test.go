package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

var moveTests = map[string]func(*env){
	"a moved history is another channel's": func(e *env) {
		e.channel(main, other, "third")
		sent, said, elsewhere := outgoing("A1"), outgoing("B1"), outgoing("C1")
		said.FromMe, said.Status, elsewhere.Channel = false, parley.Received, "third"
		e.add(&sent, &said, &elsewhere)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Delivered, nil, start)
			return errors.Join(err,
				tx.SetReaction(e.Context(), main, sent.Ref(), ann, "👍"),
				tx.AddStoredResponse(e.Context(), store.StoredResponse{Scope: string(main), Key: "k", Fingerprint: []byte{1}, Channel: main}),
				tx.AddToken(e.Context(), parley.Token{ID: "tok_1", Kind: parley.ChannelToken, Channel: main}),
				tx.AddEvent(e.Context(), &parley.Event{Type: parley.MessageReceived, Channel: main, At: start, Message: &said}))
		})
		before := e.events(0)
		e.tx(func(tx *store.Tx) error { return tx.MoveHistory(e.Context(), main, other) })

		page, total, err := e.store.History(e.Context(), other, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history", []any{ids(page), page[1].Reactions, page[1].Status, total},
			[]any{[]string{"B1", "A1"}, []string{"👍"}, parley.Delivered, int64(2)})
		if m, err := e.store.Message(e.Context(), other, sent.Ref()); err != nil || m.Channel != other {
			e.Errorf("the message is %+v, %v", m, err)
		}
		_, _, chats, err := e.store.Chats(e.Context(), main, parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		_, err = e.store.Message(e.Context(), main, sent.Ref())
		_, response := e.store.StoredResponse(e.Context(), string(main), "k")
		e.same("what is left", []any{chats, err, response}, []any{int64(0), parley.ErrNotFound, parley.ErrNotFound})
		_, err = e.store.Token(e.Context(), "tok_1")
		e.must(err)
		e.same("events", len(e.events(0)), len(before))

		// The same person, and the same ids, are new to the channel; others are not touched.
		again := outgoing("A1")
		e.add(&again)
		page, total, err = e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("new history", []any{ids(page), total}, []any{[]string{"A1"}, int64(1)})
		page, _, err = e.store.History(e.Context(), "third", ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("another channel", ids(page), []string{"C1"})
	},

	"a history moves to a channel that is there": func(e *env) {
		e.channel(main)
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.MoveHistory(e.Context(), main, "none") })
	},

	"a resend is stored until it is purged": func(e *env) {
		e.channel(main)
		m := outgoing("A1")
		e.add(&m)
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("before: %v", err)
		}
		for _, encrypted := range []string{"first", "second"} {
			e.tx(func(tx *store.Tx) error { return tx.SetResend(e.Context(), main, m.Ref(), []byte(encrypted), start) })
			got, err := e.store.Resend(e.Context(), m.Seq)
			e.must(err)
			e.same("stored", string(got), encrypted)
		}
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeResends(e.Context(), start, 10)) })
		_, err := e.store.Resend(e.Context(), m.Seq)
		e.must(err)
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeResends(e.Context(), start.Add(time.Millisecond), 10)) })
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("after: %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			return tx.SetResend(e.Context(), main, parley.MessageRef{FromMe: true, Chat: ann, ID: "unknown"}, []byte("x"), start)
		})
		e.tx(func(tx *store.Tx) error { return tx.SetResend(e.Context(), main, m.Ref(), []byte("last"), start) })
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		e.purge()
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("of a deleted channel: %v", err)
		}
	},
}
