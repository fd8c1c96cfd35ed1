package networktest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"parley"
	"parley/internal/network"
)

func testReceipts(t *fixture) {
	text := t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"})
	sent, played := []parley.MessageID{text.ID}, []parley.MessageID(nil)
	t.send(text)
	if t.Driver.Info().CanSend(parley.KindVoice) {
		note := t.outgoing(t.phone.Contact(), parley.Voice{Media: t.StoreMedia(t, []byte("OggS and so on"),
			parley.Media{MIME: "audio/ogg; codecs=opus", Seconds: 3})})
		t.send(note)
		sent, played = append(sent, note.ID), append(played, note.ID)
	}
	t.in.awaitStatus(t, parley.Delivered, sent...)
	t.phone.Read(t)
	t.in.awaitStatus(t, parley.Read, sent...)
	t.in.awaitStatus(t, parley.Played, played...)
	for _, r := range of[network.Receipt](t.in.all()) {
		if r.From != t.phone.Contact() || r.At.IsZero() {
			t.Errorf("the receipt %+v is not from %s, or has no time", r, t.phone.Contact())
		}
		if r.Status == parley.Played && slices.Contains(r.IDs, text.ID) {
			t.Error("a text was played")
		}
	}
}

func testOffline(t *fixture) {
	away, here := t.Phone(t, 0), t.Phone(t, 1)
	away.SetOnline(t, false)
	first, second := t.outgoing(away.Contact(), parley.Text{Body: "1"}), t.outgoing(away.Contact(), parley.Text{Body: "2"})
	other := t.outgoing(here.Contact(), parley.Text{Body: "3"})
	t.send(first, second, other)
	t.in.awaitStatus(t, parley.Delivered, other.ID)
	for _, r := range of[network.Receipt](t.in.all()) {
		if r.From == away.Contact() && r.Status != parley.Sent {
			t.Errorf("a phone that is offline gave %+v", r)
		}
	}
	away.SetOnline(t, true)
	t.in.awaitStatus(t, parley.Delivered, first.ID, second.ID)
	t.expectBodies(away, "1", "2")
}

func testReceiptRetry(t *fixture) {
	var refused atomic.Int32
	t.in.refuseWith(func(_ context.Context, e network.Event) error {
		if _, ok := e.(network.Receipt); ok && refused.Add(1) <= 3 {
			return fmt.Errorf("%w: %w", errNotNow, parley.ErrNotFound)
		}
		return nil
	})
	m := t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"})
	t.send(m)
	t.in.awaitStatus(t, parley.Delivered, m.ID)
	if refused.Load() <= 3 {
		t.Error("the receipt was not given again")
	}
}

func testInbound(t *fixture) {
	question := t.outgoing(t.phone.Contact(), parley.Text{Body: "where?"})
	t.send(question)
	picture := tinyPNG(t)
	described := parley.Media{MIME: "image/png", Filename: "a.png", Size: int64(len(picture)), SHA256: sha(picture)}
	still := parley.Media{MIME: "image/webp", Filename: "a.webp", Size: int64(len(tinyWebP)), SHA256: sha(tinyWebP)}
	paper := []byte("%PDF-1.7 and so on")
	want := []parley.Content{
		parley.Text{Body: "di sini 👋"},
		parley.Location{Title: "Monas", Latitude: "-6.1754", Longitude: "106.8272"},
		parley.Image{Caption: "a picture", Media: described},
		parley.Sticker{Media: still},
		parley.File{Media: parley.Media{MIME: "application/pdf", Filename: "a.pdf", Size: int64(len(paper)), SHA256: sha(paper)}},
	}
	files := [][]byte{nil, nil, picture, tinyWebP, paper}
	for i := len(want) - 1; i >= 0; i-- {
		if !t.Driver.Info().CanSend(want[i].Kind()) {
			want, files = slices.Delete(want, i, i+1), slices.Delete(files, i, i+1)
		}
	}
	var ids []parley.MessageID
	for i, content := range want {
		ids = append(ids, t.phone.Send(t, content, files[i], question.ID))
	}
	got := awaitCount[network.Message](t, t.in, len(want))
	for i, m := range got {
		if m.From != t.phone.Contact() || m.ID != ids[i] || m.ReplyTo != question.ID || m.At.IsZero() {
			t.Errorf("message %d is %+v, want %s", i, m, ids[i])
		}
		if got := fetch(t, t.s, m.File); !bytes.Equal(got, files[i]) {
			t.Errorf("the file of message %d is %q, want %q", i, got, files[i])
		}
		if file := parley.MediaIn(want[i]); file != nil && t.SizeUnknown {
			file.Size = 0
			want[i] = parley.WithMedia(want[i], *file)
		}
		if err := sameContent(m.Content, want[i]); err != nil {
			t.Error(err)
		}
	}
}

// testFetchLater fetches a file with another session than the one that its message came on.
func testFetchLater(t *fixture) {
	paper := []byte("%PDF-1.7 and so on")
	t.phone.Send(t, parley.File{Media: parley.Media{MIME: "application/pdf", Filename: "a.pdf"}}, paper, "")
	reference := awaitCount[network.Message](t, t.in, 1)[0].File
	t.must(t.s.Close())
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	t.must(err)
	defer file.Close()
	if err := t.s.Fetch(t.Context(), reference, file); network.ToClass(err) != network.Disconnected {
		t.Errorf("a closed session fetches: %v", err)
	}
	t.s, _ = start(t, t.Harness)
	if got := fetch(t, t.s, reference); !bytes.Equal(got, paper) {
		t.Errorf("the file is %q, want %q", got, paper)
	}
	if err := t.s.Fetch(t.Context(), []byte("nonsense"), file); network.ToClass(err) != network.Permanent {
		t.Errorf("nonsense is fetched: %v", err)
	}
}

// fetch returns the file of a message; nil: no file.
func fetch(t testing.TB, s network.Session, reference []byte) []byte {
	t.Helper()
	if reference == nil {
		return nil
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := s.Fetch(t.Context(), reference, file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testInboundRetry(t *fixture) {
	first, other := t.Phone(t, 0), t.Phone(t, 1)
	var tries atomic.Int32
	t.in.refuseWith(func(_ context.Context, e network.Event) error {
		if m, ok := e.(network.Message); ok && m.Content.Text() == "1" && tries.Add(1) <= 3 {
			return errNotNow
		}
		return nil
	})
	var want []string
	for i := range 5 {
		body := fmt.Sprint(i)
		first.Send(t, parley.Text{Body: body}, nil, "")
		want = append(want, body)
	}
	other.Send(t, parley.Text{Body: "from another"}, nil, "")
	var got []string
	for _, m := range awaitCount[network.Message](t, t.in, len(want)+1) {
		if m.From == first.Contact() {
			got = append(got, m.Content.Text())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("there came %q, want %q", got, want)
	}
	if tries.Load() != 4 {
		t.Errorf("the refused message was given %d times, want 4", tries.Load())
	}
}

func testInboundLater(t *fixture) {
	t.must(t.s.Close())
	t.phone.Send(t, parley.Text{Body: "1"}, nil, "")
	t.phone.Send(t, parley.Text{Body: "2"}, nil, "")
	_, in := start(t, t.Harness)
	got := awaitCount[network.Message](t, in, 2)
	if got[0].Content.Text() != "1" || got[1].Content.Text() != "2" {
		t.Errorf("there came %+v", got)
	}
}

func testReactions(t *fixture) {
	ours := t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"})
	t.send(ours)
	theirs := t.phone.Send(t, parley.Text{Body: "hello"}, nil, "")

	t.phone.React(t, ours.Ref(), "👍")
	t.phone.React(t, ours.Ref(), "")
	got := awaitCount[network.Reaction](t, t.in, 2)
	for i, emoji := range []string{"👍", ""} {
		if got[i].From != t.phone.Contact() || got[i].Target != ours.Ref() || got[i].Emoji != emoji {
			t.Errorf("reaction %d is %+v, want %q", i, got[i], emoji)
		}
	}

	for _, emoji := range []string{"❤️", ""} {
		target := parley.MessageRef{Chat: t.phone.Contact(), ID: theirs}
		t.send(t.outgoing(t.phone.Contact(), parley.Reaction{Emoji: emoji, Target: target}))
		if got := t.phone.ReactionTo(t, theirs); got != emoji {
			t.Errorf("the phone shows the reaction %q, want %q", got, emoji)
		}
	}
	t.send(t.outgoing(t.phone.Contact(), parley.Reaction{Emoji: "🎉", Target: ours.Ref()}))
	if shown := t.phone.Shows(t); len(shown) != 1 || shown[0].Reaction != "🎉" {
		t.Errorf("the phone shows %+v, want a reaction to our own message", shown)
	}
}

func testDeletions(t *fixture) {
	ours, stays := t.outgoing(t.phone.Contact(), parley.Text{Body: "oops"}), t.outgoing(t.phone.Contact(), parley.Text{Body: "stays"})
	t.send(ours, stays)
	for range 2 { // twice is no error
		t.send(t.outgoing(t.phone.Contact(), parley.Delete{Target: ours.Ref()}))
	}
	shown := t.phone.Shows(t)
	if len(shown) != 2 || !shown[0].Deleted || shown[0].Content.Text() != "" || shown[1].Deleted {
		t.Errorf("the phone shows %+v, want the first one deleted", shown)
	}
	theirs := t.phone.Send(t, parley.Text{Body: "oops too"}, nil, "")
	t.phone.Delete(t, theirs)
	got := awaitCount[network.Deletion](t, t.in, 1)[0]
	if got.From != t.phone.Contact() || got.Target != theirs || got.At.IsZero() {
		t.Errorf("there came %+v, want %s deleted", got, theirs)
	}
}

func testEdits(t *fixture) {
	ours, stays := t.outgoing(t.phone.Contact(), parley.Text{Body: "Monday"}), t.outgoing(t.phone.Contact(), parley.Text{Body: "stays"})
	t.send(ours, stays)
	for _, body := range []string{"Tuesday", "*Wednesday*\n👋"} {
		t.send(t.outgoing(t.phone.Contact(), parley.Edit{Body: body, Target: ours.Ref()}))
		shown := t.phone.Shows(t)
		if len(shown) != 2 || !shown[0].Edited || shown[0].Content.Text() != body || shown[1].Edited || shown[1].Content.Text() != "stays" {
			t.Errorf("the phone shows %+v, want the first one edited to %q", shown, body)
		}
	}
	t.send(t.outgoing(t.phone.Contact(), parley.Delete{Target: ours.Ref()}))
	t.send(t.outgoing(t.phone.Contact(), parley.Edit{Body: "again", Target: ours.Ref()})) // the network accepts it
	if shown := t.phone.Shows(t); !shown[0].Deleted || shown[0].Content.Text() != "" {
		t.Errorf("the phone shows %+v after the message was deleted", shown)
	}
	theirs := t.phone.Send(t, parley.Text{Body: "I come"}, nil, "")
	t.phone.Edit(t, theirs, "I do not come")
	t.phone.Edit(t, theirs, "I come later")
	for i, body := range []string{"I do not come", "I come later"} {
		got := awaitCount[network.Edit](t, t.in, 2)[i]
		if got.From != t.phone.Contact() || got.Group != "" || got.Target != theirs || got.Content.Text() != body || got.At.IsZero() {
			t.Errorf("there came %+v, want %s with %q", got, theirs, body)
		}
	}
	if got := of[network.Message](t.in.all()); len(got) != 1 {
		t.Errorf("there came %d messages, want the one that was edited", len(got))
	}
}

func testVotes(t *fixture) {
	poll := t.outgoing(t.phone.Contact(), parley.Poll{Title: "Kopi?", Options: []string{"ya", "tidak", "nanti"}, Multiple: true})
	t.send(poll)
	t.phone.Vote(t, poll.ID, "ya", "nanti")
	t.phone.Vote(t, poll.ID)
	got := awaitCount[network.Vote](t, t.in, 2)
	for i, want := range [][]string{{"ya", "nanti"}, nil} {
		if got[i].From != t.phone.Contact() || got[i].Poll != poll.ID || !slices.Equal(got[i].Options, want) {
			t.Errorf("vote %d is %+v, want %q", i, got[i], want)
		}
	}
}

func testSeen(t *fixture) {
	id := t.phone.Send(t, parley.Text{Body: "there?"}, nil, "")
	awaitCount[network.Message](t, t.in, 1)
	if t.phone.WasSeen(t, id) {
		t.Error("it was seen before anybody said so")
	}
	for range 2 { // twice is no error
		t.send(t.outgoing(t.phone.Contact(), parley.Seen{Target: parley.MessageRef{Chat: t.phone.Contact(), ID: id}}))
	}
	if !t.phone.WasSeen(t, id) {
		t.Error("the phone got no read receipt")
	}
}

func testReadChat(t *fixture) {
	read := parley.ReadChat{Read: true}
	for _, body := range []string{"there?", "hello?"} {
		id := t.phone.Send(t, parley.Text{Body: body}, nil, "")
		read.Seen = append(read.Seen, parley.Seen{Target: parley.MessageRef{Chat: t.phone.Contact(), ID: id}})
	}
	awaitCount[network.Message](t, t.in, 2)
	for range 2 { // twice is no error
		t.send(t.outgoing(t.phone.Contact(), read))
	}
	for _, seen := range read.Seen {
		if !t.phone.WasSeen(t, seen.Target.ID) {
			t.Errorf("the phone got no read receipt of %s", seen.Target.ID)
		}
	}
	t.send(t.outgoing(t.phone.Contact(), parley.ReadChat{}))
}

// wantTimer sends a message and checks that it carries a timer, which the network shows.
func (t *fixture) wantTimer(chat parley.ContactID, seconds int) {
	t.Helper()
	m := t.outgoing(chat, parley.Text{Body: "hi"})
	t.send(m)
	shown := t.phone.Shows(t)
	if last := shown[len(shown)-1]; last.ID != m.ID || last.Timer != seconds {
		t.Errorf("the phone shows %+v, want the timer %d", last, seconds)
	}
}

func testTimer(t *fixture) {
	contact := t.phone.Contact()
	t.wantTimer(contact, 0)
	t.phone.SetTimer(t, "", 604800)
	t.phone.Send(t, parley.Text{Body: "they disappear now"}, nil, "")
	awaitCount[network.Message](t, t.in, 1)
	t.wantTimer(contact, 604800)
	for _, seconds := range []int{86400, 86400, 0} { // twice is no error
		t.send(t.outgoing(contact, parley.Timer{Seconds: seconds}))
		t.wantTimer(contact, seconds)
		c, err := t.directory.Contact(t.Context(), contact)
		if err != nil || c.Timer != seconds {
			t.Errorf("the contact is %+v (%v), want the timer %d", c, err, seconds)
		}
	}
	t.s.Close()
	t.s, t.in = start(t, t.Harness)
	t.phone.SetTimer(t, "", 7776000)
	t.phone.Send(t, parley.Text{Body: "again"}, nil, "")
	awaitCount[network.Message](t, t.in, 1)
	t.s.Close()
	t.s, t.in = start(t, t.Harness)
	t.wantTimer(contact, 7776000) // it outlives the session
}

func testGroupTimer(t *fixture) {
	g, err := t.groups.CreateGroup(t.Context(), "Club", []parley.ContactID{t.phone.Contact()})
	t.must(err)
	t.wantTimer(g.ID.Chat(), 0)
	t.send(t.outgoing(g.ID.Chat(), parley.Timer{Seconds: 604800}))
	t.wantTimer(g.ID.Chat(), 604800)
	t.phone.SetTimer(t, g.ID, 86400)
	t.phone.SendInGroup(t, g.ID, parley.Text{Body: "they disappear sooner"}, "")
	awaitCount[network.Message](t, t.in, 1)
	t.wantTimer(g.ID.Chat(), 86400)
	all, _, err := t.groups.Groups(t.Context(), parley.Page{Limit: 100})
	if i := slices.IndexFunc(all, func(other parley.Group) bool { return other.ID == g.ID }); err != nil || i < 0 || all[i].Timer != 86400 {
		t.Errorf("the groups are %+v (%v)", all, err)
	}
	err = t.trySend(t.outgoing("120363999999999999@g.us", parley.Timer{}))[0]
	if network.ToClass(err) != network.Permanent {
		t.Errorf("the timer of a group that the channel is not in: %v", err)
	}
}

func testBlocked(t *fixture) {
	isBlocked := func(want bool) {
		t.Helper()
		t.must(t.blocker.SetBlocked(t.Context(), t.phone.Contact(), want))
		c, err := t.directory.Contact(t.Context(), t.phone.Contact())
		if err != nil || c.IsBlocked != want {
			t.Errorf("the contact is %+v (%v)", c, err)
		}
	}
	isBlocked(true)
	t.phone.Send(t, parley.Text{Body: "while blocked"}, nil, "")
	isBlocked(false)
	last := t.phone.Send(t, parley.Text{Body: "later"}, nil, "")
	if got := awaitCount[network.Message](t, t.in, 1)[0]; got.ID != last {
		t.Errorf("there came %+v", got)
	}
}

func testOwnOperations(t *fixture) {
	m := t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"})
	t.send(m)
	t.send(t.outgoing(t.phone.Contact(), parley.Star{Target: m.Ref(), Starred: true}),
		t.outgoing(t.phone.Contact(), parley.Star{Target: m.Ref()}))
	t.send(t.outgoing(t.phone.Contact(), parley.Archive{Archived: true}), t.outgoing(t.phone.Contact(), parley.Archive{}))
	t.expectBodies(t.phone, "hi")
}

func testTyping(t *fixture) {
	states := []bool{true, false}
	if t.TypingOnlyAfter {
		states = states[:1]
		t.phone.Send(t, parley.Text{Body: "there?"}, nil, "")
	}
	for _, on := range states {
		t.must(t.typist.Typing(t.Context(), t.phone.Contact(), on))
		if got := t.phone.SeesTyping(t); got != on {
			t.Errorf("the phone sees typing: %t, want %t", got, on)
		}
	}
}
