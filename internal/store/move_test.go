package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

var moveTests = map[string]func(*env){
	"the history of a channel is its archive's, and no message changes": func(e *env) {
		e.channel(main, other, "third")
		sent, said, elsewhere := outgoing("A1"), outgoing("B1"), outgoing("C1")
		said.FromMe, said.Status, elsewhere.Channel = false, parley.Received, "third"
		e.add(&sent, &said, &elsewhere)
		status := func(s parley.ChannelStatus) *parley.Event {
			return &parley.Event{Type: parley.ChannelStatusChanged, Channel: main, At: start, Data: []byte(`{"status":"` + s + `"}`)}
		}
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, sent.Ref(), parley.Delivered, nil, start)
			return errors.Join(err,
				tx.SetReaction(e.Context(), main, sent.Ref(), ann, "👍"),
				tx.AddStoredResponse(e.Context(), store.StoredResponse{Scope: string(main), Key: "k", Fingerprint: []byte{1}, Channel: main}),
				tx.AddToken(e.Context(), parley.Token{ID: "tok_1", Kind: parley.ChannelToken, Channel: main}),
				tx.AddUpload(e.Context(), store.Upload{Key: "up", Channel: main, At: start}),
				tx.AddEvent(e.Context(), status(parley.ChannelWorking)), tx.AddEvent(e.Context(), status(parley.ChannelStopped)),
				tx.AddEvent(e.Context(), &parley.Event{Type: parley.MessageReceived, Channel: main, At: start, Message: &said}))
		})
		before := e.events(0)
		number, err := e.store.Channel(e.Context(), main)
		e.must(err)
		// What fails in the transaction is reported as of the channel, as all events are.
		waits := outgoing("D1")
		e.add(&waits)
		e.tx(func(tx *store.Tx) error {
			return errors.Join(second(tx.FailMessages(e.Context(), main, []int64{waits.Seq}, &parley.Failure{Code: parley.NotSent}, start)),
				tx.ArchiveChannel(e.Context(), main, parley.Channel{Code: "archive", Network: parley.Sandbox}))
		})
		archive, err := e.store.Channel(e.Context(), "archive")
		e.must(err)
		e.same("number of the archive", archive.ID, number.ID)

		page, total, err := e.store.History(e.Context(), "archive", ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history", []any{ids(page), page[2].Reactions, page[2].Status, total},
			[]any{[]string{"D1", "B1", "A1"}, []string{"👍"}, parley.Delivered, int64(3)})
		_, _, chats, err := e.store.Chats(e.Context(), "archive", parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		e.same("chats of the archive", chats, int64(1))
		_, _, chats, err = e.store.Chats(e.Context(), main, parley.Page{Limit: 10}, parley.ChatCursor{})
		e.must(err)
		_, err = e.store.Message(e.Context(), main, sent.Ref())
		_, response := e.store.StoredResponse(e.Context(), string(main), "k")
		e.same("what is left", []any{chats, err, response}, []any{int64(0), parley.ErrNotFound, parley.ErrNotFound})
		_, err = e.store.Token(e.Context(), "tok_1")
		e.must(err)

		// Events are the channel's before the purge, in the middle of it and after it, in their order.
		late := parley.Event{Type: parley.ChannelPairing, Channel: main, At: start}
		e.tx(func(tx *store.Tx) error { return tx.AddEvent(e.Context(), &late) })
		for _, state := range []string{"before", "after"} {
			all := e.events(0)
			e.same("events "+state, len(all), len(before)+2)
			e.same("events of the channel "+state, eventsOf(e, main), seqs(all))
			e.same("events of the archive "+state, len(eventsOf(e, "archive")), 0)
			e.purge()
		}
		states, err := e.store.ChannelStates(e.Context(), main, start.Add(-time.Hour), 10)
		e.must(err)
		e.same("statuses", []any{len(states), states[0].Status}, []any{2, parley.ChannelStopped})
		_, err = e.store.Upload(e.Context(), main, "up")
		e.must(err)

		// The same person, and the same ids, are new to the channel; others are not touched.
		again := outgoing("A1")
		e.add(&again)
		page, total, err = e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("new history", []any{ids(page), total}, []any{[]string{"A1"}, int64(1)})
		page, _, err = e.store.History(e.Context(), "third", ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("another channel", ids(page), []string{"C1"})
	},

	"events that a purge moves stay in order": func(e *env) {
		e.channel(main)
		add := func() {
			e.tx(func(tx *store.Tx) error {
				for range 70 { // more than one step of the purge moves
					if err := tx.AddEvent(e.Context(), &parley.Event{Type: parley.ChannelPairing, Channel: main, At: start}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range 2 {
			add()
			e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		}
		add()
		want := seqs(e.events(0))
		e.same("events", len(want), 210)
		for more := true; more; {
			e.same("events of the channel", eventsOf(e, main), want)
			e.tx(func(tx *store.Tx) (err error) {
				_, more, err = tx.PurgeChannels(e.Context())
				return err
			})
		}
		e.same("events after the purge", eventsOf(e, main), want)
	},

	"an archive may be deleted before its purge": func(e *env) {
		e.channel(main)
		m := incoming("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.AddEvent(e.Context(), &parley.Event{Type: parley.ChannelPairing, Channel: main, At: start}),
				tx.ArchiveChannel(e.Context(), main, parley.Channel{Code: "archive", Network: parley.Sandbox}))
		})
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), "archive") })
		e.purge()
		e.same("events", len(eventsOf(e, main)), 1)
		_, err := e.store.MessageAt(e.Context(), m.Seq)
		e.same("message", err, parley.ErrNotFound)
		deletions, err := e.store.Deletions(e.Context())
		e.must(err)
		e.same("deletions", []any{len(deletions), deletions[0].Channel}, []any{1, parley.ChannelCode("archive")})
	},

	"an archive has a code that is free, and a channel": func(e *env) {
		e.channel(main, other)
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			return tx.ArchiveChannel(e.Context(), "none", parley.Channel{Code: "archive"})
		})
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.ArchiveChannel(e.Context(), main, parley.Channel{Code: other}) })
	},

	"a resend is stored until it is purged": func(e *env) {
		e.channel(main)
		m := outgoing("A1")
		e.add(&m)
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("before: %v", err)
		}
		for _, encrypted := range []string{"first", "second"} {
			e.tx(func(tx *store.Tx) error { return tx.SetResend(e.Context(), main, m.Ref(), []byte(encrypted), start) })
			got, err := e.store.Resend(e.Context(), m.Seq)
			e.must(err)
			e.same("stored", string(got), encrypted)
		}
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeResends(e.Context(), start, 10)) })
		_, err := e.store.Resend(e.Context(), m.Seq)
		e.must(err)
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeResends(e.Context(), start.Add(time.Millisecond), 10)) })
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("after: %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			return tx.SetResend(e.Context(), main, parley.MessageRef{FromMe: true, Chat: ann, ID: "unknown"}, []byte("x"), start)
		})
		e.tx(func(tx *store.Tx) error { return tx.SetResend(e.Context(), main, m.Ref(), []byte("last"), start) })
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		e.purge()
		if _, err := e.store.Resend(e.Context(), m.Seq); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("of a deleted channel: %v", err)
		}
	},
}

// eventsOf reads the seqs of the events of a channel, a few at a time.
func eventsOf(e *env, channel parley.ChannelCode) (all []int64) {
	e.Helper()
	for after := int64(0); ; {
		events, upTo, err := e.store.Events(e.Context(), after, parley.EventFilter{Channel: channel}, 25)
		e.must(err)
		if all = append(all, seqs(events)...); upTo == after {
			return all
		}
		after = upTo
	}
}

func seqs(events []parley.Event) (all []int64) {
	for _, event := range events {
		all = append(all, event.Seq)
	}
	return all
}
