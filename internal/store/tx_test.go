package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley"
	"parley/internal/store"
)

var transactionTests = map[string]func(*env){
	"what fails leaves nothing": func(e *env) {
		e.channel(main)
		m := outgoing("A1")
		called := false
		e.wants(errRefused, func(tx *store.Tx) error {
			tx.OnCommit(func() { called = true })
			return errors.Join(
				tx.AddMessage(e.Context(), &m),
				tx.AddToken(e.Context(), parley.Token{ID: "tok_1"}),
				tx.DeleteChannel(e.Context(), main),
				errRefused)
		})
		if called {
			e.Error("OnCommit was called")
		}
		if _, err := e.store.Message(e.Context(), main, m.Ref()); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("message: got %v", err)
		}
		if _, err := e.store.Token(e.Context(), "tok_1"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("token: got %v", err)
		}
		if _, err := e.store.Chat(e.Context(), main, ann); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("chat: got %v", err)
		}
		_, err := e.store.Channel(e.Context(), main)
		e.must(err)
	},

	"what fails does not fail others": func(e *env) {
		const callers = 64
		results := make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				m := outgoing(fmt.Sprint("A", i))
				results[i] = e.store.Tx(e.Context(), func(tx *store.Tx) error {
					if err := tx.AddMessage(e.Context(), &m); err != nil {
						return err
					}
					if i%3 == 0 {
						return errRefused
					}
					return nil
				})
			})
		}
		wg.Wait()
		for i, err := range results {
			m := outgoing(fmt.Sprint("A", i))
			_, found := e.store.Message(e.Context(), main, m.Ref())
			if i%3 == 0 && (!errors.Is(err, errRefused) || !errors.Is(found, parley.ErrNotFound)) {
				e.Errorf("refused %d: got %v, then %v", i, err, found)
			}
			if i%3 != 0 && (err != nil || found != nil) {
				e.Errorf("good %d: got %v, then %v", i, err, found)
			}
		}
	},

	"OnCommit is called in the order of the transactions": func(e *env) {
		const callers = 64
		var order []int64 // needs no lock: one transaction at a time
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				m := outgoing(fmt.Sprint("A", i))
				if err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
					tx.OnCommit(func() { order = append(order, m.Seq) })
					return tx.AddMessage(e.Context(), &m)
				}); err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if len(order) != callers || !slices.IsSorted(order) {
			e.Errorf("order is %v", order)
		}
	},

	"OnCommit is called before Tx returns, once for each": func(e *env) {
		var calls []string
		e.tx(func(tx *store.Tx) error {
			tx.OnCommit(func() { calls = append(calls, "first") })
			tx.OnCommit(func() { calls = append(calls, "second") })
			return nil
		})
		e.same("calls", calls, []string{"first", "second"})
	},

	"a function that runs twice sets its results twice": func(e *env) {
		const callers = 32
		seen := make([]int64, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				m := outgoing(fmt.Sprint("A", i))
				err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
					if err := tx.AddMessage(e.Context(), &m); err != nil {
						return err
					}
					if i == callers/2 {
						return errRefused // makes others run again
					}
					return nil
				})
				if err == nil {
					seen[i] = m.Seq
				}
			})
		}
		wg.Wait()
		for i, seq := range seen {
			if i == callers/2 {
				continue
			}
			m := outgoing(fmt.Sprint("A", i))
			e.same("seq", e.message(m).Seq, seq)
		}
	},

	"a cancelled caller writes nothing": func(e *env) {
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		if err := e.store.Tx(ctx, func(*store.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			e.Errorf("got %v", err)
		}
	},

	"a closed store is not available": func(e *env) {
		e.channel(main)
		e.must(e.store.Close())
		if err := e.store.Tx(e.Context(), func(*store.Tx) error { return nil }); parley.ToCode(err) != parley.Unavailable {
			e.Errorf("tx: got %v", err)
		}
		if _, err := e.store.Channels(e.Context()); parley.ToCode(err) != parley.Unavailable {
			e.Errorf("channels: got %v", err)
		}
	},
}
