package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

func newLink(channel parley.ChannelCode, contact parley.ContactID, hash byte) parley.OTPLink {
	return parley.OTPLink{
		ID: parley.NewLinkID(), Channel: channel, Contact: contact, Hash: []byte{hash}, Name: "Acme",
		Messages:  parley.LinkMessages{Prompt: "p ##code##", Success: "s", Failed: "f", Expired: "e"},
		OnSuccess: "https://a.example/ok?x=1", OnFailure: "https://a.example/no",
		CreatedAt: start, ExpiresAt: start.Add(time.Hour), Encrypted: []byte{hash, 0, 255},
	}
}

func (e *env) addLinks(links ...parley.OTPLink) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		for _, l := range links {
			if err := tx.AddLink(e.Context(), l); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *env) link(id parley.OTPID) parley.OTPLink {
	e.Helper()
	l, err := e.store.Link(e.Context(), id)
	e.must(err)
	return l
}

// linksByHash counts the links that are found.
func (e *env) linksByHash(channel parley.ChannelCode, hashes ...[]byte) int {
	e.Helper()
	links, err := e.store.LinksByHash(e.Context(), channel, hashes)
	e.must(err)
	return len(links)
}

var linkTests = map[string]func(*env){
	"a link is found by its id and by the hash of its code": func(e *env) {
		want := newLink(main, ann, 1)
		e.addLinks(want)
		e.same("by id", e.link(want.ID), want)
		too := newLink(main, bob, 2)
		e.addLinks(too)
		hashes := [][]byte{too.Hash}
		for i := range 300 { // more than one statement reads
			hashes = append(hashes, []byte{9, byte(i >> 8), byte(i)})
		}
		got, err := e.store.LinksByHash(e.Context(), main, append(hashes, want.Hash))
		e.must(err)
		e.same("by hash", got, []parley.OTPLink{too, want})
		e.same("by an unknown hash", e.linksByHash(main, []byte{9}), 0)
		e.same("on another channel", e.linksByHash(other, want.Hash), 0)
		e.same("by none", e.linksByHash(main), 0)
		if err := second(e.store.Link(e.Context(), "otl_0")); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
	},

	"a new link ends the one that was open": func(e *env) {
		first, elsewhere, bobs := newLink(main, ann, 1), newLink(other, ann, 1), newLink(main, bob, 2)
		e.addLinks(first, elsewhere, bobs)
		next := newLink(main, ann, 3)
		next.CreatedAt = start.Add(time.Minute)
		e.addLinks(next)
		first.Status, first.EndedAt, first.Encrypted = parley.OTPStatusInvalid, next.CreatedAt, nil
		for _, want := range []parley.OTPLink{first, elsewhere, bobs, next} {
			e.same("link", e.link(want.ID), want)
		}
	},

	"a link moves on": func(e *env) {
		l := newLink(main, ann, 1)
		e.addLinks(l)
		l.Tries, l.Others = 3, 70_000
		e.tx(func(tx *store.Tx) error { return tx.UpdateLink(e.Context(), l) })
		e.same("tried", e.link(l.ID), l)
		l.Status, l.EndedAt = parley.OTPStatusApproved, start.Add(time.Minute)
		e.tx(func(tx *store.Tx) error { return tx.UpdateLink(e.Context(), l) })
		l.Encrypted = nil // it ended
		e.same("approved", e.link(l.ID), l)
		// An approved link is not open, so a new one leaves it as it is.
		e.addLinks(newLink(main, ann, 2))
		e.same("after a new one", e.link(l.ID), l)
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.UpdateLink(e.Context(), newLink(main, ann, 9)) })
	},

	"a code is in use once on a channel": func(e *env) {
		e.addLinks(newLink(main, ann, 1))
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddLink(e.Context(), newLink(main, bob, 1)) })
	},

	"open links expire and are forgotten": func(e *env) {
		early, late, used := newLink(main, ann, 1), newLink(main, bob, 2), newLink(main, "6281100000003@c.us", 3)
		late.ExpiresAt = start.Add(2 * time.Hour)
		used.Status, used.EndedAt = parley.OTPStatusApproved, start
		e.addLinks(early, late, used, newLink(other, ann, 1))
		var got []parley.OTPLink
		e.tx(func(tx *store.Tx) (err error) {
			got, err = tx.ExpireLinks(e.Context(), main, early.ExpiresAt, 10)
			return err
		})
		early.Status, early.EndedAt, early.Encrypted = parley.OTPStatusExpired, early.ExpiresAt, nil
		e.same("expired", got, []parley.OTPLink{early})
		e.same("as stored", e.link(early.ID), early)
		e.same("not due", e.link(late.ID), late)

		var n int
		e.tx(func(tx *store.Tx) (err error) {
			n, err = tx.PurgeOTPs(e.Context(), main, start.Add(time.Minute), 10)
			return err
		})
		e.same("forgotten", n, 1)
		if _, err := e.store.Link(e.Context(), used.ID); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("the used one: %v", err)
		}
		e.same("stored", e.link(early.ID), early)
	},

	"replies are counted by channel and sender": func(e *env) {
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.AddLinkReply(e.Context(), main, ann, start), tx.AddLinkReply(e.Context(), main, ann, start),
				tx.AddLinkReply(e.Context(), main, ann, start.Add(time.Minute)), tx.AddLinkReply(e.Context(), main, bob, start),
				tx.AddLinkReply(e.Context(), other, ann, start))
		})
		replies := func(since time.Time) []time.Time {
			all, err := e.store.LinkReplies(e.Context(), main, ann, since)
			e.must(err)
			return all
		}
		e.same("all", replies(start), []time.Time{start, start, start.Add(time.Minute)})
		e.same("since", replies(start.Add(time.Second)), []time.Time{start.Add(time.Minute)})
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeOTPs(e.Context(), main, start.Add(time.Second), 10)) })
		e.same("after forgetting", replies(start), []time.Time{start.Add(time.Minute)})
	},
}
