package store_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
)

var eventTests = map[string]func(*env){
	"an event comes back as it was written": func(e *env) {
		e.channel(main)
		in := incoming("B1")
		want := []parley.Event{
			{Type: parley.MessageReceived, Channel: main, At: start, Message: &in, Encrypted: []byte("hidden")},
			{Type: parley.OTPFailed, Channel: main, At: start.Add(time.Second), Chat: bob, Data: []byte(`{"id":"otl_1"}`)},
			{Type: parley.ChannelStatusChanged, Channel: other, At: start.Add(-time.Hour), Data: []byte(`{"status":"WORKING"}`)},
		}
		e.tx(func(tx *store.Tx) error {
			in.Seq = 0
			err := tx.AddMessage(e.Context(), &in)
			for i := range want {
				err = errors.Join(err, tx.AddEvent(e.Context(), &want[i]))
			}
			return err
		})
		want[0].Chat = ann
		in.Reactions = nil
		got := e.events(0)
		e.same("events", len(got), len(want))
		for i := range got {
			if got[i].Seq == 0 || got[i].ID == "" || i > 0 && (got[i].Seq <= got[i-1].Seq) {
				e.Errorf("event %d has place %d and id %q", i, got[i].Seq, got[i].ID)
			}
			if seq, err := got[i].ID.Seq(); err != nil || seq != got[i].Seq {
				e.Errorf("the id of event %d names place %d, %v", got[i].Seq, seq, err)
			}
			e.same("event", got[i], want[i])
		}
	},

	"recent events come newest first, page by page": func(e *env) {
		e.channel(main)
		e.channel(other)
		var want []string
		e.tx(func(tx *store.Tx) error {
			var failed error
			for i := range 7 {
				of := []parley.ChannelCode{main, other}[i%2]
				event := parley.Event{Type: parley.OTPFailed, Channel: of, At: start, Chat: bob, Data: fmt.Appendf(nil, `{"id":"%d"}`, i)}
				if i == 2 {
					event.Type = parley.OTPExpired
				}
				failed = errors.Join(failed, tx.AddEvent(e.Context(), &event))
			}
			return failed
		})
		filter := parley.EventFilter{Channel: main, Types: []parley.EventType{parley.OTPFailed}}
		for before := int64(math.MaxInt64); before != 0; {
			events, next, err := e.store.RecentEvents(e.Context(), before, filter, 2)
			e.must(err)
			for _, event := range events {
				want = append(want, string(event.Data))
			}
			before = next
		}
		e.same("events", want, []string{`{"id":"6"}`, `{"id":"4"}`, `{"id":"0"}`})
	},

	"statuses are published one by one": func(e *env) {
		e.channel(main)
		one, two, three := outgoing(""), outgoing(""), outgoing("")
		e.add(&one, &two, &three)
		e.tx(func(tx *store.Tx) error {
			return tx.ConfirmMessages(e.Context(), main, []int64{one.Seq, two.Seq}, start)
		})
		e.tx(func(tx *store.Tx) error { // confirmed twice: no further event
			return tx.ConfirmMessages(e.Context(), main, []int64{two.Seq}, start.Add(time.Second))
		})
		e.tx(func(tx *store.Tx) error { // the third jumps over SENT
			return second(tx.AdvanceMessages(e.Context(), receipt(ann, parley.Delivered, start.Add(2*time.Second), one.ID, three.ID)))
		})
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, two.Ref(), parley.Deleted, nil, start.Add(3*time.Second)))
		})
		e.tx(func(tx *store.Tx) error { // late: nothing moves
			return second(tx.AdvanceMessage(e.Context(), main, two.Ref(), parley.Read, nil, start.Add(4*time.Second)))
		})
		e.same("timeline", e.timeline(0), []string{
			fmt.Sprint(one.Seq, " SENT message.status"), fmt.Sprint(two.Seq, " SENT message.status"),
			fmt.Sprint(one.Seq, " DELIVERED message.status"),
			fmt.Sprint(three.Seq, " SENT message.status"), fmt.Sprint(three.Seq, " DELIVERED message.status"),
			fmt.Sprint(two.Seq, " DELETED message.deleted"),
		})
	},

	"a second confirmation of a message publishes nothing": func(e *env) {
		e.channel(main)
		one, two := outgoing(""), outgoing("")
		e.add(&one, &two)
		e.tx(func(tx *store.Tx) error { return tx.ConfirmMessages(e.Context(), main, []int64{one.Seq}, start) })
		e.tx(func(tx *store.Tx) error {
			return tx.ConfirmMessages(e.Context(), main, []int64{one.Seq, two.Seq}, start.Add(time.Second))
		})
		e.same("timeline", e.timeline(0), []string{fmt.Sprint(one.Seq, " SENT message.status"), fmt.Sprint(two.Seq, " SENT message.status")})
	},

	"a failed message has a reason, and a later receipt removes it": func(e *env) {
		e.channel(main)
		m := outgoing("")
		e.add(&m)
		why := &parley.Failure{Code: parley.Blocked, Message: "Blocked."}
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Failed, why, start))
		})
		got := e.events(0)
		e.same("failure", got[0].Message.Failure, why)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessages(e.Context(), receipt(ann, parley.Delivered, start, m.ID)))
		})
		e.same("timeline", e.timeline(0), []string{fmt.Sprint(m.Seq, " FAILED message.status"), fmt.Sprint(m.Seq, " DELIVERED message.status")})
		e.same("failure after it arrived", e.events(got[0].Seq)[0].Message.Failure, (*parley.Failure)(nil))
	},

	"operations are not published": func(e *env) {
		e.channel(main)
		m := outgoing("")
		m.Content = parley.Seen{Target: parley.MessageRef{Chat: ann, ID: "B1"}}
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Sent, nil, start))
		})
		e.same("timeline", e.timeline(0), []string(nil))
	},

	"the log is read in pages, by channel and by type": func(e *env) {
		e.channel(main, other)
		for i := range 25 {
			e.tx(func(tx *store.Tx) error {
				code := main
				if i%5 == 0 {
					code = other
				}
				return tx.AddEvent(e.Context(), parley.NewOTPEvent(parley.OTPFailed, parley.OTPID(fmt.Sprint(i)), code, ann, "x", start))
			})
		}
		var all []parley.Event
		for at := int64(0); ; {
			page, reached, err := e.store.Events(e.Context(), at, parley.EventFilter{}, 4)
			e.must(err)
			all = append(all, page...)
			if reached == at {
				break
			}
			at = reached
		}
		e.same("all", len(all), 25)
		some, _, err := e.store.Events(e.Context(), 0, parley.EventFilter{Channel: other}, 100)
		e.must(err)
		e.same("of a channel", len(some), 5)
		none, reached, err := e.store.Events(e.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.PollVoted}}, 3)
		e.must(err)
		e.same("of a type", len(none), 0)
		e.same("reached", reached, all[24].Seq)
	},

	"events are found by their places": func(e *env) {
		e.channel(main)
		messages := make([]*parley.Message, 5)
		var seqs []int64
		for i := range messages {
			m := outgoing("")
			messages[i] = &m
		}
		e.add(messages...)
		for _, m := range messages {
			seqs = append(seqs, m.Seq)
		}
		e.tx(func(tx *store.Tx) error { return tx.ConfirmMessages(e.Context(), main, seqs, start) })
		all := e.events(0)
		got, err := e.store.EventsAt(e.Context(), []int64{all[3].Seq, all[1].Seq, all[4].Seq + 100, 0, all[3].Seq})
		e.must(err)
		e.same("events", got, []parley.Event{all[1], all[3]})
		last, err := e.store.LastEvent(e.Context())
		e.must(err)
		e.same("last", last, all[4].Seq)
	},

	"old events go, and their places are not given again": func(e *env) {
		e.channel(main)
		add := func(at time.Time) {
			e.tx(func(tx *store.Tx) error {
				expired := parley.Event{Type: parley.OTPExpired, Channel: main, At: at, Data: []byte(`{}`), Encrypted: []byte("x")}
				return tx.AddEvent(e.Context(), &expired)
			})
		}
		add(start)
		between := tick()
		add(start.Add(-time.Hour)) // an old date does not make it go earlier
		last := e.events(0)[1].Seq
		e.tx(func(tx *store.Tx) error { return second(tx.EraseEncrypted(e.Context(), between, 10)) })
		e.same("encrypted", [2]bool{e.events(0)[0].Encrypted != nil, e.events(0)[1].Encrypted != nil}, [2]bool{false, true})
		e.tx(func(tx *store.Tx) error {
			n, err := tx.PurgeEvents(e.Context(), 1e9, tick(), 1e9, 10)
			if n != 2 {
				err = errors.Join(err, fmt.Errorf("%d events went", n))
			}
			return err
		})
		e.same("left", len(e.events(0)), 0)
		add(start)
		if got := e.events(0)[0].Seq; got <= last {
			e.Errorf("place %d was given again after %d", got, last)
		}
	},

	"events that are needed stay, up to a cap": func(e *env) {
		e.channel(main)
		for range 210 {
			e.tx(func(tx *store.Tx) error {
				return tx.AddEvent(e.Context(), &parley.Event{Type: parley.OTPExpired, Channel: main, At: start})
			})
		}
		first := e.events(0)[0].Seq
		slow, off := fullWebhook("whk_slow"), fullWebhook("whk_off")
		slow.Enable()
		slow.Cursor, off.Cursor = first+5, first+1
		e.webhook(slow)
		e.webhook(off)
		ds := []parley.Delivery{delivery("whk_slow", ann, first+3)}
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), ds) })
		waits := ds[0]
		purge := func(most int64, want int) {
			e.Helper()
			e.tx(func(tx *store.Tx) error {
				upTo, err := tx.NeededEvents(e.Context())
				if err != nil {
					return err
				}
				n, err := tx.PurgeEvents(e.Context(), upTo, tick(), most, 10)
				e.same("removed", n, want)
				return err
			})
		}
		purge(1e9, 3) // up to the delivery that waits
		purge(1e9, 0)
		waits.State, waits.EndedAt = parley.DeliveryDone, start
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{{Delivery: waits, Before: 0}})
		})
		purge(1e9, 3) // up to the cursor of the enabled webhook
		purge(204, 0) // the log is not longer
		e.same("events", len(e.events(0)), 204)
		purge(200, 2) // a hundredth of the limit
		gap := e.events(first + 209)
		e.same("gaps", len(gap), 1)
		e.same("gap", fmt.Sprint(gap[0].Type, " ", gap[0].Channel, string(gap[0].Data)),
			fmt.Sprintf(`webhook.gap {"webhook":"whk_slow","channel":"main","lost":2,"from":%d,"to":%d}`, first+6, first+7))
		w, err := e.store.Webhook(e.Context(), "whk_slow")
		e.must(err)
		e.same("slow", [2]int64{w.Cursor, w.Lost}, [2]int64{first + 7, 2})
		if w.LostAt.IsZero() {
			e.Error("it is not known when events were lost")
		}
		e.tx(func(tx *store.Tx) error { return tx.SetWebhookCursor(e.Context(), "whk_slow", first) })
		w, err = e.store.Webhook(e.Context(), "whk_slow")
		e.must(err)
		e.same("cursor", w.Cursor, first+7)

		off.Enable()
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), off) })
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), off) }) // it is reported once
		gap = e.events(gap[0].Seq)
		e.same("gaps", len(gap), 1)
		e.same("gap", string(gap[0].Data), fmt.Sprintf(`{"webhook":"whk_off","channel":"main","lost":6,"from":%d,"to":%d}`, first+2, first+7))
		of, _, err := e.store.Events(e.Context(), first+209, parley.EventFilter{Channel: main}, 10)
		e.must(err)
		e.same("gaps on the channel", len(of), 0)
	},

	"events of no channel are delivered in order": func(e *env) {
		e.webhook(fullWebhook("whk_1"))
		var ds []parley.Delivery
		for i := range 2 {
			event := parley.NewGapEvent(fullWebhook("whk_2"), 10+int64(i), start)
			e.tx(func(tx *store.Tx) error { return tx.AddEvent(e.Context(), event) })
			ds = append(ds, parley.NewDelivery(event, "whk_1"))
		}
		e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), ds) })
		now := time.Now()
		e.same("due", e.due("whk_1", now, 10), []int64{ds[0].Event})
		at, err := e.store.EventsAt(e.Context(), []int64{ds[0].Event})
		e.must(err)
		e.same("event", len(at), 1)
		e.tx(func(tx *store.Tx) error { return tx.RetryDelivery(e.Context(), ds[0], now) })
		ds[0].State, ds[0].EndedAt = parley.DeliveryDone, start
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{{Delivery: ds[0], Before: 0}})
		})
		e.same("due", e.due("whk_1", now, 10), []int64{ds[1].Event})
		e.tx(func(tx *store.Tx) error {
			return second(tx.ReplayDeliveries(e.Context(), parley.DeliveryQuery{IDs: []parley.DeliveryID{ds[0].ID}}, now, 10))
		})
		e.same("waiting", e.countDeliveries(parley.DeliveryQuery{Webhook: "whk_1"}), 2)
	},

	"events of many callers at once come back in order": func(e *env) {
		e.channel(main, other)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for n := range 5 {
					code := []parley.ChannelCode{main, main, other}[i%3]
					err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
						for _, part := range []string{"a", "b"} {
							id := parley.OTPID(fmt.Sprint(i, "/", n, part))
							if err := tx.AddEvent(e.Context(), parley.NewOTPEvent(parley.OTPFailed, id, code, ann, "x", start)); err != nil {
								return err
							}
						}
						if i == 7 {
							return errTest // and is rolled back
						}
						return nil
					})
					if (err != nil) != (i == 7) {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		events := e.events(0)
		e.same("events", len(events), 39*5*2)
		for i := 0; i < len(events); i += 2 { // a caller's own stand side by side
			a, b := events[i], events[i+1]
			if b.Seq != a.Seq+1 || i > 0 && a.Seq <= events[i-1].Seq || strings.Replace(string(a.Data), `a"`, `b"`, 1) != string(b.Data) {
				e.Errorf("%d %s and %d %s", a.Seq, a.Data, b.Seq, b.Data)
			}
		}
	},

	"a rolled back event is not published": func(e *env) {
		e.channel(main)
		added := e.store.EventAdded()
		e.wants(errTest, func(tx *store.Tx) error {
			return errors.Join(tx.AddEvent(e.Context(), &parley.Event{Type: parley.OTPExpired, Channel: main, At: start}), errTest)
		})
		e.same("events", len(e.events(0)), 0)
		select {
		case <-added:
			e.Error("a waiter was notified without an event")
		default:
		}
		e.tx(func(tx *store.Tx) error {
			return tx.AddEvent(e.Context(), &parley.Event{Type: parley.OTPExpired, Channel: main, At: start})
		})
		<-added
	},

	"the events of a deleted message are deleted": func(e *env) {
		e.channel(main)
		m := outgoing("")
		e.add(&m)
		e.tx(func(tx *store.Tx) error { return tx.ConfirmMessages(e.Context(), main, []int64{m.Seq}, start) })
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		e.same("events", len(e.events(0)), 0)
	},
}

var errTest = errors.New("test")

// events reads the whole log after a place.
func (e *env) events(after int64) []parley.Event {
	e.Helper()
	events, _, err := e.store.Events(e.Context(), after, parley.EventFilter{}, 1000)
	e.must(err)
	return events
}

// timeline writes the events of messages down, in short.
func (e *env) timeline(after int64) (lines []string) {
	e.Helper()
	for _, event := range e.events(after) {
		lines = append(lines, fmt.Sprint(event.Message.Seq, " ", event.Message.Status, " ", event.Type))
	}
	return lines
}

// tick waits until the clock shows another millisecond, and returns it.
func tick() time.Time {
	for was := time.Now(); ; {
		if now := time.Now().Truncate(time.Millisecond); now.After(was) {
			return now
		}
	}
}
