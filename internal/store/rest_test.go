package store_test

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

// restTests run the statements that no other test of the suite runs, so that their plans are known.
var restTests = map[string]func(*env){
	"messages by their ids": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		for _, test := range []struct {
			channel parley.ChannelCode
			ref     parley.MessageRef
			want    []string
		}{
			{"", m.Ref(), []string{"A1"}},
			{main, m.Ref(), []string{"A1"}},
			{main, parley.MessageRef{ID: "A1"}, []string{"A1"}},
			{other, parley.MessageRef{ID: "A1"}, nil},
			{"", parley.MessageRef{ID: "A2"}, nil},
		} {
			found, err := e.store.MessagesNamed(e.Context(), test.channel, test.ref, 10)
			e.must(err)
			e.same("named", ids(found), test.want)
		}
		m.Content, m.EditedAt = parley.Text{Body: "edited"}, start
		e.tx(func(tx *store.Tx) error { return tx.EditMessage(e.Context(), &m) })
		e.same("edited", e.message(m).Content.Text(), "edited")
		e.tx(func(tx *store.Tx) error { return tx.EraseBodies(e.Context(), []int64{m.Seq}) })
		e.same("erased", e.message(m).Content.Text(), "")
	},

	"counters of all and of some": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		now := time.Now()
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Sent, nil, now))
		})
		since := now.Add(-time.Hour)
		sums, err := e.store.Counters(e.Context(), since)
		e.must(err)
		e.same("sum", sums[store.CountSent], int64(1))
		minutes, err := e.store.CounterSteps(e.Context(), store.CounterQuery{From: since, Step: time.Minute})
		e.must(err)
		e.same("minutes", len(minutes), 1)
		active, err := e.store.ChannelActivity(e.Context(), since, []parley.ChannelCode{main, other})
		e.must(err)
		e.same("sent", []int64{int64(active[main].Sent), int64(active[other].Sent)}, []int64{1, 0})
		for round := range 8 { // two counters at least, one by one
			e.tx(func(tx *store.Tx) error {
				more, err := tx.PurgeCounters(e.Context(), now.Add(50*24*time.Hour), 1)
				if err == nil && !more && round < 2 {
					err = fmt.Errorf("round %d: nothing is left", round)
				}
				return err
			})
		}
		if sums, err = e.store.Counters(e.Context(), since); err != nil || len(sums) != 0 {
			e.Errorf("after the purge: %v, %v", sums, err)
		}
	},

	"deletions": func(e *env) {
		ctx := e.Context()
		before, err := e.store.Channel(ctx, other)
		e.must(err)
		id := before.ID
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(ctx, other) })
		found, err := e.store.Deletions(ctx)
		e.must(err)
		e.same("deletions", len(found), 1)
		_, err = e.store.NetworkDeletions(ctx)
		e.must(err)
		n, err := e.store.CountDeletion(ctx, id)
		e.must(err)
		e.same("messages", n, int64(0))
		e.tx(func(tx *store.Tx) error { return tx.SetDeletionMessages(ctx, id, n) })
		e.tx(func(tx *store.Tx) error { return tx.SetDeletionProblem(ctx, id, "busy") })
		e.tx(func(tx *store.Tx) error { return tx.LeaveNetwork(ctx, id) })
		e.purge()
		e.tx(func(tx *store.Tx) error { return tx.PurgeDeletions(ctx, time.Now().Add(time.Hour)) })
		found, err = e.store.Deletions(ctx)
		e.must(err)
		e.same("deletions after the purge", len(found), 0)
	},

	"small ones": func(e *env) {
		ctx := e.Context()
		used, err := e.store.UsedNetworks(ctx)
		e.must(err)
		e.same("networks", used, []parley.NetworkName{parley.Sandbox})
		e.tx(func(tx *store.Tx) error {
			return tx.AddToken(ctx, parley.Token{ID: "t1", Name: "one", Kind: parley.AdminToken})
		})
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateToken(ctx, parley.Token{ID: "t1", Name: "two", Role: parley.Viewer})
		})
		names, err := e.store.TokenNames(ctx, []parley.TokenID{"t1", "t2"})
		e.must(err)
		e.same("names", names, map[parley.TokenID]string{"t1": "two"})
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return second(tx.Link(ctx, "none")) })
		e.tx(func(tx *store.Tx) error { return parley.IgnoreNotFound(tx.RemoveSigningKey(ctx, "none")) })
		sessions, err := e.store.Sessions(ctx, start)
		e.must(err)
		e.same("sessions", len(sessions), 0)
		e.tx(func(tx *store.Tx) error {
			return tx.RetryDelivery(ctx, parley.Delivery{ID: parley.NewDeliveryID(1)}, start)
		})
	},
}
