package store_test

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

// titles are chats as "channel contact unread/messages last".
func titles(chats []parley.ChatSummary) (lines []string) {
	for _, c := range chats {
		lines = append(lines, fmt.Sprintf("%s %s %d/%d %s", c.Channel, c.Chat, c.Unread, c.Messages, c.Last.ID))
	}
	return lines
}

var chatListTests = map[string]func(*env){
	"chats are listed with their last messages": func(e *env) {
		e.channel("shop")
		a, b, b2, elsewhere := outgoing("A1"), incoming("B1"), incoming("B2"), incoming("C1")
		b.Chat, b.CreatedAt = bob, start.Add(time.Minute)
		b2.Chat, b2.CreatedAt = bob, start.Add(2*time.Minute)
		elsewhere.Channel, elsewhere.CreatedAt = "shop", start.Add(time.Hour)
		e.add(&a, &b, &b2, &elsewhere)
		list := func(q parley.ChatQuery) []parley.ChatSummary {
			e.Helper()
			chats, err := e.store.ListChats(e.Context(), q)
			e.must(err)
			return chats
		}
		shops := "shop " + string(ann) + " 1/1 C1"
		bobs, anns := "main "+string(bob)+" 2/2 B2", "main "+string(ann)+" 0/1 A1"
		e.same("all", titles(list(parley.ChatQuery{Limit: 10})), []string{shops, bobs, anns})
		e.same("of one", titles(list(parley.ChatQuery{Limit: 10, Channel: main})), []string{bobs, anns})
		e.same("of none", titles(list(parley.ChatQuery{Limit: 10, Channel: "none"})), []string(nil))
		first := list(parley.ChatQuery{Limit: 1})
		second := list(parley.ChatQuery{Limit: 1, After: first[0].Cursor})
		third := list(parley.ChatQuery{Limit: 1, After: second[0].Cursor})
		e.same("pages", append(titles(second), titles(third)...), []string{bobs, anns})
		e.same("no more", titles(list(parley.ChatQuery{Limit: 1, After: third[0].Cursor})), []string(nil))

		e.same("by number", titles(list(parley.ChatQuery{Limit: 10, Number: bob.Number(), Channel: main})), []string{bobs})
		e.same("by its beginning", len(list(parley.ChatQuery{Limit: 10, Number: bob.Number()[:6], Channel: main})), 2)
		e.same("by contact", titles(list(parley.ChatQuery{Limit: 10, Contacts: []parley.ContactID{ann}})), []string{shops, anns})
		both := parley.ChatQuery{Limit: 10, Contacts: []parley.ContactID{ann}, Number: ann.Number()}
		e.same("by both, once", titles(list(both)), []string{shops, anns})
		with, err := e.store.ChatsWith(e.Context(), ann, 10)
		e.must(err)
		e.same("with a contact", titles(with), []string{shops, anns})
	},

	// A chat that gets a message while a caller reads pages moves to the first page. All others are read once, in order.
	"pages are complete while chats move": func(e *env) {
		const all, size = 60, 7
		write := func(i, minute int) {
			m := incoming(fmt.Sprintf("A%d-%d", i, minute))
			m.Chat, m.CreatedAt = parley.NewContactID(fmt.Sprintf("62812%04d", i)), start.Add(time.Duration(minute)*time.Minute)
			e.add(&m)
		}
		for i := range all {
			write(i, i/25) // 25 chats in each minute, more than a page
		}
		seen, moved := map[parley.ContactID]int{}, map[parley.ContactID]bool{}
		q := parley.ChatQuery{Limit: size}
		for page := 0; ; page++ {
			chats, err := e.store.ListChats(e.Context(), q)
			e.must(err)
			for _, c := range chats {
				if at := c.Cursor; q.After != (parley.ChatCursor{}) && at.Compare(q.After) >= 0 {
					e.Errorf("page %d: %v comes after %v", page, at, q.After)
				}
				seen[c.Chat]++
				q.After = c.Cursor
			}
			if len(chats) < size {
				break
			}
			for _, i := range []int{page, all/2 + page, all - 1 - page} { // before, near and after the cursor
				write(i, 100+page)
				moved[parley.NewContactID(fmt.Sprintf("62812%04d", i))] = true
			}
		}
		for i := range all {
			chat := parley.NewContactID(fmt.Sprintf("62812%04d", i))
			if n := seen[chat]; n > 1 || n == 0 && !moved[chat] {
				e.Errorf("%s was read %d times", chat, n)
			}
		}
		first, err := e.store.ListChats(e.Context(), parley.ChatQuery{Limit: len(moved)})
		e.must(err)
		for _, c := range first {
			if !moved[c.Chat] {
				e.Errorf("%s is before a chat that moved", c.Chat)
			}
		}
	},

	"unread messages end with one that was read or sent": func(e *env) {
		var ms []*parley.Message
		for i := range 15 {
			m := incoming(fmt.Sprintf("A%d", i))
			ms = append(ms, &m)
		}
		e.add(ms...)
		unread := func(want int) {
			e.Helper()
			chats, err := e.store.ListChats(e.Context(), parley.ChatQuery{Limit: 1})
			e.must(err)
			e.same("unread", chats[0].Unread, want)
		}
		unread(parley.MaxUnread)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, ms[11].Ref(), parley.Read, nil, start)
			return err
		})
		unread(3)
		reply, more := outgoing("B1"), incoming("B2")
		e.add(&reply)
		unread(0)
		e.add(&more)
		unread(1)
	},

	"a history is read from any position": func(e *env) {
		for i := range 7 {
			m := incoming(fmt.Sprintf("A%d", i+1))
			e.add(&m)
		}
		for _, test := range []struct {
			newest int64
			limit  int
			from   int64
			want   []parley.MessageID
		}{
			{0, 2, 7, []parley.MessageID{"A7", "A6"}},
			{5, 2, 5, []parley.MessageID{"A5", "A4"}},
			{2, 5, 2, []parley.MessageID{"A2", "A1"}},
			{99, 1, 7, []parley.MessageID{"A7"}},
		} {
			ms, from, total, err := e.store.HistoryAt(e.Context(), main, ann, test.newest, test.limit)
			e.must(err)
			var ids []parley.MessageID
			for _, m := range ms {
				ids = append(ids, m.ID)
			}
			e.same(fmt.Sprint(test.newest), []any{ids, from, total}, []any{test.want, test.from, int64(7)})
		}
		if _, _, _, err := e.store.HistoryAt(e.Context(), main, bob, 0, 1); err != parley.ErrNotFound {
			e.Errorf("of a chat that does not exist: %v", err)
		}
		m, err := e.store.Message(e.Context(), main, parley.MessageRef{Chat: ann, ID: "A3"})
		e.must(err)
		position, err := e.store.Position(e.Context(), m.Seq)
		e.must(err)
		e.same("position", position, int64(3))
	},

	"the channel's own reaction and the sender of a message": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, m.Ref(), ann, "👍") })
		e.tx(func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, m.Ref(), "", "🙏") })
		by := store.Actor{Kind: store.ActorSession, ID: "ses_1", Name: "Ayu", Role: parley.Support}
		e.tx(func(tx *store.Tx) error {
			return tx.AddAudit(e.Context(), store.AuditEntry{At: start, Actor: by, Action: store.AuditSend, Object: "A1"})
		})
		e.tx(func(tx *store.Tx) error {
			return tx.AddAudit(e.Context(), store.AuditEntry{At: start, Actor: store.Actor{Name: "Budi"}, Action: "message.delete", Object: "A1"})
		})
		ms, _, _, err := e.store.HistoryAt(e.Context(), main, ann, 0, 1)
		e.must(err)
		e.same("reactions", []any{ms[0].Reactions, ms[0].OwnReaction}, []any{[]string{"🙏", "👍"}, "🙏"})
		senders, err := e.store.Senders(e.Context(), []parley.MessageID{"A1", "A2"})
		e.must(err)
		e.same("senders", senders, map[parley.MessageID]store.Actor{"A1": by})
	},

	"the login links of a contact": func(e *env) {
		for i, contact := range []parley.ContactID{ann, bob, ann} {
			l := parley.OTPLink{ID: parley.OTPID(fmt.Sprint("otl_", i)), Channel: main, Contact: contact, Hash: []byte{byte(i)},
				CreatedAt: start.Add(time.Duration(i) * time.Minute), ExpiresAt: start.Add(time.Hour)}
			e.tx(func(tx *store.Tx) error { return tx.AddLink(e.Context(), l) })
		}
		links, err := e.store.ContactLinks(e.Context(), ann, 10)
		e.must(err)
		e.same("links", []any{len(links), links[0].ID, links[1].ID}, []any{2, parley.OTPID("otl_2"), parley.OTPID("otl_0")})
	},
}
