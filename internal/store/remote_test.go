package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var remoteTests = map[string]func(*env){
	"a message has an attempt until its outcome is known": func(e *env) {
		send := func() store.RemoteSend {
			s, err := e.store.RemoteSend(e.Context(), main, "A1")
			e.must(err)
			return s
		}
		e.same("before", send(), store.RemoteSend{})
		for _, at := range []time.Time{start, start.Add(time.Minute)} { // again replaces
			e.tx(func(tx *store.Tx) error { return tx.BeginRemoteSend(e.Context(), main, "A1", ann, at, true) })
			e.same("attempt", send(), store.RemoteSend{AttemptAt: at})
		}
		begin := func(id parley.MessageID) error {
			return e.store.Tx(e.Context(), func(tx *store.Tx) error { return tx.BeginRemoteSend(e.Context(), main, id, ann, start, false) })
		}
		if err := begin("A1"); err != parley.ErrExists {
			e.Errorf("beginning beside an attempt: %v", err)
		}
		e.same("attempt", send(), store.RemoteSend{AttemptAt: start.Add(time.Minute)})
		to, err := e.store.RemoteAttempt(e.Context(), main, "A1")
		e.must(err)
		e.same("contact", to, ann)
		end := func(remote string) (copies int) {
			e.tx(func(tx *store.Tx) (err error) {
				copies, err = tx.EndRemoteSend(e.Context(), main, "A1", ann, remote)
				return err
			})
			return copies
		}
		end("")
		e.same("after a refusal", send(), store.RemoteSend{})
		e.same("copies", []int{end("wamid.1"), end("wamid.1"), end("wamid.2")}, []int{1, 0, 2})
		if err := begin("A1"); err != parley.ErrExists {
			e.Errorf("beginning after the response: %v", err)
		}
		e.must(begin("A2"))
		e.same("after the response", send(), store.RemoteSend{Remote: "wamid.1"})
		m, err := e.store.RemoteMessage(e.Context(), main, "wamid.2")
		e.must(err)
		e.same("message", m, store.RemoteMessage{ID: "A1", Contact: ann, FromMe: true})
		if _, err := e.store.RemoteMessage(e.Context(), other, "wamid.2"); err != parley.ErrNotFound {
			e.Errorf("on another channel: %v", err)
		}
	},

	"a user gets another id": func(e *env) {
		e.tx(func(tx *store.Tx) error {
			return tx.AddRemoteInbound(e.Context(), main, "WA1", store.RemoteContact{Contact: ann, UserID: "ID.1", Inbound: "1", InboundAt: start})
		})
		is := func(user string, want parley.ContactID) {
			c, err := e.store.RemoteUser(e.Context(), main, user)
			if c.Contact != want || want == "" && err != parley.ErrNotFound {
				e.Errorf("%s is %q, %v, not %q", user, c.Contact, err, want)
			}
		}
		replace := func(previous, current string, contact parley.ContactID) {
			e.tx(func(tx *store.Tx) error { return tx.ReplaceRemoteUser(e.Context(), main, previous, current, contact) })
		}
		replace("ID.1", "ID.2", ann)
		is("ID.1", "")
		is("ID.2", ann)
		replace("ID.2", "ID.3", bob)
		is("ID.2", "")
		is("ID.3", bob)
		replace("ID.3", "ID.4", "")
		is("ID.3", "")
		is("ID.4", "")
	},

	"the last text of a contact is found": func(e *env) {
		first, second, ours := incoming("I1"), incoming("I2"), outgoing("A1")
		second.Chat, second.ReceivedAt, first.ReceivedAt = bob, start.Add(time.Minute), start
		e.add(&first, &second, &ours)
		wrote := func() map[parley.ContactID]time.Time {
			all, err := e.store.LastWrote(e.Context(), main, []parley.ContactID{ann, bob, "6281999@c.us"})
			e.must(err)
			return all
		}
		e.same("by messages", wrote(), map[parley.ContactID]time.Time{ann: start, bob: start.Add(time.Minute)})
		e.tx(func(tx *store.Tx) error { // a reaction is no message
			return tx.AddRemoteInbound(e.Context(), main, "WA9", store.RemoteContact{Contact: ann, Inbound: "9", InboundAt: start.Add(time.Hour)})
		})
		e.same("by what the network said", wrote(), map[parley.ContactID]time.Time{ann: start.Add(time.Hour), bob: start.Add(time.Minute)})
	},

	"a text says what it was sent as": func(e *env) {
		text, picture := outgoing("A1"), outgoing("A2")
		picture.Content = parley.Image{}
		e.add(&text, &picture)
		for _, m := range []*parley.Message{&text, &picture} {
			e.tx(func(tx *store.Tx) error { return tx.SetSentAs(e.Context(), main, m.Ref(), parley.KindTemplate) })
			stored, err := e.store.Message(e.Context(), main, m.Ref())
			e.must(err)
			as, isText := stored.Content.(parley.Text)
			e.same("kind", stored.Content.Kind(), m.Content.Kind())
			e.same("sent as a template", as.SentAs == parley.KindTemplate, isText)
		}
	},

	"a user whose number becomes known is one contact": func(e *env) {
		hidden := parley.ContactID("01234567890123456789@c.us")
		inbound := func(c store.RemoteContact) {
			e.tx(func(tx *store.Tx) error {
				return tx.AddRemoteInbound(e.Context(), main, parley.MessageID("WA"+c.Inbound), c)
			})
		}
		inbound(store.RemoteContact{Contact: hidden, UserID: "ID.1", Name: "Ann", Inbound: "1", InboundAt: start})
		c, err := e.store.RemoteUser(e.Context(), main, "ID.1")
		e.must(err)
		e.same("hidden", c.Contact, hidden)
		inbound(store.RemoteContact{Contact: ann, UserID: "ID.1", Name: "Ann", Username: "ann", Inbound: "3", InboundAt: start.Add(time.Hour)})
		inbound(store.RemoteContact{Contact: ann, Inbound: "2", InboundAt: start}) // late
		want := store.RemoteContact{Contact: ann, UserID: "ID.1", Name: "Ann", Username: "ann", Inbound: "3", InboundAt: start.Add(time.Hour)}
		c, err = e.store.RemoteUser(e.Context(), main, "ID.1")
		e.must(err)
		e.same("known", c, want)
		all, total, err := e.store.RemoteContacts(e.Context(), main, parley.Page{Limit: 10})
		e.must(err)
		e.same("all", all, []store.RemoteContact{want})
		e.same("total", total, int64(1))

		e.tx(func(tx *store.Tx) error { return tx.SetRemoteAbsent(e.Context(), main, bob, start) })
		c, err = e.store.RemoteContact(e.Context(), main, bob)
		e.must(err)
		e.same("absent", c, store.RemoteContact{Contact: bob, AbsentAt: start})
		inbound(store.RemoteContact{Contact: bob, Inbound: "4", InboundAt: start})
		c, err = e.store.RemoteContact(e.Context(), main, bob)
		e.must(err)
		e.same("here", c.AbsentAt, time.Time{})
	},

	"contacts that were written to and did not write are counted": func(e *env) {
		count := func(since time.Time) int64 {
			n, err := e.store.CountStarted(e.Context(), main, since)
			e.must(err)
			return n
		}
		for _, to := range []parley.ContactID{ann, bob} {
			e.tx(func(tx *store.Tx) error {
				m := parley.Message{Channel: main, Chat: to, ID: "A1", FromMe: true, Content: parley.Text{Body: "hi"},
					CreatedAt: start, UpdatedAt: start}
				return tx.AddMessage(e.Context(), &m)
			})
		}
		e.same("both", count(start.Add(-time.Minute)), int64(2))
		e.tx(func(tx *store.Tx) error {
			return tx.AddRemoteInbound(e.Context(), main, "WA1", store.RemoteContact{Contact: ann, Inbound: "1", InboundAt: start})
		})
		e.same("one wrote", count(start.Add(-time.Minute)), int64(1))
		e.same("later", count(start.Add(time.Hour)), int64(0))
	},

	"what a network says is deleted with the channel": func(e *env) {
		sum := make([]byte, 32)
		e.tx(func(tx *store.Tx) error { return tx.SetRemoteFile(e.Context(), main, sum, "1", start) })
		e.tx(func(tx *store.Tx) error { return tx.SetRemoteFile(e.Context(), main, sum, "2", start.Add(time.Hour)) })
		file := func(at time.Time) string {
			remote, err := e.store.RemoteFile(e.Context(), main, sum, at)
			e.must(err)
			return remote
		}
		e.same("file", []string{file(start), file(start.Add(time.Hour))}, []string{"2", ""})
		e.tx(func(tx *store.Tx) error {
			if err := tx.BeginRemoteSend(e.Context(), main, "A1", ann, start, false); err != nil {
				return err
			}
			return tx.AddRemoteInbound(e.Context(), main, "WA1", store.RemoteContact{Contact: ann, UserID: "ID.1", Inbound: "1", InboundAt: start})
		})
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		e.purge()
		e.channel(main)
		e.same("file", file(start), "")
		s, err := e.store.RemoteSend(e.Context(), main, "A1")
		e.must(err)
		e.same("attempt", s, store.RemoteSend{})
		for _, err := range []error{
			second(e.store.RemoteMessage(e.Context(), main, "1")), second(e.store.RemoteContact(e.Context(), main, ann)),
		} {
			if err != parley.ErrNotFound {
				e.Errorf("after the deletion: %v", err)
			}
		}
	},
}
