package store_test

import (
	"fmt"
	"strings"

	"parley"
	"parley/internal/store"
)

var numberTests = map[string]func(*env){
	"a search by the beginning of a number finds what all its chats have": func(e *env) {
		for chats, each := range map[int]int{0: 1, 1: 12, 3: 6, 40: 3} {
			e.findsByNumber(chats, each, fmt.Sprintf("62%03d", chats), 5, 100)
		}
		e.findsByNumber(20, 2, "999", 7) // what no number comes after
	},

	"a search by the beginning of a number goes on where there are very many chats": func(e *env) {
		e.findsByNumber(2001, 1, "628", 800)
	},

	"a search by the beginning of a number goes on where much was said": func(e *env) {
		e.findsByNumber(17, 300, "6285", 2000) // more than one step looks at
	},

	"a whole number is that contact alone": func(e *env) {
		e.channel(main, other)
		long := incoming("LONG")
		long.Chat = "62811000000012@c.us" // Ann's number, and a digit
		ann, elsewhere := incoming("ANN"), incoming("ELSEWHERE")
		elsewhere.Channel = other
		e.add(&long, &ann, &elsewhere)
		for number, want := range map[string][]string{
			"6281100000001": {"ELSEWHERE", "ANN"}, "628110000000": {"ELSEWHERE", "ANN", "LONG"},
			"62811000000012": {"LONG"}, "62811000000013": nil, "811": nil,
		} {
			e.same("who begins with "+number, e.findAll(parley.MessageQuery{Limit: 2, Number: number}), want)
		}
		e.same("on a channel", e.findAll(parley.MessageQuery{Limit: 2, Number: "62811", Channel: main}), []string{"ANN", "LONG"})
	},

	"a number is found by its last digits": func(e *env) {
		e.channel(main, other)
		of := func(id, number string, channel parley.ChannelCode) *parley.Message {
			m := incoming(id)
			m.Channel, m.Chat = channel, parley.NewContactID(number)
			return &m
		}
		group := of("GROUP", "", main)
		group.Chat = "120363000039595@g.us"
		e.add(of("HOME", "6281230039595", main), of("ABROAD", "5581230039595", other), of("LIKE", "6281230049595", main),
			of("STARTS", "39595000001", main), group)
		for digits, want := range map[string][]string{
			"9595": {"LIKE", "ABROAD", "HOME"}, "39595": {"ABROAD", "HOME"}, "81230039595": {"ABROAD", "HOME"},
			"6281230039595": {"HOME"}, "0000": nil, "5950": nil,
		} {
			e.same("who ends with "+digits, e.findAll(parley.MessageQuery{Limit: 2, Ending: digits}), want)
			chats, err := e.store.ListChats(e.Context(), parley.ChatQuery{Ending: digits, Limit: 10})
			if err != nil || len(chats) != len(want) {
				e.Errorf("the chats that end with %s: %d, %v", digits, len(chats), err)
			}
		}
		e.same("on a channel", e.findAll(parley.MessageQuery{Limit: 2, Ending: "9595", Channel: other}), []string{"ABROAD"})
		e.same("at either end", e.findAll(parley.MessageQuery{Limit: 2, Number: "39595", Ending: "39595"}),
			[]string{"STARTS", "ABROAD", "HOME"})
		chats, err := e.store.ListChats(e.Context(), parley.ChatQuery{Number: "39595", Ending: "39595", Limit: 10})
		if err != nil || len(chats) != 3 {
			e.Errorf("the chats at either end: %d, %v", len(chats), err)
		}
	},
}

// findsByNumber has channels talk with some contacts whose numbers begin with some digits, and with others,
// and looks for the former in pages of each size.
func (e *env) findsByNumber(chats, each int, digits string, limits ...int) {
	e.Helper()
	here, there := parley.ChannelCode("here-"+digits), parley.ChannelCode("there-"+digits)
	e.channel(here, there)
	var all []parley.Message // that begin so
	for i := range each {
		e.tx(func(tx *store.Tx) error {
			for c := range max(chats, 1) {
				m := outgoing("")
				if (i+c)%3 == 0 {
					m = incoming(fmt.Sprintf("IN-%s-%d-%d", digits, i, c))
				}
				m.Channel, m.Chat = here, parley.NewContactID(fmt.Sprintf("%s%07d", digits, c))
				if c%7 == 6 {
					m.Channel = there
				}
				if c%8 == 0 {
					beside := outgoing("")
					beside.Channel, beside.Chat = here, parley.NewContactID(fmt.Sprintf("1%s%05d", digits, c))
					if err := tx.AddMessage(e.Context(), &beside); err != nil {
						return err
					}
				}
				if c >= chats {
					continue
				}
				if err := tx.AddMessage(e.Context(), &m); err != nil {
					return err
				}
				all = append(all, m)
			}
			return nil
		})
	}
	ids := func(wanted func(*parley.Message) bool) []string {
		var ids []string
		for i := len(all) - 1; i >= 0; i-- {
			if wanted(&all[i]) {
				ids = append(ids, string(all[i].ID))
			}
		}
		return ids
	}
	in, out := false, true
	for _, limit := range limits {
		name := func(what string) string { return fmt.Sprintf("%s, %d chats, %d at a time", what, chats, limit) }
		q := parley.MessageQuery{Number: digits, Limit: limit}
		e.same(name("all"), e.findAll(q), ids(func(*parley.Message) bool { return true }))
		q.FromMe = &in
		e.same(name("those that came"), e.findAll(q), ids(func(m *parley.Message) bool { return !m.FromMe }))
		q.FromMe, q.Channel = &out, there
		e.same(name("those that were sent there"), e.findAll(q), ids(func(m *parley.Message) bool { return m.FromMe && m.Channel == there }))
		q.FromMe, q.Channel, q.Text = nil, "", "text of in-"
		e.same(name("those with a text"), e.findAll(q), ids(func(m *parley.Message) bool { return strings.HasPrefix(string(m.ID), "IN-") }))
	}
}
