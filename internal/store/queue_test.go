package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var queueTests = map[string]func(*env){
	"the queue is what waits, by priority": func(e *env) {
		one, urgent, two, sent, in, elsewhere := outgoing("A1"), outgoing("A2"), outgoing("A3"), outgoing("A4"), incoming("A5"), outgoing("A6")
		op, urgentToo, first := outgoing("A7"), outgoing("A8"), outgoing("A9")
		op.Content = parley.Delete{Target: one.Ref()}
		urgent.Priority, urgentToo.Priority, first.Priority = parley.PriorityStranger, parley.PriorityStranger, parley.PriorityKnown
		elsewhere.Channel = other
		e.add(&one, &urgent, &two, &sent, &in, &elsewhere, &op, &urgentToo, &first)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Sent, nil, start)
			return err
		})
		queue, err := e.store.Queue(e.Context(), main)
		e.must(err)
		e.same("queue", queue, []parley.Queued{first.Queued(), urgent.Queued(), urgentToo.Queued(), one.Queued(), two.Queued(), op.Queued()})
		none, err := e.store.Queue(e.Context(), "nobody")
		e.must(err)
		e.same("of an unknown channel", len(none), 0)
	},

	"messages are read by their seqs": func(e *env) {
		one, two, in, elsewhere := outgoing("A1"), outgoing("A2"), incoming("A3"), outgoing("A4")
		elsewhere.Channel = other
		e.add(&one, &two, &in, &elsewhere)
		found, err := e.store.Messages(e.Context(), main, []int64{one.Seq, in.Seq, elsewhere.Seq, 1 << 40})
		e.must(err)
		e.same("messages", found, []parley.Message{one, in})
		none, err := e.store.Messages(e.Context(), main, nil)
		e.must(err)
		e.same("of no seqs", len(none), 0)
	},

	"a delay is kept": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			return tx.DelayMessage(e.Context(), main, m.Ref(), 3, start.Add(time.Minute))
		})
		m.Attempts, m.NextAttempt = 3, start.Add(time.Minute)
		e.same("message", e.message(m), m)
	},

	"failing a pool fails what waits of it": func(e *env) {
		sent, one, two, single := outgoing("A1"), outgoing("A2"), outgoing("A3"), outgoing("A4")
		another, elsewhere := outgoing("A5"), outgoing("A6")
		sent.Pool, one.Pool, two.Pool, another.Pool, elsewhere.Pool = "pool_1", "pool_1", "pool_1", "pool_2", "pool_1"
		elsewhere.Channel = other
		e.add(&sent, &one, &two, &single, &another, &elsewhere)
		why := parley.Failure{Code: parley.NotSent, Message: "An earlier message failed."}
		later := start.Add(time.Minute)
		var failed, again []parley.MessageRef
		e.tx(func(tx *store.Tx) (err error) {
			if _, err := tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Sent, nil, start); err != nil {
				return err
			}
			failed, err = tx.FailPool(e.Context(), main, "pool_1", why, later)
			return err
		})
		e.same("failed", failed, []parley.MessageRef{one.Ref(), two.Ref()})
		for _, m := range []parley.Message{one, two} {
			m.Status, m.Failure, m.UpdatedAt = parley.Failed, &why, later
			e.same("failed message", e.message(m), m)
		}
		for _, m := range []parley.Message{single, another, elsewhere} {
			e.same("message of no concern", e.message(m), m)
		}
		e.same("sent message", e.message(sent).Status, parley.Sent)
		e.tx(func(tx *store.Tx) (err error) {
			again, err = tx.FailPool(e.Context(), main, "pool_1", why, later)
			return err
		})
		e.same("failed the second time", len(again), 0)
	},

	"the empty pool is nobody's": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.FailPool(e.Context(), main, "", parley.Failure{Code: parley.NotSent}, start)
			return err
		})
		e.same("message", e.message(m), m)
	},
}
