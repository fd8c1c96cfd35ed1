package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

// fullChannel has a value in every field.
func fullChannel(code parley.ChannelCode) parley.Channel {
	month := parley.Duration(30 * 24 * time.Hour)
	return parley.Channel{
		Code: code, Name: "Shop", Network: parley.WhatsApp, Number: "6281234567890", PhoneName: "Shop phone", Enabled: true,
		Labels: []string{"big city", "東京"},
		Settings: parley.ChannelSettings{
			Pace: new(parley.Duration(time.Second)), TTL: parley.Duration(time.Hour), Retention: &month,
			AllowOnly: []parley.ContactID{ann}, ClockAhead: parley.Duration(time.Minute),
		},
		CreatedAt: start,
		State:     parley.ChannelState{Status: parley.ChannelWorking, Reason: "a reason", Since: start, WorkingAt: start.Add(time.Second)},
	}
}

// stored reads a channel that is there, without the ID that the store gave it.
func (e *env) stored(code parley.ChannelCode) parley.Channel {
	e.Helper()
	c, err := e.store.Channel(e.Context(), code)
	e.must(err)
	if c.ID == 0 {
		e.Error("it has no ID")
	}
	c.ID = 0
	return c
}

var channelTests = map[string]func(*env){
	"a channel comes back as it was stored": func(e *env) {
		want := fullChannel(main)
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), want) })
		e.same("channel", e.stored(main), want)
	},

	"a channel of zero values comes back as such": func(e *env) {
		want := parley.Channel{Code: main}
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), want) })
		e.same("channel", e.stored(main), want)
	},

	"retention of zero is not the same as none": func(e *env) {
		want := parley.Channel{Code: main, Settings: parley.ChannelSettings{Retention: new(parley.Duration)}}
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), want) })
		e.same("channel", e.stored(main), want)
	},

	"channels are listed by code": func(e *env) {
		e.channel("b", "c", "a")
		channels, err := e.store.Channels(e.Context())
		e.must(err)
		var codes []parley.ChannelCode
		for _, c := range channels {
			codes = append(codes, c.Code)
		}
		e.same("codes", codes, []parley.ChannelCode{"a", "b", "c"})
	},

	"an unknown channel is not found": func(e *env) {
		if _, err := e.store.Channel(e.Context(), main); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.UpdateChannel(e.Context(), parley.Channel{Code: main}) })
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.SetChannelState(e.Context(), parley.Channel{Code: main}) })
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
	},

	"a code is used once": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), fullChannel(main)) })
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddChannel(e.Context(), parley.Channel{Code: main}) })
		e.same("channel", e.stored(main), fullChannel(main))
	},

	"an update stores what an operator sets": func(e *env) {
		before := fullChannel(main)
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), before) })
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateChannel(e.Context(), parley.Channel{Code: main, Name: "New", Network: parley.Sandbox,
				Labels: []string{"new"}})
		})
		want := before
		want.Labels = []string{"new"}
		want.Name, want.Network, want.Enabled, want.Settings = "New", parley.Sandbox, false, parley.ChannelSettings{}
		e.same("channel", e.stored(main), want)
	},

	"a state stores what was seen": func(e *env) {
		want := fullChannel(main)
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), want) })
		want.Number, want.PhoneName = "999", "Other phone"
		want.State = parley.ChannelState{Status: parley.ChannelLoggedOut, Reason: "removed", Since: start.Add(time.Hour)}
		e.tx(func(tx *store.Tx) error {
			return tx.SetChannelState(e.Context(), parley.Channel{Code: main, Name: "ignored",
				Number: want.Number, PhoneName: want.PhoneName, State: want.State})
		})
		e.same("channel", e.stored(main), want)
	},

	"what the network forbids an account is stored": func(e *env) {
		want := fullChannel(main)
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(e.Context(), want) })
		for _, until := range []time.Time{{}, start.Add(time.Hour)} {
			want.Restricted, want.RestrictedUntil, want.BannedUntil = true, until, start
			e.tx(func(tx *store.Tx) error { return tx.SetRestriction(e.Context(), want) })
			e.same("channel", e.stored(main), want)
		}
		want.Use = parley.DailyUse{Day: "2026-11-15", Messages: 7, Firsts: 3}
		e.tx(func(tx *store.Tx) error { return tx.SetDailyUse(e.Context(), main, want.Use) })
		want.Restricted, want.RestrictedUntil = false, time.Time{}
		e.tx(func(tx *store.Tx) error { return tx.SetRestriction(e.Context(), want) })
		e.same("channel", e.stored(main), want)
	},

	"the ages of earlier numbers are kept": func(e *env) {
		c := fullChannel(main)
		c.PairedAt = start.Add(-time.Hour)
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddChannel(e.Context(), c); err != nil {
				return err
			}
			since, err := tx.ChangeAge(e.Context(), c, "628111", start)
			e.same("a new number", since, start)
			if err == nil {
				since, err = tx.ChangeAge(e.Context(), parley.Channel{Code: main, Number: "628111", PairedAt: start}, c.Number, start)
				e.same("the first one", since, c.PairedAt)
			}
			return err
		})
	},

	"a code that is used again is another channel": func(e *env) {
		e.channel(main)
		first, err := e.store.Channel(e.Context(), main)
		e.must(err)
		e.tx(func(tx *store.Tx) error { return tx.CheckChannel(e.Context(), main, first.ID) })
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.CheckChannel(e.Context(), main, 0) })
		e.tx(func(tx *store.Tx) error { // at once, and looked for in the same transaction
			if err := tx.AddChannel(e.Context(), parley.Channel{Code: main}); err != nil {
				return err
			}
			return tx.CheckChannel(e.Context(), main, 0)
		})
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.CheckChannel(e.Context(), main, first.ID) })
		again, err := e.store.Channel(e.Context(), main)
		e.must(err)
		e.tx(func(tx *store.Tx) error { return tx.CheckChannel(e.Context(), main, again.ID) })
	},

	"another number leaves earlier messages to the account before": func(e *env) {
		e.channel(main)
		number := func(n string) parley.Channel {
			e.tx(func(tx *store.Tx) error {
				return tx.SetChannelState(e.Context(), parley.Channel{Code: main, Number: n})
			})
			c, err := e.store.Channel(e.Context(), main)
			e.must(err)
			return c
		}
		first, later := outgoing("A1"), outgoing("A2")
		e.add(&first)
		e.same("with the first number", number("1").AccountFrom, int64(0))
		e.same("with the same number", number("1").AccountFrom, int64(0))
		e.same("with another number", number("2").AccountFrom, first.Seq)
		e.add(&later)
		e.same("with the same number again", number("2").AccountFrom, first.Seq)
		e.same("with the first number again", number("1").AccountFrom, later.Seq)
	},

	"a deleted channel leaves nothing": func(e *env) {
		e.channel(main, other)
		for _, code := range []parley.ChannelCode{main, other} {
			m := outgoing("A1")
			m.Channel = code
			e.add(&m)
			e.tx(func(tx *store.Tx) error {
				return errors.Join(
					tx.AddToken(e.Context(), parley.Token{ID: parley.TokenID("tok_" + code), Kind: parley.ChannelToken, Channel: code}),
					tx.SetReaction(e.Context(), code, m.Ref(), ann, "👍"),
					tx.AddStoredResponse(e.Context(), store.StoredResponse{Scope: string(code), Key: "k", Fingerprint: []byte{1}, Channel: code}))
			})
		}
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })

		deleted := func(what string, err error) {
			if !errors.Is(err, parley.ErrNotFound) {
				e.Errorf("%s of the deleted channel: got error %v", what, err)
			}
		}
		m := outgoing("A1")
		_, err := e.store.Message(e.Context(), main, m.Ref())
		deleted("message", err)
		_, err = e.store.Token(e.Context(), "tok_main")
		deleted("token", err)
		_, err = e.store.Chat(e.Context(), main, ann)
		deleted("chat", err)
		_, err = e.store.StoredResponse(e.Context(), string(main), "k")
		deleted("response", err)

		// A channel of the same name is empty, and the other one is unchanged.
		e.channel(main)
		e.add(&m)
		page, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history of the new channel", []any{ids(page), page[0].Reactions, total}, []any{[]string{"A1"}, []string(nil), int64(1)})
		page, _, err = e.store.History(e.Context(), other, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history of the other channel", []any{ids(page), page[0].Reactions}, []any{[]string{"A1"}, []string{"👍"}})
		_, err = e.store.Token(e.Context(), "tok_other")
		e.must(err)
	},

	"revision counts changes to channels, tokens and keys": func(e *env) {
		token := parley.Token{ID: "tok_1", Kind: parley.AdminToken, CreatedAt: start}
		m := outgoing("A1")
		for _, step := range []struct {
			name   string
			counts bool
			do     func(*store.Tx) error
		}{
			{"add channel", true, func(tx *store.Tx) error { return tx.AddChannel(e.Context(), fullChannel(main)) }},
			{"update channel", true, func(tx *store.Tx) error { return tx.UpdateChannel(e.Context(), fullChannel(main)) }},
			{"set state", false, func(tx *store.Tx) error { return tx.SetChannelState(e.Context(), fullChannel(main)) }},
			{"add token", true, func(tx *store.Tx) error { return tx.AddToken(e.Context(), token) }},
			{"touch token", false, func(tx *store.Tx) error { return tx.SetTokenUse(e.Context(), "tok_1", parley.TokenUse{At: start}) }},
			{"revoke token", true, func(tx *store.Tx) error { return tx.RevokeToken(e.Context(), "tok_1", start) }},
			{"add key", true, func(tx *store.Tx) error {
				return tx.AddSigningKey(e.Context(), parley.SigningKey{ID: "k", Public: []byte{1}, Encrypted: []byte{2}})
			}},
			{"add message", false, func(tx *store.Tx) error { return tx.AddMessage(e.Context(), &m) }},
			{"delete channel", true, func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) }},
		} {
			before, err := e.store.Revision(e.Context())
			e.must(err)
			e.tx(step.do)
			after, err := e.store.Revision(e.Context())
			e.must(err)
			if (after > before) != step.counts {
				e.Errorf("%s: revision went from %d to %d", step.name, before, after)
			}
		}
	},
}
