package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var counterTests = map[string]func(*env){
	"counters come in steps of minutes and of hours, of all channels and of one": func(e *env) {
		sent, failed := outgoing("A1"), outgoing("A2")
		e.add(&sent, &failed)
		e.tx(func(tx *store.Tx) error {
			if _, err := tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Sent, nil, time.Now()); err != nil {
				return err
			}
			_, err := tx.AdvanceMessage(e.Context(), main, failed.Ref(), parley.Failed, &parley.Failure{Code: parley.Blocked}, time.Now())
			return err
		})
		for _, step := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour} {
			from := time.Now().Truncate(step).Add(-3 * step)
			for channel, want := range map[parley.ChannelCode]int64{"": 1, main: 1, "other": 0} {
				steps, err := e.store.CounterSteps(e.Context(), store.CounterQuery{Channel: channel, From: from, Step: step})
				e.must(err)
				total := map[store.Counter]int64{}
				for i, counts := range steps {
					if i < 3 || i > 4 { // 4: a step began meanwhile
						e.Errorf("step %d of %s", i, step)
					}
					for what, n := range counts {
						total[what] += n
					}
				}
				e.same("sent", total[store.CountSent], want)
				e.same("failed", total[store.CountFailed], want)
				e.same("blocked", total[store.CountFailedFor(parley.Blocked)], want)
			}
		}
	},

	"old counters of a channel are summed up by the steps of charts": func(e *env) {
		sent := outgoing("A1")
		e.add(&sent)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Sent, nil, time.Now()))
		})
		now := time.Now()
		for _, unit := range []struct {
			step  time.Duration
			steps int64
			later time.Duration
		}{{time.Minute, 10, 2*time.Hour + 20*time.Minute}, {time.Hour, 4, 8*24*time.Hour + 8*time.Hour}} {
			e.tx(func(tx *store.Tx) error { return second(tx.PurgeCounters(e.Context(), now.Add(unit.later), 100)) })
			for _, channel := range []parley.ChannelCode{"", main} {
				from := now.Truncate(time.Duration(unit.steps) * unit.step)
				steps, err := e.store.CounterSteps(e.Context(), store.CounterQuery{Channel: channel, From: from, Step: unit.step})
				e.must(err)
				var total int64
				for at, counts := range steps {
					if total += counts[store.CountSent]; channel == main && at%unit.steps != 0 {
						e.Errorf("there are counters at step %d of %s", at, unit.step)
					}
				}
				e.same("sent", total, int64(1))
			}
		}
	},

	"attempts of webhooks are counted with their time": func(e *env) {
		done, waits := newCallback(5), newCallback(6)
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), []parley.Delivery{done, waits}) })
		waits.Attempts, waits.Took, waits.TriedAt = 1, 3*time.Second, start
		done.Took = 30 * time.Millisecond
		e.becomes(finished(done, parley.DeliveryDone, start), waits)
		counts, err := e.store.WebhookCounters(e.Context(), time.Now().Add(-time.Hour))
		e.must(err)
		e.same("counters", counts, map[parley.WebhookID]map[store.Counter]int64{hook: {
			store.CountWebhookDone: 1, store.CountAttemptFailed: 1,
			store.CountWebhookTook.Bucket(30 * time.Millisecond): 1, store.CountWebhookTook.Bucket(3 * time.Second): 1}})
		steps, err := e.store.CounterSteps(e.Context(),
			store.CounterQuery{Webhook: "whk_other", From: time.Now().Truncate(time.Hour), Step: time.Hour})
		e.must(err)
		e.same("of another webhook", len(steps), 0)
	},

	"messages that wait are counted by channel": func(e *env) {
		one, two := outgoing("A1"), outgoing("A2")
		e.add(&one, &two)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, one.Ref(), parley.Sent, nil, start)
			return err
		})
		counts, err := e.store.PendingByChannel(e.Context())
		e.must(err)
		e.same("main", counts[main], 1)
	},
}

// newCallback is a delivery of an event to the webhook, each in a chat of its own.
func newCallback(event int64) parley.Delivery {
	return parley.Delivery{Webhook: hook, Event: event, EventID: parley.NewEventID(start, 1, event), Type: parley.OTPFailed, Channel: main,
		Chat: parley.NewContactID("62812000000" + string(rune('0'+event))), CreatedAt: start}
}
