package sandbox

import (
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

// TestHiddenNumber has a phone hide its number after its first messages, write and be written to, and show the number again.
func TestHiddenNumber(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		number := parley.NewContactID(ayu)
		d.patch(ayu, PhonePatch{Online: new(false)})
		early := text(ayu, "to the number")
		must(t, d.send(early)[0])
		d.patch(ayu, PhonePatch{NumberHidden: new(true), Online: new(true)})
		p, err := d.network.Phone(t.Context(), "test", ayu)
		must(t, err)
		hidden := p.ContactID
		if !p.NumberHidden || !hidden.IsHidden() {
			t.Fatalf("the phone is %+v", p)
		}
		said, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "guess who"}})
		must(t, err)
		answer := text(ayu, "no idea")
		answer.Chat = hidden
		must(t, d.send(answer)[0])
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 1 || got[0].From != hidden || said.ID.Chat != hidden {
			t.Errorf("there came %+v of %s", got, said.ID)
		}
		must(t, d.network.React(t.Context(), "test", ayu, said.ID.String(), "👍"))
		must(t, d.network.React(t.Context(), "test", ayu, string(early.ID), "👍"))
		waitFor(t, time.Second)
		for _, r := range came[network.Reaction](d) {
			if want := map[bool]parley.ContactID{true: number, false: hidden}[r.Target.ID == early.ID]; r.Target.Chat != want {
				t.Errorf("the reaction %+v is not in the chat %s", r, want)
			}
		}
		for id, from := range map[parley.MessageID]parley.ContactID{early.ID: number, answer.ID: hidden} {
			if !slices.ContainsFunc(came[network.Receipt](d), func(r network.Receipt) bool { return r.From == from && slices.Contains(r.IDs, id) }) {
				t.Errorf("no receipt from %s for %s: %+v", from, id, came[network.Receipt](d))
			}
		}
		c, err := d.session.Contact(t.Context(), hidden)
		if must(t, err); c.ID != hidden || c.Username == "" || !c.OnNetwork {
			t.Errorf("the contact is %+v", c)
		}
		stranger := text(ayu, "hello?")
		stranger.Chat = hiddenID(999)
		if err := d.send(stranger)[0]; err != network.ErrImpossibleNumber {
			t.Errorf("a hidden id that nobody has: %v", err)
		}

		d.patch(ayu, PhonePatch{NumberHidden: new(false)})
		waitFor(t, time.Second)
		if got := came[network.Alias](d); len(got) != 1 || got[0] != (network.Alias{Asked: hidden, Contact: number}) {
			t.Fatalf("the number became known as %+v", got)
		}
		_, err = d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "me"}})
		must(t, err)
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 2 || got[1].From != number {
			t.Errorf("there came %+v", got)
		}
		_, err = d.network.UpdatePhone(t.Context(), "test", ayu, PhonePatch{NumberHidden: new(true)})
		if parley.ToCode(err) != parley.Invalid {
			t.Errorf("a known number was hidden: %v", err)
		}
	})
}

// TestHiddenInGroup has a member of a group without a visible number, and the channel write to that number.
func TestHiddenInGroup(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{NumberHidden: new(true)})
		p, err := d.network.Phone(t.Context(), "test", ayu)
		must(t, err)
		groups, _, err := d.session.Groups(t.Context(), parley.Page{Limit: 1})
		must(t, err)
		isMember := func(id parley.ContactID) bool {
			members, err := d.session.Participants(t.Context(), groups[0].ID)
			must(t, err)
			return slices.ContainsFunc(members, func(m parley.Participant) bool { return m.ID == id })
		}
		if number := parley.NewContactID(ayu); !isMember(p.ContactID) || isMember(number) {
			t.Error("the group shows the number")
		}
		_, err = d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi all"}, Group: groups[0].ID})
		must(t, err)
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 1 || got[0].From != p.ContactID {
			t.Errorf("there came %+v", got)
		}
		m := text(ayu, "I know your number")
		must(t, d.send(m)[0])
		waitFor(t, time.Second)
		if came[network.Alias](d) == nil || !isMember(parley.NewContactID(ayu)) || came[network.Receipt](d)[0].From != parley.NewContactID(ayu) {
			t.Errorf("there came %+v and %+v", came[network.Alias](d), came[network.Receipt](d))
		}
	})
}
