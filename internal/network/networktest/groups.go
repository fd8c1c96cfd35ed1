package networktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"slices"
	"strings"
	"sync/atomic"

	"parley"
	"parley/internal/network"
)

// newGroup makes a group with the first two phones.
func (t *fixture) newGroup() (parley.GroupID, []Phone) {
	t.Helper()
	phones := []Phone{t.Phone(t, 0), t.Phone(t, 1)}
	made, err := t.groups.CreateGroup(t.Context(), "A group", []parley.ContactID{phones[0].Contact(), phones[1].Contact()})
	t.must(err)
	return made.ID, phones
}

func testGroupMessages(t *fixture) {
	group, phones := t.newGroup()
	picture := t.StoreMedia(t, tinyPNG(t), parley.Media{MIME: "image/png", Filename: "a.png", Width: 2, Height: 3})
	body := "Halo @" + phones[1].Contact().Number() + ", apa kabar?"
	first := t.outgoing(group.Chat(), parley.Text{Body: body, Mentions: []parley.ContactID{phones[1].Contact()}})
	sent := []*parley.Message{first, t.outgoing(group.Chat(), parley.Image{Caption: "a picture", Media: picture}),
		t.outgoing(group.Chat(), parley.Text{Body: "a reply"})}
	sent[1].Content = parley.AsForwarded(sent[1].Content)
	sent[2].ReplyTo = first.ID
	for i := range 20 { // alone and in bursts
		sent = append(sent, t.outgoing(group.Chat(), parley.Text{Body: fmt.Sprint("message ", i)}))
	}
	alone := t.outgoing(phones[0].Contact(), parley.Text{Body: "only you"})
	t.send(alone)
	burst, _ := t.s.Limits()
	for some := range slices.Chunk(sent, burst) {
		t.send(some...)
	}
	t.send(sent[0]) // once more: it is shown once
	for i, phone := range phones {
		shown := slices.DeleteFunc(phone.Shows(t), func(s Shown) bool { return s.Group == "" })
		if len(shown) != len(sent) {
			t.Fatalf("phone %d shows %d messages of the group, want %d", i, len(shown), len(sent))
		}
		for j, m := range sent {
			if shown[j].ID != m.ID || shown[j].Group != group || shown[j].ReplyTo != m.ReplyTo {
				t.Errorf("phone %d: message %d is %+v, want %s", i, j, shown[j], m.ID)
			}
			if got := parley.IsForwarded(shown[j].Content); got != parley.IsForwarded(m.Content) {
				t.Errorf("phone %d: message %d is shown as forwarded: %t", i, j, got)
			}
			if err := sameContent(shown[j].Content, m.Content); err != nil {
				t.Errorf("phone %d: %v", i, err)
			}
		}
		if text := shown[0].Content.(parley.Text); !slices.Equal(text.Mentions, []parley.ContactID{phones[1].Contact()}) {
			t.Errorf("phone %d shows the mentions %q", i, text.Mentions)
		}
	}
	if direct := slices.DeleteFunc(phones[1].Shows(t), func(s Shown) bool { return s.Group != "" }); len(direct) != 0 {
		t.Errorf("the other phone shows %+v of a chat that it is not in", direct)
	}
}

func testGroupReceipts(t *fixture) {
	group, phones := t.newGroup()
	m := t.outgoing(group.Chat(), parley.Text{Body: "hi"})
	t.send(m)
	t.in.awaitStatus(t, parley.Delivered, m.ID)
	for _, phone := range phones {
		phone.Shows(t) // it has the message
		phone.Read(t)
	}
	t.in.awaitStatus(t, parley.Read, m.ID)
	for _, r := range of[network.Receipt](t.in.all()) {
		if r.Group != group || r.From != phones[0].Contact() && r.From != phones[1].Contact() || r.At.IsZero() {
			t.Errorf("the receipt is %+v", r)
		}
	}
}

func testGroupInbound(t *fixture) {
	group, phones := t.newGroup()
	var tries atomic.Int32
	t.in.refuseWith(func(_ context.Context, e network.Event) error {
		if m, ok := e.(network.Message); ok && m.Content.Text() == "message 1" && tries.Add(1) <= 2 {
			return errNotNow
		}
		return nil
	})
	type said struct {
		from parley.ContactID
		id   parley.MessageID
		body string
	}
	var want []said
	for i := range 8 {
		phone, body := phones[i%2], fmt.Sprint("message ", i)
		want = append(want, said{phone.Contact(), phone.SendInGroup(t, group, parley.Text{Body: body}, ""), body})
	}
	phones[0].Send(t, parley.Text{Body: "only you"}, nil, "")
	got := awaitCount[network.Message](t, t.in, len(want)+1)
	got = slices.DeleteFunc(got, func(m network.Message) bool {
		if m.Group == "" && m.Content.Text() != "only you" {
			t.Errorf("%+v came without its group", m)
		}
		return m.Group == ""
	})
	for i, m := range got {
		if m.From != want[i].from || m.ID != want[i].id || m.Content.Text() != want[i].body || m.Group != group || m.At.IsZero() {
			t.Errorf("message %d is %+v, want %+v", i, m, want[i])
		}
	}
	mention := phones[0].SendInGroup(t, group, parley.Text{Body: "Hi @" + phones[1].Contact().Number(),
		Mentions: []parley.ContactID{phones[1].Contact()}}, want[1].id)
	last := awaitCount[network.Message](t, t.in, len(want)+2)[len(want)+1]
	text, ok := last.Content.(parley.Text)
	if last.ID != mention || last.ReplyTo != want[1].id || !ok || !slices.Equal(text.Mentions, []parley.ContactID{phones[1].Contact()}) ||
		text.Body != "Hi @"+phones[1].Contact().Number() {
		t.Errorf("there came %+v", last)
	}
}

func testGroupOperations(t *fixture) {
	group, phones := t.newGroup()
	ours := t.outgoing(group.Chat(), parley.Text{Body: "ours"})
	poll := t.outgoing(group.Chat(), parley.Poll{Title: "Kopi?", Options: []string{"ya", "tidak"}})
	t.send(ours, poll)
	theirs := phones[0].SendInGroup(t, group, parley.Text{Body: "theirs"}, "")
	awaitCount[network.Message](t, t.in, 1)
	ref := parley.MessageRef{Chat: group.Chat(), ID: theirs}

	t.send(t.outgoing(group.Chat(), parley.Reaction{Emoji: "❤️", Target: ref, Author: phones[0].Contact()}))
	if got := phones[0].ReactionTo(t, theirs); got != "❤️" {
		t.Errorf("the phone shows the reaction %q", got)
	}
	t.send(t.outgoing(group.Chat(), parley.Seen{Target: ref, Author: phones[0].Contact()}))
	if !phones[0].WasSeen(t, theirs) {
		t.Error("the phone got no read receipt")
	}
	t.send(t.outgoing(group.Chat(), parley.Star{Target: ref, Author: phones[0].Contact(), Starred: true}),
		t.outgoing(group.Chat(), parley.Archive{Archived: true}))
	t.send(t.outgoing(group.Chat(), parley.Edit{Body: "edited", Target: ours.Ref()}))
	for i, phone := range phones {
		if shown := phone.Shows(t); !shown[0].Edited || shown[0].Content.Text() != "edited" {
			t.Errorf("phone %d shows %+v", i, shown)
		}
	}
	phones[0].Edit(t, theirs, "theirs, edited")
	if got := awaitCount[network.Edit](t, t.in, 1)[0]; got.From != phones[0].Contact() || got.Group != group || got.Target != theirs ||
		got.Content.Text() != "theirs, edited" {
		t.Errorf("the edit is %+v", got)
	}
	t.send(t.outgoing(group.Chat(), parley.Delete{Target: ours.Ref()}))
	for i, phone := range phones {
		if shown := phone.Shows(t); !shown[0].Deleted || shown[1].Deleted {
			t.Errorf("phone %d shows %+v", i, shown)
		}
	}

	phones[1].React(t, poll.Ref(), "👍")
	if got := awaitCount[network.Reaction](t, t.in, 1)[0]; got.From != phones[1].Contact() || got.Target != poll.Ref() || got.Emoji != "👍" {
		t.Errorf("the reaction is %+v", got)
	}
	phones[1].React(t, ref, "🎉") // to a message of another member
	if got := awaitCount[network.Reaction](t, t.in, 2)[1]; got.From != phones[1].Contact() || got.Target != ref {
		t.Errorf("the reaction is %+v", got)
	}
	phones[0].Vote(t, poll.ID, "ya")
	phones[1].Vote(t, poll.ID, "tidak")
	votes := awaitCount[network.Vote](t, t.in, 2)
	for i, v := range votes {
		if v.Group != group || v.From != phones[i].Contact() || v.Poll != poll.ID || !slices.Equal(v.Options, [][]string{{"ya"}, {"tidak"}}[i]) {
			t.Errorf("vote %d is %+v", i, v)
		}
	}
	phones[0].Delete(t, theirs)
	if got := awaitCount[network.Deletion](t, t.in, 1)[0]; got.From != phones[0].Contact() || got.Group != group || got.Target != theirs {
		t.Errorf("the deletion is %+v", got)
	}
	t.must(t.typist.Typing(t.Context(), group.Chat(), true))
	if !phones[1].SeesTyping(t) {
		t.Error("a member does not see typing")
	}
}

func testGroupChanges(t *fixture) {
	first, second := t.Phone(t, 0), t.Phone(t, 1)
	made, err := t.groups.CreateGroup(t.Context(), "A group", []parley.ContactID{first.Contact()})
	t.must(err)
	change := func(add bool, member parley.ContactID) {
		t.Helper()
		for range 2 { // twice is no error
			errs, err := t.groups.UpdateParticipants(t.Context(), made.ID, add, []parley.ContactID{member})
			if err != nil || errs[0] != nil {
				t.Fatalf("change %s: %v, %v", member, errs, err)
			}
		}
	}
	t.send(t.outgoing(made.ID.Chat(), parley.Text{Body: "before"}))
	change(true, second.Contact())
	t.in.await(t, "somebody was added", func(events []network.Event) bool {
		return slices.ContainsFunc(of[network.GroupChange](events), func(c network.GroupChange) bool {
			return c.GroupID == made.ID && c.FromMe && slices.Equal(c.Added, []parley.ContactID{second.Contact()}) && !c.At.IsZero()
		})
	})
	t.send(t.outgoing(made.ID.Chat(), parley.Text{Body: "with both"}))
	change(false, first.Contact())
	t.in.await(t, "somebody was removed", func(events []network.Event) bool {
		return slices.ContainsFunc(of[network.GroupChange](events), func(c network.GroupChange) bool {
			return c.GroupID == made.ID && c.FromMe && slices.Equal(c.Removed, []parley.ContactID{first.Contact()})
		})
	})
	t.send(t.outgoing(made.ID.Chat(), parley.Text{Body: "with the second"}))
	t.expectBodies(first, "before", "with both")
	t.expectBodies(second, "with both", "with the second")
	inside, err := t.groups.Participants(t.Context(), made.ID)
	if err != nil || len(inside) != 2 || !slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.ID == second.Contact() }) {
		t.Errorf("the participants are %+v (%v)", inside, err)
	}

	second.RenameGroup(t, made.ID, "Another name")
	second.LeaveGroup(t, made.ID)
	t.in.await(t, "a new name, and somebody left", func(events []network.Event) bool {
		all := of[network.GroupChange](events)
		return slices.ContainsFunc(all, func(c network.GroupChange) bool { return c.Name == "Another name" && c.By == second.Contact() }) &&
			slices.ContainsFunc(all, func(c network.GroupChange) bool {
				return c.By == second.Contact() && slices.Equal(c.Removed, []parley.ContactID{second.Contact()})
			})
	})
	testGroupErrors(t, made.ID)
}

func testGroupErrors(t *fixture, id parley.GroupID) {
	errs, err := t.groups.UpdateParticipants(t.Context(), id, true, []parley.ContactID{t.Absent, t.phone.Contact()})
	if err != nil || network.ToClass(errs[0]) != network.Permanent || errs[1] != nil {
		t.Errorf("adding an absent number: %v, %v", errs, err)
	}
	link, err := t.groups.InviteLink(t.Context(), id)
	if err != nil || !strings.HasPrefix(link, "https://") {
		t.Errorf("the invite link is %q (%v)", link, err)
	}
	t.must(t.groups.LeaveGroup(t.Context(), id))
	for _, id := range []parley.GroupID{id, "120363999999999999@g.us"} {
		if err := t.groups.LeaveGroup(t.Context(), id); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("leaving it: %v", err)
		}
		if _, err := t.groups.InviteLink(t.Context(), id); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("inviting into it: %v", err)
		}
		_, err := t.groups.UpdateParticipants(t.Context(), id, true, []parley.ContactID{t.phone.Contact()})
		if !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("adding to it: %v", err)
		}
		refusal := t.trySend(t.outgoing(id.Chat(), parley.Text{Body: "hi"}))[0]
		if network.ToClass(refusal) != network.Permanent {
			t.Errorf("sending to it: %v", refusal)
		}
	}
}

func testGroupAdmin(t *fixture) {
	first, second, ctx := t.Phone(t, 0), t.Phone(t, 1), t.Context()
	made, err := t.groups.CreateGroup(ctx, "A group", []parley.ContactID{first.Contact()})
	t.must(err)
	errs, err := t.admin.SetAdmins(ctx, made.ID, true, []parley.ContactID{first.Contact(), second.Contact()})
	if err != nil || errs[0] != nil || network.ToClass(errs[1]) != network.Permanent {
		t.Errorf("making admins: %v, %v", errs, err)
	}
	isAdmin := func(want bool) {
		t.Helper()
		inside, err := t.groups.Participants(ctx, made.ID)
		if err != nil || !slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.ID == first.Contact() && p.IsAdmin == want }) {
			t.Errorf("the participants are %+v (%v)", inside, err)
		}
	}
	isAdmin(true)
	if errs, err = t.admin.SetAdmins(ctx, made.ID, false, []parley.ContactID{first.Contact()}); err != nil || errs[0] != nil {
		t.Errorf("taking it away: %v, %v", errs, err)
	}
	isAdmin(false)

	var icon bytes.Buffer
	t.must(jpeg.Encode(&icon, image.NewGray(image.Rect(0, 0, 640, 640)), nil))
	jpegIcon := icon.Bytes()
	read := func() parley.Group {
		t.Helper()
		all, _, err := t.groups.Groups(ctx, parley.Page{Limit: 100})
		t.must(err)
		return all[slices.IndexFunc(all, func(g parley.Group) bool { return g.ID == made.ID })]
	}
	for _, on := range []bool{true, false} {
		text := fmt.Sprint("it is ", on)
		t.must(t.admin.ChangeGroup(ctx, made.ID, parley.GroupPatch{Name: &text, Description: &text, OnlyAdminsEdit: &on, OnlyAdminsSend: &on,
			OnlyAdminsAdd: &on, JoinApproval: &on}))
		if g := read(); g.Name != text || g.Description != text || g.Restricted != on || g.OnlyAdminsSend != on || g.JoinApproval != on {
			t.Errorf("the group is %+v", g)
		}
	}
	t.must(t.admin.ChangeGroup(ctx, made.ID, parley.GroupPatch{Description: new(""), Picture: &jpegIcon}))
	if g := read(); g.Description != "" || g.Name != "it is false" {
		t.Errorf("the group is %+v", g)
	}

	t.must(t.admin.ChangeGroup(ctx, made.ID, parley.GroupPatch{JoinApproval: new(true)}))
	for _, approve := range []bool{false, true} {
		second.JoinGroup(t, made.ID)
		asked, err := t.admin.JoinRequests(ctx, made.ID)
		if err != nil || len(asked) != 1 || asked[0].ID != second.Contact() || asked[0].At.IsZero() {
			t.Errorf("there ask %+v (%v)", asked, err)
		}
		errs, err := t.admin.AnswerRequests(ctx, made.ID, approve, []parley.ContactID{second.Contact(), first.Contact()})
		if err != nil || errs[0] != nil || network.ToClass(errs[1]) != network.Permanent {
			t.Errorf("answering: %v, %v", errs, err)
		}
		inside, err := t.groups.Participants(ctx, made.ID)
		if err != nil || slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.ID == second.Contact() }) != approve {
			t.Errorf("the participants are %+v (%v)", inside, err)
		}
	}
	t.must(t.admin.ChangeGroup(ctx, made.ID, parley.GroupPatch{JoinApproval: new(false)}))

	link, err := t.groups.InviteLink(ctx, made.ID)
	t.must(err)
	t.must(t.groups.LeaveGroup(ctx, made.ID))
	if id, waits, err := t.admin.JoinGroup(ctx, link); err != nil || id != made.ID || waits {
		t.Errorf("joining: %s, %t, %v", id, waits, err)
	}
	read()
	if _, _, err := t.admin.JoinGroup(ctx, link+"7"); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("joining nowhere: %v", err)
	}
	const unknown = "120363999999999999@g.us"
	if err := t.admin.ChangeGroup(ctx, unknown, parley.GroupPatch{Name: new("x")}); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("changing an unknown group: %v", err)
	}
}
