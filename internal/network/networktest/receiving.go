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

func testReceipts(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	voice := h.StoreMedia(t, []byte("OggS and so on"), parley.Media{MIME: "audio/ogg; codecs=opus", Seconds: 3})
	text := outgoing(phone.Contact(), parley.Text{Body: "hi"})
	note := outgoing(phone.Contact(), parley.Voice{Media: voice})
	send(t, s, text, note)
	in.awaitStatus(t, parley.Delivered, text.ID, note.ID)
	phone.Read(t)
	in.awaitStatus(t, parley.Read, text.ID, note.ID)
	in.awaitStatus(t, parley.Played, note.ID)
	for _, r := range of[network.Receipt](in.all()) {
		if r.From != phone.Contact() || r.At.IsZero() {
			t.Errorf("the receipt %+v is not from %s, or has no time", r, phone.Contact())
		}
		if r.Status == parley.Played && slices.Contains(r.IDs, text.ID) {
			t.Error("a text was played")
		}
	}
}

func testOffline(t *testing.T, h Harness) {
	s, in := start(t, h)
	away, here := h.Phone(t, 0), h.Phone(t, 1)
	away.SetOnline(t, false)
	first, second := outgoing(away.Contact(), parley.Text{Body: "1"}), outgoing(away.Contact(), parley.Text{Body: "2"})
	other := outgoing(here.Contact(), parley.Text{Body: "3"})
	send(t, s, first, second, other)
	in.awaitStatus(t, parley.Delivered, other.ID)
	for _, r := range of[network.Receipt](in.all()) {
		if r.From == away.Contact() {
			t.Errorf("a phone that is offline gave %+v", r)
		}
	}
	away.SetOnline(t, true)
	in.awaitStatus(t, parley.Delivered, first.ID, second.ID)
	expectBodies(t, away, "1", "2")
}

func testReceiptRetry(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	var refused atomic.Int32
	in.refuseWith(func(_ context.Context, e network.Event) error {
		if _, ok := e.(network.Receipt); ok && refused.Add(1) <= 3 {
			return fmt.Errorf("%w: %w", errNotNow, parley.ErrNotFound)
		}
		return nil
	})
	m := outgoing(phone.Contact(), parley.Text{Body: "hi"})
	send(t, s, m)
	in.awaitStatus(t, parley.Delivered, m.ID)
	if refused.Load() <= 3 {
		t.Error("the receipt was not given again")
	}
}

func testInbound(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	question := outgoing(phone.Contact(), parley.Text{Body: "where?"})
	send(t, s, question)
	picture := tinyPNG(t)
	described := parley.Media{MIME: "image/png", Filename: "a.png", Size: int64(len(picture)), SHA256: sha(picture)}
	paper := []byte("%PDF-1.7 and so on")
	want := []parley.Content{
		parley.Text{Body: "di sini 👋"},
		parley.Location{Title: "Monas", Latitude: "-6.1754", Longitude: "106.8272"},
		parley.Image{Caption: "a picture", Media: described},
		parley.File{Media: parley.Media{MIME: "application/pdf", Filename: "a.pdf", Size: int64(len(paper)), SHA256: sha(paper)}},
	}
	files := [][]byte{nil, nil, picture, paper}
	var ids []parley.MessageID
	for i, content := range want {
		ids = append(ids, phone.Send(t, content, files[i], question.ID))
	}
	got := awaitCount[network.Message](t, in, len(want))
	for i, m := range got {
		if m.From != phone.Contact() || m.ID != ids[i] || m.ReplyTo != question.ID || m.At.IsZero() {
			t.Errorf("message %d is %+v, want %s", i, m, ids[i])
		}
		if got := fetch(t, s, m.File); !bytes.Equal(got, files[i]) {
			t.Errorf("the file of message %d is %q, want %q", i, got, files[i])
		}
		if err := sameContent(m.Content, want[i]); err != nil {
			t.Error(err)
		}
	}
}

// testFetchLater fetches a file with another session than the one that its message came on.
func testFetchLater(t *testing.T, h Harness) {
	s, in := start(t, h)
	paper := []byte("%PDF-1.7 and so on")
	h.Phone(t, 0).Send(t, parley.File{Media: parley.Media{MIME: "application/pdf", Filename: "a.pdf"}}, paper, "")
	reference := awaitCount[network.Message](t, in, 1)[0].File
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := s.Fetch(t.Context(), reference, file); network.ClassOf(err) != network.Disconnected {
		t.Errorf("a closed session fetches: %v", err)
	}
	s, _ = start(t, h)
	if got := fetch(t, s, reference); !bytes.Equal(got, paper) {
		t.Errorf("the file is %q, want %q", got, paper)
	}
	if err := s.Fetch(t.Context(), []byte("nonsense"), file); network.ClassOf(err) != network.Permanent {
		t.Errorf("nonsense is fetched: %v", err)
	}
}

// fetch returns the file of a message; nil: no file.
func fetch(t *testing.T, s network.Session, reference []byte) []byte {
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

func testInboundRetry(t *testing.T, h Harness) {
	_, in := start(t, h)
	first, other := h.Phone(t, 0), h.Phone(t, 1)
	var tries atomic.Int32
	in.refuseWith(func(_ context.Context, e network.Event) error {
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
	for _, m := range awaitCount[network.Message](t, in, len(want)+1) {
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

func testInboundLater(t *testing.T, h Harness) {
	s, _ := start(t, h)
	phone := h.Phone(t, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	phone.Send(t, parley.Text{Body: "1"}, nil, "")
	phone.Send(t, parley.Text{Body: "2"}, nil, "")
	_, in := start(t, h)
	got := awaitCount[network.Message](t, in, 2)
	if got[0].Content.Text() != "1" || got[1].Content.Text() != "2" {
		t.Errorf("there came %+v", got)
	}
}

func testReactions(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	ours := outgoing(phone.Contact(), parley.Text{Body: "hi"})
	send(t, s, ours)
	theirs := phone.Send(t, parley.Text{Body: "hello"}, nil, "")

	phone.React(t, ours.Ref(), "👍")
	phone.React(t, ours.Ref(), "")
	got := awaitCount[network.Reaction](t, in, 2)
	for i, emoji := range []string{"👍", ""} {
		if got[i].From != phone.Contact() || got[i].Target != ours.Ref() || got[i].Emoji != emoji {
			t.Errorf("reaction %d is %+v, want %q", i, got[i], emoji)
		}
	}

	for _, emoji := range []string{"❤️", ""} {
		target := parley.MessageRef{Chat: phone.Contact(), ID: theirs}
		send(t, s, outgoing(phone.Contact(), parley.Reaction{Emoji: emoji, Target: target}))
		if got := phone.ReactionTo(t, theirs); got != emoji {
			t.Errorf("the phone shows the reaction %q, want %q", got, emoji)
		}
	}
	send(t, s, outgoing(phone.Contact(), parley.Reaction{Emoji: "🎉", Target: ours.Ref()}))
	if shown := phone.Shows(t); len(shown) != 1 || shown[0].Reaction != "🎉" {
		t.Errorf("the phone shows %+v, want a reaction to our own message", shown)
	}
}

func testDeletions(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	ours, stays := outgoing(phone.Contact(), parley.Text{Body: "oops"}), outgoing(phone.Contact(), parley.Text{Body: "stays"})
	send(t, s, ours, stays)
	for range 2 { // twice is no error
		send(t, s, outgoing(phone.Contact(), parley.Delete{Target: ours.Ref()}))
	}
	shown := phone.Shows(t)
	if len(shown) != 2 || !shown[0].Deleted || shown[0].Content.Text() != "" || shown[1].Deleted {
		t.Errorf("the phone shows %+v, want the first one deleted", shown)
	}
	theirs := phone.Send(t, parley.Text{Body: "oops too"}, nil, "")
	phone.Delete(t, theirs)
	got := awaitCount[network.Deletion](t, in, 1)[0]
	if got.From != phone.Contact() || got.Target != theirs || got.At.IsZero() {
		t.Errorf("there came %+v, want %s deleted", got, theirs)
	}
}

func testVotes(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	poll := outgoing(phone.Contact(), parley.Poll{Title: "Kopi?", Options: []string{"ya", "tidak", "nanti"}, Multiple: true})
	send(t, s, poll)
	phone.Vote(t, poll.ID, "ya", "nanti")
	phone.Vote(t, poll.ID)
	got := awaitCount[network.Vote](t, in, 2)
	for i, want := range [][]string{{"ya", "nanti"}, nil} {
		if got[i].From != phone.Contact() || got[i].Poll != poll.ID || !slices.Equal(got[i].Options, want) {
			t.Errorf("vote %d is %+v, want %q", i, got[i], want)
		}
	}
}

func testSeen(t *testing.T, h Harness) {
	s, in := start(t, h)
	phone := h.Phone(t, 0)
	id := phone.Send(t, parley.Text{Body: "there?"}, nil, "")
	awaitCount[network.Message](t, in, 1)
	if phone.WasSeen(t, id) {
		t.Error("it was seen before anybody said so")
	}
	for range 2 { // twice is no error
		send(t, s, outgoing(phone.Contact(), parley.Seen{Target: parley.MessageRef{Chat: phone.Contact(), ID: id}}))
	}
	if !phone.WasSeen(t, id) {
		t.Error("the phone got no read receipt")
	}
}

func testOwnOperations(t *testing.T, h Harness) {
	s, _ := start(t, h)
	phone := h.Phone(t, 0)
	m := outgoing(phone.Contact(), parley.Text{Body: "hi"})
	send(t, s, m)
	send(t, s, outgoing(phone.Contact(), parley.Star{Target: m.Ref(), Starred: true}),
		outgoing(phone.Contact(), parley.Star{Target: m.Ref()}))
	send(t, s, outgoing(phone.Contact(), parley.Archive{Archived: true}), outgoing(phone.Contact(), parley.Archive{}))
	expectBodies(t, phone, "hi")
}

func testTyping(t *testing.T, h Harness) {
	s, _ := start(t, h)
	phone := h.Phone(t, 0)
	for _, on := range []bool{true, false} {
		if err := s.Typing(t.Context(), phone.Contact(), on); err != nil {
			t.Fatal(err)
		}
		if got := phone.SeesTyping(t); got != on {
			t.Errorf("the phone sees typing: %t, want %t", got, on)
		}
	}
}
