package store_test

import (
	"errors"
	"math"
	"time"

	"parley"
	"parley/internal/store"
)

var chatTests = map[string]func(*env){
	"chats are listed newest first": func(e *env) {
		a, b, a2, late, elsewhere := outgoing("A1"), incoming("A2"), incoming("A3"), incoming("A4"), outgoing("A5")
		b.Chat, b.CreatedAt = bob, start.Add(2*time.Minute)
		a2.CreatedAt = start.Add(time.Minute)
		late.CreatedAt = start.Add(-time.Hour) // was on its way for long: the chat is no older for it
		elsewhere.Channel, elsewhere.CreatedAt = other, start.Add(time.Hour)
		e.add(&a, &b, &a2, &late, &elsewhere)
		anns := parley.Chat{Contact: ann, Messages: 3, LastAt: start.Add(time.Minute)}
		bobs := parley.Chat{Contact: bob, Messages: 1, LastAt: start.Add(2 * time.Minute)}
		for _, test := range []struct {
			page parley.Page
			want []parley.Chat
		}{
			{parley.Page{Limit: 10}, []parley.Chat{bobs, anns}},
			{parley.Page{Limit: 1}, []parley.Chat{bobs}},
			{parley.Page{Limit: 1, Offset: 1}, []parley.Chat{anns}},
			{parley.Page{Limit: 10, Offset: 2}, nil},
			{parley.Page{Limit: 10, Offset: math.MaxInt64}, nil},
		} {
			chats, total, err := e.store.Chats(e.Context(), main, test.page)
			e.must(err)
			e.same("chats", []any{chats, total}, []any{test.want, int64(2)})
		}
		chats, total, err := e.store.Chats(e.Context(), "nobody", parley.Page{Limit: 10})
		e.must(err)
		e.same("of an unknown channel", []any{len(chats), total}, []any{0, int64(0)})
	},

	"a chat is archived until it is brought back": func(e *env) {
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.SetArchived(e.Context(), main, ann, true) })
		one, two := outgoing("A1"), incoming("A2")
		e.add(&one)
		archived := func(want bool) {
			e.Helper()
			chat, err := e.store.Chat(e.Context(), main, ann)
			e.must(err)
			e.same("archived", chat.Archived, want)
		}
		archived(false)
		e.tx(func(tx *store.Tx) error { return tx.SetArchived(e.Context(), main, ann, true) })
		e.tx(func(tx *store.Tx) error { return tx.SetArchived(e.Context(), main, ann, true) })
		archived(true)
		e.add(&two)
		archived(true)
		e.tx(func(tx *store.Tx) error { return tx.SetArchived(e.Context(), main, ann, false) })
		archived(false)
	},

	"the channel that last talked with a contact": func(e *env) {
		e.channel("first", "second", "third")
		for i, code := range []parley.ChannelCode{"first", "second", "third"} {
			m := outgoing("A1")
			m.Channel, m.CreatedAt = code, start.Add(time.Duration(i)*time.Minute)
			e.add(&m)
		}
		for _, test := range []struct {
			contact parley.ContactID
			among   []parley.ChannelCode
			want    parley.ChannelCode
			err     error
		}{
			{ann, []parley.ChannelCode{"first", "second", "third"}, "third", nil},
			{ann, []parley.ChannelCode{"second", "first"}, "second", nil},
			{ann, []parley.ChannelCode{"first", "never"}, "first", nil},
			{ann, []parley.ChannelCode{"never"}, "", parley.ErrNotFound},
			{ann, nil, "", parley.ErrNotFound},
			{bob, []parley.ChannelCode{"first"}, "", parley.ErrNotFound},
		} {
			got, err := e.store.LastChannelWith(e.Context(), test.contact, test.among)
			if got != test.want || !errors.Is(err, test.err) {
				e.Errorf("%s among %v: got %q, %v", test.contact, test.among, got, err)
			}
		}
	},
}
