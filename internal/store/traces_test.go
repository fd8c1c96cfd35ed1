package store_test

import (
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

var traceTests = map[string]func(*env){
	"the events of one message are found among others": func(e *env) {
		e.channel(main)
		m, noise := outgoing(""), outgoing("")
		e.add(&m, &noise)
		advance := func(m parley.Message, to parley.Status, at time.Time) {
			e.tx(func(tx *store.Tx) error { return second(tx.AdvanceMessage(e.Context(), main, m.Ref(), to, nil, at)) })
		}
		advance(m, parley.Sent, start)
		advance(noise, parley.Sent, start)
		advance(m, parley.Delivered, start.Add(time.Second))
		e.noise(noise, 20_500, start.Add(time.Minute)) // more than is looked at in one place
		advance(m, parley.Read, start.Add(time.Hour))
		e.noise(noise, 20_500, start.Add(2*time.Hour))
		m = e.message(m)
		e.tx(func(tx *store.Tx) error {
			return tx.AddEvent(e.Context(), parley.NewReactionEvent(&m, ann, "👍", start.Add(3*time.Hour)))
		})
		events, err := e.store.EventsAbout(e.Context(), &m)
		e.must(err)
		var got []string
		for _, event := range events {
			if event.ID == "" || event.Message == nil || event.Message.ID != m.ID {
				e.Errorf("an event without its id or message: %+v", event)
			}
			got = append(got, string(event.Type)+" "+event.Message.Status.String())
		}
		e.same("events", got, []string{"message.status SENT", "message.status DELIVERED", "message.status READ", "message.reaction READ"})
	},

	"what a channel's status was is kept as long as its events": func(e *env) {
		e.channel(main, other)
		was := func(code parley.ChannelCode, status parley.ChannelStatus, reason string, at time.Time) {
			e.tx(func(tx *store.Tx) error {
				c := parley.Channel{Code: code, State: parley.ChannelState{Status: status, Reason: reason, Since: at}}
				return tx.AddEvent(e.Context(), parley.NewChannelEvent(c, parley.ChannelStopped, c.State.Since))
			})
		}
		was(main, parley.ChannelWorking, "", start)
		was(main, parley.ChannelReconnecting, "The socket closed.", start.Add(time.Hour))
		was(other, parley.ChannelFailed, "Broken.", start.Add(time.Hour))
		was(main, parley.ChannelWorking, "", start.Add(2*time.Hour))
		all := []parley.ChannelState{
			{Status: parley.ChannelWorking, Since: start.Add(2 * time.Hour)},
			{Status: parley.ChannelReconnecting, Reason: "The socket closed.", Since: start.Add(time.Hour)},
			{Status: parley.ChannelWorking, Since: start},
		}
		states := func(since time.Time, limit int) []parley.ChannelState {
			got, err := e.store.ChannelStates(e.Context(), main, since, limit)
			e.must(err)
			return got
		}
		e.same("all", states(start, 10), all)
		e.same("the newest", states(start, 1), all[:1])
		e.same("with what lasted into the time", states(start.Add(90*time.Minute), 10), all[:2])
		e.tx(func(tx *store.Tx) error {
			old, err := tx.OldStates(e.Context(), start.Add(3*time.Hour), 10)
			if len(old) != 2 {
				err = fmt.Errorf("old statuses: %v, %w", old, err)
			}
			return errors.Join(err, tx.DeleteStates(e.Context(), old))
		})
		e.same("what it still is", states(start, 10), all[:1])
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		e.same("of a channel that is gone", len(states(start, 10)), 0)
	},
}

// noise adds so many events to the log that are about another message.
func (e *env) noise(m parley.Message, count int, at time.Time) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		event := parley.NewReactionEvent(&m, ann, "👍", at)
		for range count {
			if err := tx.AddEvent(e.Context(), event); err != nil {
				return err
			}
		}
		return nil
	})
}
