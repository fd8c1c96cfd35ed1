package store_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

var searchTests = map[string]func(*env){
	"messages of all channels come newest first, in pages": func(e *env) {
		e.channel(main, other)
		var want []string
		for i := range 7 {
			m := incoming(fmt.Sprintf("M%d", i))
			if i%2 == 1 {
				m.Channel, m.Chat = other, bob
			}
			e.add(&m)
			want = append(want, string(m.ID))
		}
		op := outgoing("")
		op.Content = parley.Archive{Archived: true} // no record, and so not found
		e.add(&op)
		slices.Reverse(want)
		for _, limit := range []int{1, 2, 3, 7, 50} {
			e.same("all", e.findAll(parley.MessageQuery{Limit: limit}), want)
		}
		e.same("with one", e.findAll(parley.MessageQuery{Limit: 2, Contact: bob}), []string{"M5", "M3", "M1"})
		e.same("with one who is not there", e.findAll(parley.MessageQuery{Limit: 2, Contact: bob, Channel: main}), []string(nil))
	},

	"filters narrow the search together": func(e *env) {
		e.channel(main, other)
		text := incoming("TEXT")
		text.Content = parley.Text{Body: "Selamat PAGI, Łódź"}
		image := incoming("IMAGE")
		image.Content = parley.Image{Caption: "promo", Media: parley.Media{Key: "k"}}
		image.CreatedAt = start.Add(time.Hour)
		elsewhere := incoming("ELSEWHERE")
		elsewhere.Channel = other
		sent, failed, waits := outgoing(""), outgoing(""), outgoing("")
		e.add(&text, &image, &elsewhere, &sent, &failed, &waits)
		e.tx(func(tx *store.Tx) error {
			return tx.ConfirmMessages(e.Context(), main, []int64{sent.Seq}, start)
		})
		e.tx(func(tx *store.Tx) error {
			why := parley.Failure{Code: parley.Blocked, Message: "Blocked."}
			return second(tx.AdvanceMessage(e.Context(), main, failed.Ref(), parley.Failed, &why, start))
		})
		status := func(s parley.Status) *parley.Status { return &s }
		own := func(b bool) *bool { return &b }
		ids := func(ms ...parley.Message) []string {
			var all []string
			for _, m := range ms {
				all = append(all, string(m.ID))
			}
			return all
		}
		for name, c := range map[string]struct {
			q    parley.MessageQuery
			want []string
		}{
			"channel":             {parley.MessageQuery{Channel: other}, []string{"ELSEWHERE"}},
			"type":                {parley.MessageQuery{Kind: parley.KindImage}, []string{"IMAGE"}},
			"inbound":             {parley.MessageQuery{FromMe: own(false), Channel: main}, []string{"IMAGE", "TEXT"}},
			"outbound":            {parley.MessageQuery{FromMe: own(true)}, ids(waits, failed, sent)},
			"since":               {parley.MessageQuery{Since: start.Add(time.Minute)}, []string{"IMAGE"}},
			"until":               {parley.MessageQuery{Until: start.Add(time.Minute), FromMe: own(false), Channel: main}, []string{"TEXT"}},
			"text in any case":    {parley.MessageQuery{Text: "pagi, łódź"}, []string{"TEXT"}},
			"caption":             {parley.MessageQuery{Text: "PROMO"}, []string{"IMAGE"}},
			"sent":                {parley.MessageQuery{Status: status(parley.Sent)}, ids(sent)},
			"failed":              {parley.MessageQuery{Status: status(parley.Failed)}, ids(failed)},
			"failed elsewhere":    {parley.MessageQuery{Status: status(parley.Failed), Channel: other}, nil},
			"pending":             {parley.MessageQuery{Status: status(parley.Pending)}, ids(waits)},
			"received":            {parley.MessageQuery{Status: status(parley.Received), Channel: other}, []string{"ELSEWHERE"}},
			"contact and channel": {parley.MessageQuery{Contact: ann, Channel: other}, []string{"ELSEWHERE"}},
			"contact and type":    {parley.MessageQuery{Contact: ann, Kind: parley.KindImage}, []string{"IMAGE"}},
			"contact":             {parley.MessageQuery{Contact: ann, FromMe: own(false)}, []string{"ELSEWHERE", "IMAGE", "TEXT"}},
			"nobody":              {parley.MessageQuery{Contact: bob}, nil},
		} {
			for _, limit := range []int{1, 10} {
				c.q.Limit = limit
				e.same(fmt.Sprintf("%s, %d at a time", name, limit), e.findAll(c.q), c.want)
			}
		}
	},

	"a step of a search is bounded, and the next goes on": func(e *env) {
		e.channel(main)
		first := incoming("FIRST")
		first.Content, first.Chat = parley.Text{Body: "needle"}, bob
		e.add(&first)
		for range 6 {
			e.tx(func(tx *store.Tx) error {
				for range 1000 {
					m := outgoing("")
					m.CreatedAt = start.Add(time.Hour)
					if err := tx.AddMessage(e.Context(), &m); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for name, q := range map[string]parley.MessageQuery{"text": {Text: "needle"}, "until": {Until: start.Add(time.Minute)}} {
			steps := 0
			for q.Limit = 10; ; steps++ {
				page, err := e.store.FindMessages(e.Context(), q)
				e.must(err)
				if len(page.Messages) > 0 {
					e.same(name, ids(page.Messages), []string{"FIRST"})
					e.same("what is left after "+name, page.Next, int64(0))
					break
				}
				if page.Next == 0 || steps > 10 {
					e.Fatalf("%s: not found in %d steps", name, steps)
				}
				q.Before = page.Next
			}
			if steps == 0 {
				e.Errorf("%s: one step looked through everything", name)
			}
		}
		page, err := e.store.FindMessages(e.Context(), parley.MessageQuery{Limit: 10, Since: start.Add(2 * time.Hour)})
		e.must(err)
		e.same("what is too new to be there", page, parley.MessagePage{})
		e.same("a chat in steps", len(e.findAll(parley.MessageQuery{Limit: 700, Contact: ann})), 6000)
	},

	"reactions are looked up": func(e *env) {
		e.channel(main)
		in := incoming("IN")
		e.add(&in)
		e.tx(func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, in.Ref(), ann, "👍") })
		found := []parley.Message{e.message(in)}
		e.must(e.store.AddRelated(e.Context(), found))
		e.same("reactions", found[0].Reactions, []string{"👍"})
	},

	"codes and links are listed newest first": func(e *env) {
		e.channel(main, other)
		e.tx(func(tx *store.Tx) error {
			for i, c := range []parley.OTPCode{
				{ID: "otc_1", Channel: main, Contact: ann, CreatedAt: start, ExpiresAt: start.Add(time.Hour)},
				{ID: "otc_2", Channel: main, Contact: bob, CreatedAt: start.Add(time.Minute), ExpiresAt: start.Add(2 * time.Minute)},
				{ID: "otc_3", Channel: other, Contact: bob, CreatedAt: start, ExpiresAt: start.Add(time.Hour)},
			} {
				c.Hash = []byte{byte(i)}
				if err := tx.PutLedger(e.Context(), rule.Ledger{Code: c}); err != nil {
					return err
				}
				l := parley.OTPLink{ID: parley.OTPID(strings.Replace(string(c.ID), "otc", "otl", 1)), Channel: c.Channel,
					Contact: c.Contact, Hash: c.Hash, CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt}
				if err := tx.AddLink(e.Context(), l); err != nil {
					return err
				}
				if l.ID == "otl_2" {
					l.Status, l.EndedAt = parley.OTPStatusApproved, start.Add(90*time.Second)
					if err := tx.UpdateLink(e.Context(), l); err != nil {
						return err
					}
				}
			}
			return nil
		})
		codes, err := e.store.RecentCodes(e.Context(), main, 10)
		e.must(err)
		links, err := e.store.RecentLinks(e.Context(), main, 10)
		e.must(err)
		var got []parley.OTPID
		for _, c := range codes {
			got = append(got, c.ID)
		}
		for _, l := range links {
			got = append(got, l.ID)
		}
		e.same("codes and links", got, []parley.OTPID{"otc_2", "otc_1", "otl_2", "otl_1"})
		links, err = e.store.RecentLinks(e.Context(), main, 1)
		e.must(err)
		e.same("one link", len(links), 1)
	},
}

// findAll goes on with a search until its end and returns the ids of what it found.
func (e *env) findAll(q parley.MessageQuery) []string {
	e.Helper()
	var all []string
	for steps := 0; ; steps++ {
		page, err := e.store.FindMessages(e.Context(), q)
		e.must(err)
		if len(page.Messages) > q.Limit || steps > 1000 {
			e.Fatalf("%d found at once, of %d; %d steps", len(page.Messages), q.Limit, steps)
		}
		all = append(all, ids(page.Messages)...)
		if page.Next == 0 {
			return all
		}
		q.Before = page.Next
	}
}
