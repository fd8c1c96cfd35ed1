package store_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

const hook = parley.WebhookID("whk_1")

var deliveryTests = map[string]func(*env){
	"a delivery comes back as it was stored": func(e *env) {
		want := parley.Delivery{
			Webhook: hook, Event: 5, EventID: parley.NewEventID(start, 1, 5), Type: parley.OTPFailed, Channel: main, Chat: ann,
			State: parley.DeliveryFailed, Attempts: 3, NextAt: start.Add(time.Hour), CreatedAt: start, TriedAt: start.Add(time.Minute),
			EndedAt: start.Add(2 * time.Minute), Took: 1234 * time.Microsecond, Code: 503, Problem: "http_status: no", Response: "try later",
			Earlier: []parley.DeliveryAttempt{
				{Number: 1, At: start, Took: 15 * time.Second, Problem: "timeout: slow"},
				{Number: 2, At: start.Add(5 * time.Second), Took: 99 * time.Microsecond, Code: 500, Problem: "http_status: no",
					Response: "<b>\"oh\"\n</b> 👋"},
			},
		}
		call := callback("https://App.example:8443/ok?x=1", 6)
		added := []parley.Delivery{want, call}
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), added) })
		want.ID, call.ID = added[0].ID, added[1].ID
		got, total, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
		e.must(err)
		e.same("deliveries", got, []parley.Delivery{call, want})
		e.same("total", total, int64(2))
	},

	"of each chat the first one is due, and the next when it has ended": func(e *env) {
		e.deliver(hook, ann, 1, 3)
		e.deliver(hook, bob, 2, 4)
		e.deliver(hook, ann, 5)
		e.same("due", e.due("whk_1", start, 10), []int64{1, 2})
		e.same("due, one", e.due("whk_1", start, 1), []int64{1})
		e.becomes(finished(delivery(hook, ann, 1), parley.DeliveryDone, start))
		e.same("due after the first", e.due("whk_1", start, 10), []int64{2, 3})
		e.becomes(finished(delivery(hook, bob, 2), parley.DeliveryFailed, start), finished(delivery(hook, ann, 3), parley.DeliveryDone, start))
		e.same("due after those", e.due("whk_1", start, 10), []int64{4, 5})
		e.becomes(finished(delivery(hook, bob, 4), parley.DeliveryDone, start), finished(delivery(hook, ann, 5), parley.DeliveryDone, start))
		e.same("due at the end", e.due("whk_1", start, 10), []int64{})
		e.deliver(hook, ann, 6)
		e.same("due when there is more", e.due("whk_1", start, 10), []int64{6})
	},

	"what is planned again is ignored and holds nothing": func(e *env) {
		e.deliver(hook, ann, 1)
		e.becomes(finished(delivery(hook, ann, 1), parley.DeliveryDone, start))
		var again []parley.Delivery
		for n := range int64(150) {
			again = append(again, delivery(hook, ann, n+1))
		}
		again = append(again, delivery(hook, ann, 2))
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), again) })
		e.same("those that were there", []any{again[0].ID.Number(), again[150].ID.Number()}, []any{int64(0), int64(0)})
		for i := range 149 {
			if again[i+1].ID.Number() == 0 || i > 0 && again[i+1].ID.Number() <= again[i].ID.Number() {
				e.Fatalf("the delivery of event %d has the id %s", i+2, again[i+1].ID)
			}
		}
		e.same("due", e.due("whk_1", start, 10), []int64{2})
		_, total, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 1})
		e.must(err)
		e.same("total", total, int64(150))
	},

	"one that rests holds its chat and no other": func(e *env) {
		e.deliver(hook, ann, 1, 2)
		e.deliver(hook, bob, 3)
		rests := delivery(hook, ann, 1)
		rests.Attempts, rests.NextAt, rests.TriedAt, rests.Problem = 1, start.Add(5*time.Second), start, "timeout: slow"
		e.becomes(rests)
		e.same("due", e.due("whk_1", start, 10), []int64{3})
		e.same("due just before", e.due("whk_1", start.Add(5*time.Second-time.Millisecond), 10), []int64{3})
		e.same("due in time", e.due("whk_1", start.Add(5*time.Second), 10), []int64{1, 3})
		next, err := e.store.NextDelivery(e.Context(), "whk_1", start)
		e.must(err)
		e.same("next", next, start.Add(5*time.Second))
		next, err = e.store.NextDelivery(e.Context(), "whk_1", start.Add(5*time.Second))
		e.must(err)
		e.same("next after that", next, time.Time{})
		e.tx(func(tx *store.Tx) error { return tx.RetryDeliveries(e.Context(), hook, start) })
		e.same("due when hurried", e.due("whk_1", start, 10), []int64{1, 3})
	},

	"the same contact on two channels and at two webhooks is several chats": func(e *env) {
		e.deliver(hook, ann, 1)
		e.deliver("whk_2", ann, 2)
		d := delivery(hook, ann, 3)
		d.Channel = other
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), []parley.Delivery{d}) })
		e.same("due at the first", e.due("whk_1", start, 10), []int64{1, 3})
		e.same("due at the second", e.due("whk_2", start, 10), []int64{2})
	},

	"callbacks wait for nothing": func(e *env) {
		a, b, c := callback("https://app.example/ok", 1), callback("https://APP.example/no?x=1", 2), callback("http://app.example/ok", 3)
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), []parley.Delivery{a, b, c}) })
		e.deliver(hook, ann, 4)
		endpoints, last, err := e.store.CallbackEndpoints(e.Context(), 0)
		e.must(err)
		e.same("endpoints", endpoints, []store.WaitingEndpoint{{Endpoint: "http://app.example"}, {Endpoint: "https://app.example"}})
		e.same("last event", last, int64(3))
		waiting, err := e.store.WaitingEndpoints(e.Context())
		e.must(err)
		e.same("where anything waits", len(waiting), 3)
		e.same("due", e.due("https://app.example", start, 10), []int64{1, 2})
		for _, d := range []parley.Delivery{a, b} {
			e.becomes(finished(d, parley.DeliveryDone, start))
		}
		c.NextAt = start.Add(time.Hour)
		e.becomes(c)
		endpoints, _, err = e.store.CallbackEndpoints(e.Context(), 0)
		e.must(err)
		e.same("endpoints left", endpoints, []store.WaitingEndpoint{{Endpoint: "http://app.example", DueAt: start.Add(time.Hour)}})
		endpoints, last, err = e.store.CallbackEndpoints(e.Context(), 3)
		e.must(err)
		e.same("endpoints of later events", len(endpoints), 0)
		e.same("last event then", last, int64(3))
	},

	"the oldest of a webhook, and the oldest that was never tried": func(e *env) {
		oldest := func(untried bool) int64 {
			d, err := e.store.OldestDelivery(e.Context(), hook, untried)
			e.must(err)
			return d.Event
		}
		e.deliver(hook, ann, 2, 3)
		e.deliver(hook, bob, 4)
		e.deliver("whk_2", ann, 1)
		e.same("oldest", []int64{oldest(false), oldest(true)}, []int64{2, 2})
		rests := delivery(hook, ann, 2)
		rests.TriedAt, rests.NextAt = start, start.Add(time.Hour)
		e.becomes(rests)
		e.same("oldest after a try", []int64{oldest(false), oldest(true)}, []int64{2, 4})
		if _, err := e.store.OldestDelivery(e.Context(), "whk_3", false); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("of a webhook without any: %v", err)
		}
	},

	"waiting deliveries are counted": func(e *env) {
		e.deliver(hook, ann, 1, 2)
		e.deliver("whk_2", ann, 3)
		e.becomes(finished(delivery(hook, ann, 1), parley.DeliveryFailed, start))
		for webhook, want := range map[parley.WebhookID]int64{"": 2, hook: 1, "whk_2": 1, "whk_3": 0} {
			n, err := e.store.CountWaiting(e.Context(), webhook)
			e.must(err)
			e.same("waiting for "+string(webhook), n, want)
		}
	},

	"a deleted delivery is not updated": func(e *env) {
		e.deliver(hook, ann, 1)
		e.becomes(finished(delivery(hook, ann, 9), parley.DeliveryDone, start), finished(delivery(hook, ann, 1), parley.DeliveryDone, start))
		_, total, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
		e.must(err)
		e.same("total", total, int64(1))
	},

	"deliveries are found by what is asked": func(e *env) {
		var made []parley.DeliveryID
		for n := range int64(6) {
			d := delivery(hook, ann, n+1)
			d.CreatedAt = start.Add(time.Duration(n) * time.Second)
			if n >= 3 {
				d.Webhook, d.Channel = "whk_2", other
			}
			d.State = parley.DeliveryState(n % 3)
			d.Attempts = int(n)
			added := []parley.Delivery{d}
			e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), added) })
			made = append(made, added[0].ID)
		}
		state := func(s parley.DeliveryState) *parley.DeliveryState { return &s }
		for _, test := range []struct {
			name string
			q    parley.DeliveryQuery
			want []int64
		}{
			{"all", parley.DeliveryQuery{}, []int64{6, 5, 4, 3, 2, 1}},
			{"ids", parley.DeliveryQuery{IDs: []parley.DeliveryID{made[0], made[1], made[2], parley.NewDeliveryID(99), "dlv_none"}},
				[]int64{3, 2, 1}},
			{"events", parley.DeliveryQuery{Events: []int64{2, 4, 6}}, []int64{6, 4, 2}},
			{"webhook", parley.DeliveryQuery{Webhook: "whk_2"}, []int64{6, 5, 4}},
			{"channel", parley.DeliveryQuery{Channel: main}, []int64{3, 2, 1}},
			{"waiting", parley.DeliveryQuery{State: state(parley.DeliveryWaiting)}, []int64{4, 1}},
			{"retrying", parley.DeliveryQuery{State: state(parley.DeliveryWaiting), Tried: true}, []int64{4}},
			{"done", parley.DeliveryQuery{State: state(parley.DeliveryDone)}, []int64{5, 2}},
			{"failed", parley.DeliveryQuery{State: state(parley.DeliveryFailed)}, []int64{6, 3}},
			{"since", parley.DeliveryQuery{Since: start.Add(4 * time.Second)}, []int64{6, 5}},
			{"until", parley.DeliveryQuery{Until: start.Add(2 * time.Second)}, []int64{2, 1}},
			{"several", parley.DeliveryQuery{Webhook: hook, Channel: main, State: state(parley.DeliveryDone),
				Since: start, Until: start.Add(time.Hour), Events: []int64{1, 2, 3}}, []int64{2}},
		} {
			found, total, err := e.store.Deliveries(e.Context(), test.q, parley.Page{Limit: 10})
			e.must(err)
			e.same(test.name, places(found), test.want)
			e.same("total of "+test.name, total, int64(len(test.want)))
		}
		found, _, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
		e.must(err)
		page := parley.Page{Limit: 2, Beyond: found[2].ID.Number()}
		found, total, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, page)
		e.must(err)
		e.same("page", []any{places(found), total}, []any{[]int64{3, 2}, int64(6)})
		found, err = e.store.ListDeliveries(e.Context(), parley.DeliveryQuery{OldestFirst: true}, page)
		e.must(err)
		e.same("page of the oldest first", places(found), []int64{5, 6})
	},

	"a replay makes new what has ended, in order": func(e *env) {
		e.deliver(hook, ann, 1, 2, 3)
		for _, n := range []int64{1, 2} {
			e.becomes(finished(delivery(hook, ann, n), parley.DeliveryState(n), start))
		}
		e.same("due before", e.due("whk_1", start, 10), []int64{3})
		replay := func(q parley.DeliveryQuery, limit int) (n int) {
			e.tx(func(tx *store.Tx) (err error) {
				n, err = tx.ReplayDeliveries(e.Context(), q, start, limit)
				return err
			})
			return n
		}
		e.same("replayed", replay(parley.DeliveryQuery{Webhook: hook}, 1), 1)
		e.same("replayed after that", replay(parley.DeliveryQuery{Webhook: hook}, 10), 1)
		e.same("replayed at last", replay(parley.DeliveryQuery{Webhook: hook}, 10), 0)
		// The first one stays first; then they come in the order of events.
		for _, n := range []int64{3, 1, 2} {
			e.same("due", e.due("whk_1", start, 10), []int64{n})
			e.becomes(finished(delivery(hook, ann, n), parley.DeliveryDone, start))
		}
		want := delivery(hook, ann, 2)
		want.ID = e.storedDelivery(want).ID
		one := parley.DeliveryQuery{IDs: []parley.DeliveryID{want.ID}}
		e.same("replayed by id", replay(one, 10), 1)
		found, _, err := e.store.Deliveries(e.Context(), one, parley.Page{Limit: 1})
		e.must(err)
		want.NextAt = start
		want.Earlier = []parley.DeliveryAttempt{{Number: 1, At: start}}
		e.same("delivery", found[0], want)
	},

	"the attempts of a delivery survive retries and replays, and are purged with it": func(e *env) {
		d := delivery(hook, ann, 1)
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), []parley.Delivery{d}) })
		q := parley.DeliveryQuery{Webhook: hook}
		read := func() parley.Delivery {
			found, _, err := e.store.Deliveries(e.Context(), q, parley.Page{Limit: 1})
			e.must(err)
			if len(found) != 1 {
				e.Fatalf("%d deliveries", len(found))
			}
			return found[0]
		}
		fails := func(after time.Duration, code int, problem, answer string) {
			due, err := e.store.DueDeliveries(e.Context(), "whk_1", start.Add(after), 1)
			e.must(err)
			tried := due[0]
			tried.SaveAttempt()
			tried.Attempts++
			tried.TriedAt, tried.Took, tried.Code, tried.Problem, tried.Response = start.Add(after), time.Millisecond, code, problem, answer
			e.becomes(tried)
		}
		fails(0, 500, "http_status: no", "oh")
		e.same("earlier after the first", len(read().Earlier), 0)
		fails(time.Second, 0, "timeout: slow", "")
		e.becomes(finished(read(), parley.DeliveryFailed, start.Add(time.Second)))
		e.tx(func(tx *store.Tx) error { return second(tx.ReplayDeliveries(e.Context(), q, start, 10)) })
		want := []parley.DeliveryAttempt{
			{Number: 1, At: start, Took: time.Millisecond, Code: 500, Problem: "http_status: no", Response: "oh"},
			{Number: 2, At: start.Add(time.Second), Took: time.Millisecond, Problem: "timeout: slow"},
		}
		again := read()
		e.same("history after a replay", again.History(), want)
		e.same("state after a replay", []any{again.State, again.Attempts, again.TriedAt}, []any{parley.DeliveryWaiting, 0, time.Time{}})
		fails(time.Minute, 503, "http_status: busy", "later")
		again = read()
		e.same("history at last", again.History(), append(want,
			parley.DeliveryAttempt{Number: 3, At: start.Add(time.Minute), Took: time.Millisecond, Code: 503,
				Problem: "http_status: busy", Response: "later"}))
		e.becomes(finished(again, parley.DeliveryDone, start))
		e.tx(func(tx *store.Tx) error {
			return second(tx.PurgeDeliveries(e.Context(), parley.DeliveryDone, start.Add(time.Second), 10))
		})
		_, total, err := e.store.Deliveries(e.Context(), q, parley.Page{Limit: 1})
		e.must(err)
		e.same("left", total, int64(0))
	},

	"an outcome is ignored if another one was stored meanwhile": func(e *env) {
		e.deliver(hook, ann, 1, 2)
		old := e.storedDelivery(delivery(hook, ann, 1))
		fails := old
		fails.Attempts, fails.NextAt, fails.Problem = 1, start.Add(time.Hour), "timeout: slow"
		e.becomes(finished(delivery(hook, ann, 1), parley.DeliveryDone, start))
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{{Delivery: fails, Before: old.Attempts}})
		})
		e.same("state after a late failure", e.storedDelivery(old).State, parley.DeliveryDone)

		two := e.storedDelivery(delivery(hook, ann, 2))
		second := two
		second.Attempts, second.NextAt = 1, start.Add(time.Minute)
		e.becomes(second)
		e.tx(func(tx *store.Tx) error {
			late := store.DeliveryResult{Delivery: finished(two, parley.DeliveryFailed, start), Before: two.Attempts}
			return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{late})
		})
		got := e.storedDelivery(two)
		e.same("the newer attempt", []any{got.State, got.Attempts, got.NextAt}, []any{parley.DeliveryWaiting, 1, start.Add(time.Minute)})
	},

	"a reset during attempts leaves no chat held": func(e *env) {
		const all = 120 // more than two batches of the purge
		for steps := range 8 {
			chat, base := parley.ContactID(fmt.Sprintf("62811%d@c.us", steps)), int64(steps*1000)
			for n := range int64(all) {
				e.deliver(hook, chat, base+n+1)
			}
			inFlight, err := e.store.DueDeliveries(e.Context(), "whk_1", start, 1)
			e.must(err)
			finish := func(d parley.Delivery) {
				e.tx(func(tx *store.Tx) error {
					done := store.DeliveryResult{Delivery: finished(d, parley.DeliveryDone, start), Before: d.Attempts}
					return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{done})
				})
			}
			e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
			next, err := e.store.NextDelivery(e.Context(), "whk_1", start)
			e.must(err)
			e.same("look again", next, start.Add(time.Second))
			purge := func() (more bool) {
				e.tx(func(tx *store.Tx) (err error) {
					_, more, err = tx.PurgeChannels(e.Context())
					return err
				})
				return more
			}
			for range steps {
				purge()
			}
			finish(inFlight[0])
			var got []int64
			for more := true; more; { // whatever is visible is delivered while the purge goes on
				more = purge()
				for {
					due, err := e.store.DueDeliveries(e.Context(), "whk_1", start, 10)
					e.must(err)
					if len(due) == 0 {
						break
					}
					for _, d := range due {
						got = append(got, d.Event-base)
						finish(d)
					}
				}
			}
			e.same(fmt.Sprint("delivered, with steps before: ", steps), len(got), all-1)
			e.same("in order", slices.IsSorted(got), true)
		}
	},

	"callbacks are replayed without waiting": func(e *env) {
		for n := range int64(2) {
			e.tx(func(tx *store.Tx) error {
				return tx.AddDeliveries(e.Context(), []parley.Delivery{finished(callback("https://app.example/ok", n+1), parley.DeliveryFailed, start)})
			})
		}
		e.tx(func(tx *store.Tx) error {
			return second(tx.ReplayDeliveries(e.Context(), parley.DeliveryQuery{Events: []int64{1, 2}}, start, 10))
		})
		e.same("due", e.due("https://app.example", start, 10), []int64{1, 2})
	},

	"old deliveries are forgotten once they have ended": func(e *env) {
		e.deliver(hook, ann, 1, 2, 3, 4)
		for n := range int64(3) {
			e.becomes(finished(delivery(hook, ann, n+1), parley.DeliveryDone, start.Add(time.Duration(n)*time.Second)))
		}

		purge := func(before time.Time, limit int) (n int) {
			e.tx(func(tx *store.Tx) (err error) {
				n, err = tx.PurgeDeliveries(e.Context(), parley.DeliveryDone, before, limit)
				return err
			})
			return n
		}
		later := start.Add(2 * time.Second)
		e.same("purged", []int{purge(later, 1), purge(later, 10), purge(later, 10)}, []int{1, 1, 0})
		left, _, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
		e.must(err)
		e.same("left", places(left), []int64{4, 3})
	},
}
