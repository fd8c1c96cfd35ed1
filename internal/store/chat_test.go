package store_test

import (
	"errors"
	"fmt"
	"math"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

var chatTests = map[string]func(*env){
	"the network's spellings of several contacts are found at once": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, bob, ann) })
		got, err := e.store.NetworkSpellings(e.Context(), main, []parley.ContactID{ann, bob})
		e.must(err)
		e.same("spellings", got, map[parley.ContactID]parley.ContactID{bob: ann})
		got, err = e.store.NetworkSpellings(e.Context(), other, []parley.ContactID{bob})
		e.must(err)
		e.same("on another channel", len(got), 0)
	},

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
			chats, _, total, err := e.store.Chats(e.Context(), main, test.page, parley.ChatCursor{})
			e.must(err)
			e.same("chats", []any{chats, total}, []any{test.want, int64(2)})
		}
		chats, _, total, err := e.store.Chats(e.Context(), "unknown", parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		e.same("of an unknown channel", []any{len(chats), total}, []any{0, int64(0)})
	},

	// The row of a chat is exact to the minute, the list to the millisecond, also from page to page.
	"pages of chats fit together": func(e *env) {
		const all, size = 23, 5
		var ms []*parley.Message
		for round := range 2 { // the second message of a chat is in the same minute
			for i := range all {
				m := incoming(fmt.Sprintf("A%d-%d", i, round))
				m.Chat = parley.NewContactID(fmt.Sprintf("62812%04d", i))
				m.CreatedAt = start.Add(time.Duration(i+round*2*(all-i)) * 100 * time.Millisecond)
				ms = append(ms, &m)
			}
		}
		e.add(ms...)
		for _, byCursor := range []bool{false, true} {
			seen := map[parley.ContactID]bool{}
			var page parley.Page
			var at parley.ChatCursor
			var last time.Time
			for n := 0; n <= all/size; n++ {
				page.Limit = size
				chats, next, total, err := e.store.Chats(e.Context(), main, page, at)
				e.must(err)
				e.same("total", total, int64(all))
				for _, c := range chats {
					seen[c.Contact] = true
					if !last.IsZero() && c.LastAt.After(last) {
						e.Errorf("page %d: %v comes after %v", n, c.LastAt, last)
					}
					last = c.LastAt
				}
				e.same("there is more", next != parley.ChatCursor{}, n < all/size)
				if byCursor {
					at = next
				} else {
					page.Offset += size
				}
			}
			e.same("chats", len(seen), all)
		}
	},

	"messages are enqueued together": func(e *env) {
		const alias, cid = parley.ContactID("6281100000009@c.us"), parley.ContactID("6281100000003@c.us")
		first := outgoing("A1")
		e.add(&first)
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, alias, ann) })
		later := start.Add(10 * time.Minute)
		ms := make([]parley.Message, 7)
		for i, chat := range []parley.ContactID{bob, ann, bob, alias, cid, bob, ann} {
			ms[i] = outgoing("")
			ms[i].Chat, ms[i].Content, ms[i].CreatedAt = chat, parley.Text{Body: fmt.Sprint(i)}, later
		}
		ms[6].Channel = other
		for range 2 { // the second time all chats exist
			e.tx(func(tx *store.Tx) error {
				for i := range ms {
					ms[i].ID = outgoing("").ID
					if err := tx.EnqueueMessage(e.Context(), &ms[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		var chats []parley.ContactID
		var positions []int64
		for i, m := range ms {
			position, err := e.store.Position(e.Context(), m.Seq)
			e.must(err)
			chats, positions = append(chats, m.Chat), append(positions, position)
			e.same("message", e.message(m).Content, parley.Content(parley.Text{Body: fmt.Sprint(i)}))
			if i > 0 && m.Seq <= ms[i-1].Seq {
				e.Errorf("message %d has seq %d after %d", i, m.Seq, ms[i-1].Seq)
			}
		}
		e.same("chats", chats, []parley.ContactID{bob, ann, bob, ann, cid, bob, ann})
		e.same("positions", positions, []int64{4, 4, 5, 5, 2, 6, 2})
		for channel, want := range map[parley.ChannelCode]int64{main: 3, other: 1} {
			list, _, total, err := e.store.Chats(e.Context(), channel, parley.Page{Limit: 10}, parley.ChatCursor{})
			e.must(err)
			e.same("number of chats", []int64{int64(len(list)), total}, []int64{want, want})
			for _, chat := range list {
				e.same("time of the last message", chat.LastAt, later)
			}
		}
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

	"both spellings of a number are one chat": func(e *env) {
		var all []string
		for i, chat := range []parley.ContactID{bob, ann, ann, bob, ann} {
			m := outgoing(fmt.Sprintf("A%d", i))
			m.Chat, m.CreatedAt = chat, start.Add(time.Duration(i)*time.Minute)
			e.add(&m)
			all = append([]string{string(m.ID)}, all...)
		}
		e.tx(func(tx *store.Tx) error { return tx.SetArchived(e.Context(), main, ann, true) })
		learn := func(alias, contact parley.ContactID) {
			e.Helper()
			e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, alias, contact) })
		}
		check := func(own parley.ContactID) {
			e.Helper()
			chats, _, total, err := e.store.Chats(e.Context(), main, parley.Page{Limit: 10}, parley.ChatCursor{})
			e.must(err)
			e.same("chats", []any{total, len(chats), chats[0].Contact, chats[0].Messages}, []any{int64(1), 1, own, int64(len(all))})
			for _, spelling := range []parley.ContactID{ann, bob} {
				chat, err := e.store.Chat(e.Context(), main, spelling)
				e.must(err)
				e.same("chat of "+string(spelling), chat, chats[0])
				ms, _, err := e.store.History(e.Context(), main, spelling, parley.Page{Limit: 10})
				e.must(err)
				var ids []string
				for _, m := range ms {
					ids = append(ids, string(m.ID))
				}
				e.same("history of "+string(spelling), ids, all)
				ref := parley.MessageRef{FromMe: true, Chat: spelling, ID: "A0"}
				m, err := e.store.Message(e.Context(), main, ref)
				e.must(err)
				e.same("spelling of a message", m.Chat, own)
				code, err := e.store.LastChannelWith(e.Context(), spelling, []parley.ChannelCode{main})
				e.must(err)
				e.same("channel", code, main)
			}
		}
		learn(bob, ann)
		check(ann)
		learn(bob, ann)
		late := outgoing("A5")
		late.Chat, late.CreatedAt = bob, start.Add(time.Hour)
		e.add(&late)
		e.same("spelling of a new message", late.Chat, ann)
		all = append([]string{"A5"}, all...)
		check(ann)
		spellings, err := e.store.Spellings(e.Context(), main, bob)
		e.must(err)
		e.same("spellings", spellings, []parley.ContactID{ann, bob})
		e.tx(func(tx *store.Tx) error {
			got, err := tx.AdvanceMessages(e.Context(), receipt(bob, parley.Sent, start, "A0", "A1"))
			e.same("moved", []int{len(got[0].IDs), len(got[0].Unknown)}, []int{2, 0})
			return err
		})
		learn(ann, bob) // the network has changed its mind
		check(bob)
		elsewhere, err := e.store.Spellings(e.Context(), other, ann)
		e.must(err)
		e.same("spellings on another channel", elsewhere, []parley.ContactID{ann})
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		e.purge()
		if _, err := e.store.Chat(e.Context(), main, ann); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("a cleared channel has a chat: %v", err)
		}
	},

	"a chat gets the network's spelling": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, ann, bob) })
		got := e.message(m)
		e.same("message", got.Chat, bob)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Sent, nil, start)
			return err
		})
		events, _, err := e.store.Events(e.Context(), 0, parley.EventFilter{}, 10)
		e.must(err)
		e.same("events", []any{len(events), events[0].Chat}, []any{1, bob})
	},

	"the newest code under any spelling counts": func(e *env) {
		put := func(id parley.OTPID, contact parley.ContactID, at time.Time) {
			e.tx(func(tx *store.Tx) error {
				return tx.PutLedger(e.Context(), rule.Ledger{Code: parley.OTPCode{ID: id, Channel: main, Contact: contact,
					Hash: []byte(id), CreatedAt: at, ExpiresAt: at.Add(time.Hour)}})
			})
		}
		put("otc_1", ann, start)
		e.tx(func(tx *store.Tx) error { return tx.AddAlias(e.Context(), main, ann, bob) })
		newest := func(want parley.OTPID) {
			e.Helper()
			for _, spelling := range []parley.ContactID{ann, bob} {
				l, err := e.store.Ledger(e.Context(), main, spelling)
				e.must(err)
				e.same("code of "+string(spelling), l.Code.ID, want)
			}
			all, err := e.store.Ledgers(e.Context(), bob)
			e.must(err)
			e.same("last code", all[len(all)-1].Code.ID, want)
		}
		newest("otc_1")
		put("otc_2", bob, start.Add(time.Minute))
		newest("otc_2")
	},
}
