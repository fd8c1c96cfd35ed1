package store_test

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

var strangerTests = map[string]func(e *env){
	"are counted for an hour": func(e *env) {
		e.channel(main, other)
		e.stranger(main, "6281200001111@c.us", start.Add(-time.Hour), true) // just too long ago
		e.stranger(main, "6281200001112@c.us", start.Add(-59*time.Minute), true)
		e.stranger(main, "6281200002222@c.us", start.Add(-10*time.Minute), true)
		e.stranger(main, "6281200002222@c.us", start.Add(-5*time.Minute), false) // is counted already
		e.stranger(other, "6281200003333@c.us", start, true)
		both := []time.Duration{10 * time.Minute, 59 * time.Minute}
		e.wantStrangers("6281200009999@c.us", 10, both, both)
		e.wantStrangers("6281200009999@c.us", 1, both[:1], both[:1])
		e.wantStrangers("6281300009999@c.us", 10, both, nil)
		e.wantStrangers("6281200001111@c.us", 10, both, both)
		if s := e.strangers("6281200002222@c.us", 10); !s.Counted {
			e.Errorf("who was sent a code is not counted: %+v", s)
		}
	},
	"that share a prefix have numbers of one length": func(e *env) {
		e.channel(main)
		for i, contact := range []parley.ContactID{"6281200000000@c.us", "6281200009999@c.us", "62812000099999@c.us", "628120000999@c.us",
			"6281200010000@c.us", "6281199999999@c.us"} {
			e.stranger(main, contact, start.Add(-time.Duration(i)*time.Minute), true)
		}
		e.wantAges("alike", e.strangers("6281200005555@c.us", 10).Alike, []time.Duration{0, time.Minute})
		e.wantAges("alike", e.strangers("62812000091234@c.us", 10).Alike, []time.Duration{2 * time.Minute})
		e.wantAges("alike", e.strangers("6281200015555@c.us", 10).Alike, []time.Duration{4 * time.Minute})
	},
	"and their approvals are counted for half an hour, and since the last pause": func(e *env) {
		e.channel(main, other)
		e.stranger(main, ann, start.Add(-30*time.Minute), true) // just too long ago
		e.stranger(main, ann, start.Add(-29*time.Minute), false)
		approved := e.stranger(main, bob, start.Add(-10*time.Minute), true)
		e.stranger(main, bob, start, false)
		e.tx(func(tx *store.Tx) error { return tx.ApproveContact(e.Context(), approved) })
		s := e.strangers(ann, 10)
		e.same("codes and approvals", []any{s.Codes, s.Approved, s.PausedUntil.IsZero()}, []any{3, 1, true})
		pause := parley.OTPAlarm{Channel: main, Type: parley.OTPPaused, At: start.Add(-9 * time.Minute), Until: start.Add(-time.Minute), Count: 3}
		e.raise(pause, true)
		s = e.strangers(ann, 10)
		e.same("since the pause", []any{s.Codes, s.Approved, s.PausedUntil}, []any{1, 0, pause.Until})
	},
	"become known": func(e *env) {
		e.channel(main, other)
		contact := func(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("62812000%05d@c.us", i)) }
		to := func(i int, m parley.Message) parley.Message {
			m.Chat, m.ID = contact(i), parley.MessageID(fmt.Sprintf("A%d", i))
			e.add(&m)
			return m
		}
		to(0, incoming(""))
		to(1, outgoing("")) // is pending
		failed, sent := to(2, outgoing("")), to(3, outgoing(""))
		delivered, late := to(4, outgoing("")), to(5, outgoing(""))
		code := outgoing("")
		code.Priority = parley.PriorityStranger
		code = to(6, code)
		archived := outgoing("")
		archived.Content = parley.Archive{Archived: true}
		archived = to(7, archived)
		e.tx(func(tx *store.Tx) error {
			if err := tx.ConfirmMessages(e.Context(), main, []int64{sent.Seq, code.Seq}, start); err != nil {
				return err
			}
			for _, m := range []parley.Message{failed, late} {
				why := parley.Failure{Code: parley.NotOnNetwork, Message: "no"}
				if _, err := tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Failed, &why, start); err != nil {
					return err
				}
			}
			if _, err := tx.AdvanceMessage(e.Context(), main, archived.Ref(), parley.Sent, nil, start); err != nil {
				return err
			}
			for _, m := range []parley.Message{delivered, late} {
				if _, err := tx.AdvanceMessages(e.Context(), receipt(m.Chat, parley.Delivered, start, m.ID)); err != nil {
					return err
				}
			}
			return tx.ApproveContact(e.Context(), parley.OTPCode{ID: parley.NewCodeID(), Channel: main, Contact: contact(8)})
		})
		for i, want := range []bool{true, false, false, true, true, true, false, false, true, false} {
			known, err := e.store.KnowsContact(e.Context(), main, contact(i))
			e.must(err)
			elsewhere, err := e.store.KnowsContact(e.Context(), other, contact(i))
			e.must(err)
			e.same(fmt.Sprintf("contact %d is known", i), []bool{known, elsewhere}, []bool{want, false})
		}
		for i, want := range []bool{true, false, false, true, true, true, true, false, false, false} {
			exists, err := e.store.HasChat(e.Context(), main, contact(i))
			e.must(err)
			e.same(fmt.Sprintf("contact %d has a chat", i), exists, want)
		}
	},
	"and wrong tries go with their channel": func(e *env) {
		e.channel(main, other)
		for _, c := range []parley.ChannelCode{main, other} {
			e.stranger(c, ann, start, true)
			e.wrong(c, start)
			e.raise(parley.OTPAlarm{Channel: c, Type: parley.OTPGuessing, At: start, Until: start, Count: 1}, true)
		}
		e.tx(func(tx *store.Tx) error {
			return tx.DeleteChannel(e.Context(), main)
		})
		if s := e.strangers(ann, 10); s.Counted || s.Codes != 0 {
			e.Errorf("still there: %+v", s)
		}
		e.channel(main)
		e.same("wrong tries", []int{e.wrong(main, start), e.wrong(other, start)}, []int{1, 2})
		alarms, err := e.store.OTPAlarms(e.Context())
		e.must(err)
		e.same("alarms", len(alarms), 1)
	},
	"wrong tries are counted for an hour": func(e *env) {
		e.channel(main, other)
		e.same("first", e.wrong(main, start), 1)
		e.same("in the same minute", e.wrong(main, start.Add(time.Second)), 2)
		e.same("elsewhere", e.wrong(other, start), 1)
		e.same("later", e.wrong(main, start.Add(59*time.Minute)), 3)
		e.same("an hour later", e.wrong(main, start.Add(time.Hour+time.Second)), 2)
	},
	"an alarm is not raised again while it holds": func(e *env) {
		e.channel(main)
		a := parley.OTPAlarm{Channel: main, Type: parley.OTPPaused, At: start, Until: start.Add(time.Minute), Count: 7}
		e.raise(a, true)
		again := a
		again.At, again.Until = start.Add(time.Minute-time.Millisecond), start.Add(2*time.Minute)
		e.raise(again, false)
		guessing := a
		guessing.Type = parley.OTPGuessing
		e.raise(guessing, true)
		alarms, err := e.store.OTPAlarms(e.Context())
		e.must(err)
		e.same("alarms", alarms, []parley.OTPAlarm{guessing, a})
		again.At = start.Add(time.Minute)
		e.raise(again, true)
	},
	"times in the future become now": func(e *env) {
		e.channel(main, other)
		ahead := start.Add(24 * time.Hour)
		ledger, link, old := newLedger(main, ann), newLink(main, ann, 1), newLink(main, bob, 2)
		life := ledger.Code.ExpiresAt.Sub(ledger.Code.CreatedAt)
		ledger.Code.CreatedAt, ledger.Code.ExpiresAt = ahead, ahead.Add(life)
		link.CreatedAt, link.ExpiresAt = ahead, ahead.Add(time.Minute)
		e.putLedgers(ledger)
		e.addLinks(link, old)
		e.stranger(main, ann, ahead, true)
		e.stranger(main, bob, start.Add(-time.Minute), true)
		e.wrong(main, ahead)
		e.raise(parley.OTPAlarm{Channel: main, Type: parley.OTPPaused, At: ahead, Until: ahead.Add(time.Minute)}, true)
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddLinkReply(e.Context(), main, ann, ahead); err != nil {
				return err
			}
			return tx.CorrectOTPTimes(e.Context(), main, start)
		})
		got := e.ledger(main, ann).Code
		e.same("code", []time.Time{got.CreatedAt, got.ExpiresAt}, []time.Time{start, start.Add(life)})
		now := e.link(link.ID)
		e.same("link", []time.Time{now.CreatedAt, now.ExpiresAt}, []time.Time{start, start.Add(time.Minute)})
		e.same("another link", e.link(old.ID), old)
		e.wantAges("strangers", e.strangers("6281300009999@c.us", 10).Since, []time.Duration{0, time.Minute})
		e.same("pause", e.strangers(ann, 10).PausedUntil, start.Add(time.Minute))
		e.same("wrong tries", e.wrong(main, start), 2)
		replies, err := e.store.LinkReplies(e.Context(), main, ann, start.Add(-time.Minute))
		e.must(err)
		e.wantAges("replies", replies, []time.Duration{0})
	},
}

// stranger has a code sent to a stranger.
func (e *env) stranger(channel parley.ChannelCode, contact parley.ContactID, at time.Time, count bool) parley.OTPCode {
	e.Helper()
	code := parley.OTPCode{ID: parley.NewCodeID(), Channel: channel, Contact: contact, CreatedAt: at}
	e.tx(func(tx *store.Tx) error { return tx.AddStranger(e.Context(), code, count) })
	return code
}

func (e *env) strangers(contact parley.ContactID, limit int) rule.Strangers {
	e.Helper()
	s, err := e.store.Strangers(e.Context(), main, contact, start, limit)
	e.must(err)
	return s
}

// wantStrangers compares by how long ago strangers were counted.
func (e *env) wantStrangers(contact parley.ContactID, limit int, since, alike []time.Duration) {
	e.Helper()
	s := e.strangers(contact, limit)
	if s.Counted {
		e.Errorf("%s is counted", contact)
	}
	e.wantAges("strangers", s.Since, since)
	e.wantAges("alike", s.Alike, alike)
}

// wrong counts a wrong try and returns how many there were.
func (e *env) wrong(channel parley.ChannelCode, at time.Time) (n int) {
	e.Helper()
	e.tx(func(tx *store.Tx) (err error) {
		n, err = tx.CountWrongTry(e.Context(), channel, at)
		return err
	})
	return n
}

func (e *env) raise(a parley.OTPAlarm, want bool) {
	e.Helper()
	var raised bool
	e.tx(func(tx *store.Tx) (err error) {
		raised, err = tx.RaiseOTPAlarm(e.Context(), a)
		return err
	})
	e.same("raised", raised, want)
}

func (e *env) wantAges(what string, got []time.Time, want []time.Duration) {
	e.Helper()
	ages := rule.Ages(got, start)
	if len(ages) != len(want) {
		e.Errorf("%s are %v, want %v", what, ages, want)
		return
	}
	for i := range ages {
		if ages[i] != want[i] {
			e.Errorf("%s are %v, want %v", what, ages, want)
		}
	}
}
