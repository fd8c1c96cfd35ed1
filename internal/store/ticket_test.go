package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store"
)

func fullTicket(hash string) parley.Ticket {
	return parley.Ticket{
		Hash: []byte(hash), Purpose: parley.PairTicket, Channel: main,
		CreatedAt: start, ExpiresAt: start.Add(time.Hour), UsedAt: start.Add(time.Minute),
		Role: parley.Support, Name: "Ayu", Token: "tok_1", EndsAt: start.Add(2 * time.Hour),
		LastUse: parley.TokenUse{At: start, From: "192.0.2.1", UserAgent: "Firefox"}, Parent: []byte("parent"),
	}
}

// freshTicket is one that was not used.
func freshTicket(hash string) parley.Ticket {
	t := fullTicket(hash)
	t.UsedAt = time.Time{}
	return t
}

var ticketTests = map[string]func(*env){
	"a ticket comes back as it was stored": func(e *env) {
		for _, want := range []parley.Ticket{fullTicket("a"), {Hash: []byte("b"), Purpose: parley.SessionTicket, ExpiresAt: start}} {
			e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), want) })
			got, err := e.store.Ticket(e.Context(), want.Hash)
			e.must(err)
			e.same("ticket", got, want)
		}
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddTicket(e.Context(), fullTicket("a")) })
	},

	"tickets of a token end together": func(e *env) {
		mine, other, local := freshTicket("a"), freshTicket("b"), freshTicket("c")
		other.Token, local.Token = "tok_2", ""
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.AddTicket(e.Context(), mine), tx.AddTicket(e.Context(), other), tx.AddTicket(e.Context(), local))
		})
		e.tx(func(tx *store.Tx) error { return tx.EndTickets(e.Context(), "tok_1", start) })
		for hash, active := range map[string]bool{"a": false, "b": true, "c": true} {
			got, err := e.store.Ticket(e.Context(), []byte(hash))
			e.must(err)
			e.same("ticket "+hash+" is active", got.Active(start), active)
		}
	},

	"a session ends with the session that it came from": func(e *env) {
		add := func(hash, parent string, used bool) {
			t := freshTicket(hash)
			t.Parent = []byte(parent)
			if parent == "" {
				t.Parent = nil
			}
			if used {
				t.UsedAt = start
			}
			e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), t) })
		}
		add("root", "", false)
		add("child", "root", true) // signed out already, which does not shield what came from it
		add("grandchild", "child", false)
		add("other", "", false)
		add("other child", "other", false)
		e.tx(func(tx *store.Tx) error { return tx.EndSession(e.Context(), []byte("root"), start) })
		for hash, active := range map[string]bool{"root": false, "grandchild": false, "other": true, "other child": true} {
			got, err := e.store.Ticket(e.Context(), []byte(hash))
			e.must(err)
			e.same(hash+" is active", got.Active(start), active)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.EndSession(e.Context(), []byte("root"), start) })
	},

	"an unknown ticket is not found": func(e *env) {
		if _, err := e.store.Ticket(e.Context(), []byte("x")); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			return second(tx.UseTicket(e.Context(), []byte("x"), start))
		})
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.ExtendTicket(e.Context(), []byte("x"), start, parley.TokenUse{}) })
	},

	"of many that use a ticket one succeeds": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), freshTicket("a")) })
		var won atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
					return second(tx.UseTicket(e.Context(), []byte("a"), start))
				})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, parley.ErrNotFound):
					e.Errorf("use: %v", err)
				}
			})
		}
		all.Wait()
		e.same("how many used it", won.Load(), int32(1))
		got, err := e.store.Ticket(e.Context(), []byte("a"))
		e.must(err)
		e.same("used at", got.UsedAt, start)
	},

	"using a ticket tells what it was for": func(e *env) {
		want := freshTicket("a")
		e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), want) })
		var got parley.Ticket
		e.tx(func(tx *store.Tx) (err error) {
			got, err = tx.UseTicket(e.Context(), want.Hash, start.Add(time.Minute))
			return err
		})
		want.UsedAt = start.Add(time.Minute)
		e.same("ticket", got, want)
	},

	"an expired ticket cannot be used, until its end is moved": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), freshTicket("a")) })
		end := start.Add(time.Hour)
		use := func(tx *store.Tx) error { return second(tx.UseTicket(e.Context(), []byte("a"), end)) }
		e.wants(parley.ErrNotFound, use)
		e.tx(func(tx *store.Tx) error {
			return tx.ExtendTicket(e.Context(), []byte("a"), end.Add(time.Hour), parley.TokenUse{At: end, From: "192.0.2.1"})
		})
		e.tx(use)
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { // what is used up stays so
			return tx.ExtendTicket(e.Context(), []byte("a"), end.Add(2*time.Hour), parley.TokenUse{})
		})
	},

	"tickets that ended are forgotten": func(e *env) {
		old, young := freshTicket("old"), freshTicket("young")
		old.ExpiresAt = start
		for _, t := range []parley.Ticket{old, young} {
			e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), t) })
		}
		e.tx(func(tx *store.Tx) error { return tx.PurgeTickets(e.Context(), start.Add(time.Minute)) })
		if _, err := e.store.Ticket(e.Context(), old.Hash); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("the old ticket: %v", err)
		}
		e.must(second(e.store.Ticket(e.Context(), young.Hash)))
	},

	"a channel's tickets go with it": func(e *env) {
		e.channel(main)
		e.tx(func(tx *store.Tx) error { return tx.AddTicket(e.Context(), freshTicket("a")) })
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		if _, err := e.store.Ticket(e.Context(), []byte("a")); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
	},
}
