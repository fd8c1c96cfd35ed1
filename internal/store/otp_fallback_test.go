package store_test

import (
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

func newFallback(id parley.OTPID, due time.Time) parley.Fallback {
	return parley.Fallback{ID: id, Channel: main, DueAt: due, ExpiresAt: start.Add(5 * time.Minute), Turns: 1, Message: "A1", To: ann,
		Channels: []parley.FallbackHop{{ID: 1, Code: main}, {ID: 2, Code: other}}, Request: "req_1", Token: "tok_1",
		Priority: parley.PriorityKnown}
}

func (e *env) fallback(id parley.OTPID) (f parley.Fallback) {
	e.Helper()
	e.tx(func(tx *store.Tx) (err error) {
		f, err = tx.Fallback(e.Context(), id)
		return err
	})
	return f
}

// failures lists the events of codes that failed.
func (e *env) failures() (all []string) {
	e.Helper()
	events, _, err := e.store.Events(e.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.OTPFailed}}, 100)
	e.must(err)
	for _, event := range events {
		all = append(all, fmt.Sprint(event.Channel, " ", string(event.Data)))
	}
	return all
}

var fallbackTests = map[string]func(*env){
	"codes wait for their next channel in order": func(e *env) {
		first, next := newFallback("otc_1", start.Add(time.Second)), newFallback("otc_2", start)
		l := newLedger(main, ann)
		l.Code.ID = first.ID
		e.putLedgers(l)
		e.tx(func(tx *store.Tx) error {
			for _, f := range []parley.Fallback{first, next, newFallback("otc_3", start.Add(time.Minute)), newFallback("otc_4", time.Time{})} {
				if err := tx.PutFallback(e.Context(), f); err != nil {
					return err
				}
			}
			return nil
		})
		e.same("tried", e.ledger(main, ann).Code.Tried, []parley.ChannelCode{main})
		due := func(until time.Time, limit int) (ids []parley.OTPID) {
			all, err := e.store.DueFallbacks(e.Context(), until, limit)
			e.must(err)
			for _, f := range all {
				ids = append(ids, f.ID)
			}
			return ids
		}
		some := func(want bool) {
			e.Helper()
			got, err := e.store.HasFallbacks(e.Context())
			e.must(err)
			e.same("some may go on", got, want)
		}
		some(true)
		e.same("due", due(start.Add(time.Second), 10), []parley.OTPID{"otc_2", "otc_1"})
		e.same("limited", due(start.Add(time.Second), 1), []parley.OTPID{"otc_2"})
		e.same("as it was stored", e.fallback("otc_1"), first)
		first.Turns, first.Message, first.DueAt = 2, "", start.Add(time.Hour)
		e.tx(func(tx *store.Tx) error { return tx.PutFallback(e.Context(), first) })
		e.same("changed", e.fallback("otc_1"), first)
		e.same("tried", e.ledger(main, ann).Code.Tried, []parley.ChannelCode{main, other})
		e.tx(func(tx *store.Tx) error { return tx.StopFallback(e.Context(), "otc_2") })
		e.same("after a stop", due(start.Add(time.Second), 10), []parley.OTPID(nil))
		e.tx(func(tx *store.Tx) error { return tx.DeleteFallback(e.Context(), "otc_1") })
		e.same("deleted", e.ledger(main, ann).Code.Tried, []parley.ChannelCode(nil))
		e.tx(func(tx *store.Tx) error { return tx.CorrectOTPTimes(e.Context(), main, start) })
		e.same("the clock was ahead", due(start, 10), []parley.OTPID{"otc_3"})
		e.tx(func(tx *store.Tx) error {
			_, err := tx.PurgeOTPs(e.Context(), main, start.Add(time.Hour), 100)
			return err
		})
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return second(tx.Fallback(e.Context(), "otc_3")) })
		some(false)
	},

	"a failed copy goes on or is published": func(e *env) {
		fail := func(m parley.Message, id parley.OTPID, why parley.FailureCode) {
			e.tx(func(tx *store.Tx) error { return tx.FailCode(e.Context(), &m, id, why, start) })
		}
		copied := outgoing("A1")
		fail(copied, "otc_0", parley.Refused) // its request named no channels
		e.tx(func(tx *store.Tx) error {
			return tx.PutFallback(e.Context(), newFallback("otc_1", start.Add(time.Minute)))
		})
		fail(outgoing("A2"), "otc_1", parley.Refused) // another copy
		e.same("another one", e.fallback("otc_1").DueAt, start.Add(time.Minute))
		fail(copied, "otc_1", parley.Refused)
		e.same("goes on", e.fallback("otc_1").DueAt, start)
		sent := copied
		sent.Status = parley.Sent
		fail(sent, "otc_1", parley.Refused)
		e.same("after it was sent", e.fallback("otc_1").DueAt, time.Time{})
		fail(copied, "otc_1", parley.Blocked)
		last := newFallback("otc_1", start)
		last.Turns, last.Message = 2, "B1"
		e.tx(func(tx *store.Tx) error { return tx.PutFallback(e.Context(), last) })
		copied.Channel, copied.ID = other, "B1"
		fail(copied, "otc_1", parley.Refused)
		data := func(id, reason, tried string) string {
			return strings.Replace(fmt.Sprintf(`main {"id":%q,"contact_id":%q,"reason":%q,"channels_tried":[%s]}`, id, ann, reason, tried),
				`,"channels_tried":[]`, "", 1)
		}
		e.same("published", e.failures(), []string{data("otc_0", "refused", ""), data("otc_1", "refused", `"main"`),
			data("otc_1", "blocked", `"main"`), data("otc_1", "refused", `"main","other"`)})
	},

	"copies of a message only increase": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Sent, nil, start))
		})
		for _, step := range []struct{ set, want, events int }{{1, 1, 1}, {2, 2, 2}, {1, 2, 2}, {2, 2, 2}, {3, 3, 3}} {
			e.tx(func(tx *store.Tx) error { return tx.SetCopies(e.Context(), main, m.Ref(), step.set, start) })
			events, _, err := e.store.Events(e.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.MessageStatus}}, 100)
			e.must(err)
			e.same("copies and events", []int{e.message(m).Copies, len(events)}, []int{step.want, step.events})
			e.same("the event has them", events[len(events)-1].Message.Copies, step.want)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			return tx.SetCopies(e.Context(), main, parley.MessageRef{FromMe: true, Chat: ann, ID: "B1"}, 1, start)
		})
	},
}
