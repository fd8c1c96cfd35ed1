package networktest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/network"
)

func testKinds(t *fixture) {
	picture := t.StoreMedia(t, tinyPNG(t), parley.Media{MIME: "image/png", Filename: "a.png", Width: 2, Height: 3})
	voice := t.StoreMedia(t, []byte("OggS and so on"), parley.Media{MIME: "audio/ogg; codecs=opus", Seconds: 3, Waveform: make([]byte, 64)})
	film := t.StoreMedia(t, []byte("ftyp and so on"), parley.Media{MIME: "video/mp4", Filename: "a.mp4", Seconds: 2})
	sticker := t.StoreMedia(t, tinyWebP, parley.Media{MIME: "image/webp", Filename: "a.webp", Width: 1, Height: 1})
	moving := t.StoreMedia(t, tinyWebP, parley.Media{MIME: "image/webp", Filename: "b.webp", Width: 1, Height: 1, Animated: true})
	paper := t.StoreMedia(t, []byte("%PDF-1.7 and so on"), parley.Media{MIME: "application/pdf", Filename: "a report.pdf"})
	var sent []*parley.Message
	for _, content := range []parley.Content{
		parley.Text{Body: "Halo dari parley 👋\nنص\u202e & <b>*tebal*</b>"},
		parley.Text{Body: "see https://example.com", Preview: &parley.Preview{URL: "https://example.com", Title: "Example"}},
		parley.Image{Caption: "a picture", Media: picture},
		parley.Image{Media: picture},
		parley.Video{Caption: "a film", Media: film},
		parley.File{Caption: "a paper", Media: paper},
		parley.Voice{Media: voice},
		parley.Sticker{Media: sticker},
		parley.Sticker{Media: moving},
		parley.Location{Title: "Monas", Latitude: "-6.1754", Longitude: "106.8272"},
		parley.Contacts{Title: "Budi; Sari, & co", Cards: []parley.ContactCard{
			parley.NewContactCard("Budi; Sari, & co", []string{"6281234567891", "6281234567892"})}},
		parley.Contacts{Title: "2 contacts", Cards: []parley.ContactCard{
			parley.NewContactCard("Ani", []string{"6281234567891"}), parley.NewContactCard("Cici", []string{"6281234567892"})}},
		parley.Poll{Title: "Kopi?", Options: []string{"ya", "tidak"}, Multiple: true},
	} {
		if t.Driver.Info().CanSend(content.Kind()) {
			m := t.outgoing(t.phone.Contact(), content)
			t.send(m)
			sent = append(sent, m)
		}
	}
	shown := t.phone.Shows(t)
	if len(shown) != len(sent) {
		t.Fatalf("the phone shows %d messages, want %d", len(shown), len(sent))
	}
	for i, m := range sent {
		if shown[i].ID != m.ID || shown[i].Deleted {
			t.Errorf("message %d is %+v, want %s", i, shown[i], m.ID)
		}
		if err := sameContent(shown[i].Content, m.Content); err != nil {
			t.Errorf("the %s: %v", m.Content.Kind(), err)
		}
	}
}

// sameContent compares what a network must carry of a content.
func sameContent(got, want parley.Content) error {
	if got == nil || got.Kind() != want.Kind() || got.Text() != want.Text() {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	switch want := want.(type) {
	case parley.Location:
		if got.(parley.Location) != want {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
	case parley.Poll:
		if got := got.(parley.Poll); !slices.Equal(got.Options, want.Options) || got.Multiple != want.Multiple {
			return fmt.Errorf("got %+v, want %+v", got, want)
		}
	}
	if want, ok := want.(parley.Contacts); ok && !slices.Equal(got.(parley.Contacts).Cards, want.Cards) {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	media := parley.MediaIn(want)
	if media == nil {
		return nil
	}
	carried := parley.MediaIn(got)
	if !bytes.Equal(carried.SHA256, media.SHA256) || carried.MIME != media.MIME || carried.Size != media.Size ||
		carried.Seconds != media.Seconds || carried.Animated != media.Animated {
		return fmt.Errorf("its file is %+v, want %+v", carried, media)
	}
	if want.Kind() == parley.KindFile && carried.Filename != media.Filename {
		return fmt.Errorf("its file is named %q, want %q", carried.Filename, media.Filename)
	}
	return nil
}

func testNewIDs(t *fixture) {
	form := regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)
	seen := map[parley.MessageID]bool{}
	for range 1000 {
		id := t.Driver.NewID()
		if !form.MatchString(string(id)) || seen[id] {
			t.Fatalf("%q is no id, or came twice", id)
		}
		seen[id] = true
	}
}

func testReply(t *fixture) {
	question := t.phone.Send(t, parley.Text{Body: "open?"}, nil, "")
	answer := t.outgoing(t.phone.Contact(), parley.Text{Body: "yes"})
	answer.ReplyTo = question
	t.send(answer)
	if shown := t.phone.Shows(t); len(shown) != 1 || shown[0].ReplyTo != question {
		t.Errorf("the phone shows %+v, want a reply to %s", shown, question)
	}
}

func testSameID(t *fixture) {
	m := t.outgoing(t.phone.Contact(), parley.Text{Body: "once"})
	t.send(m)
	t.send(m)
	after := t.outgoing(t.phone.Contact(), parley.Text{Body: "after"})
	t.send(after, m)
	t.expectBodies(t.phone, "once", "after")
}

func testOrder(t *fixture) {
	var want []string
	for i := range 30 {
		body := fmt.Sprint("message ", i)
		t.send(t.outgoing(t.phone.Contact(), parley.Text{Body: body}))
		want = append(want, body)
	}
	t.expectBodies(t.phone, want...)
}

func testBurst(t *fixture) {
	phones := []Phone{t.Phone(t, 0), t.Phone(t, 1)}
	burst, calls := t.s.Limits()
	if burst < 1 || calls < 1 {
		t.Fatalf("limits are %d and %d", burst, calls)
	}
	var ms []*parley.Message
	want := map[Phone][]string{}
	for i := range 2 * 10 {
		phone, body := phones[i%2], fmt.Sprint("message ", i)
		ms = append(ms, t.outgoing(phone.Contact(), parley.Text{Body: body}))
		want[phone] = append(want[phone], body)
	}
	for some := range slices.Chunk(ms, burst) {
		t.send(some...)
	}
	for _, phone := range phones {
		t.expectBodies(phone, want[phone]...)
	}
	if errs := t.s.Send(t.Context(), nil); len(errs) != 0 {
		t.Errorf("an empty burst answers %v", errs)
	}
}

func testHeldBack(t *fixture) {
	errs := t.trySend(
		t.outgoing(t.Absent, parley.Text{Body: "1"}), t.outgoing(t.phone.Contact(), parley.Text{Body: "2"}),
		t.outgoing(t.Absent, parley.Text{Body: "3"}))
	if network.ToClass(errs[0]) != network.Permanent {
		t.Errorf("to an absent number: %v", errs[0])
	}
	if errs[1] != nil {
		t.Errorf("to another chat: %v", errs[1])
	}
	if !errors.Is(errs[2], network.ErrHeldBack) {
		t.Errorf("behind the failure: %v, want it held back", errs[2])
	}
	t.expectBodies(t.phone, "2")
}

func testRefusals(t *fixture) {
	t.phone.Block(t)
	for to, want := range map[parley.ContactID]parley.FailureCode{t.Absent: parley.NotOnNetwork, t.phone.Contact(): parley.Blocked} {
		err := t.trySend(t.outgoing(to, parley.Text{Body: "hi"}))[0]
		if want == parley.Blocked && t.SilentBlocks {
			if err != nil {
				t.Errorf("to somebody who blocks us: %v, though the network does not tell", err)
			}
			continue
		}
		refusal, ok := errors.AsType[*network.Error](err)
		if !ok || refusal.Class != network.Permanent || refusal.Failure.Code != want || refusal.Failure.Message == "" {
			t.Errorf("got %+v, want a permanent %s with a sentence", err, want)
		}
	}
	if shown := t.phone.Shows(t); len(shown) != 0 {
		t.Errorf("the phone that blocks shows %+v", shown)
	}
}

// testImpossibleNumbers sends to numbers that cannot exist. The reason says what to do.
func testImpossibleNumbers(t *fixture) {
	for _, number := range []string{"0812345", "081234567890", "12345", "628123", "6281234567890123"} {
		err := t.trySend(t.outgoing(parley.NewContactID(number), parley.Text{Body: "hi"}))[0]
		refusal, ok := errors.AsType[*network.Error](err)
		if !ok || refusal.Class != network.Permanent || refusal.Failure.Code != parley.NotOnNetwork ||
			!strings.Contains(refusal.Failure.Message, "country code") {
			t.Errorf("to %s: %+v, want a permanent refusal that names the country code", number, err)
		}
		if t.directory == nil {
			continue
		}
		if _, exists, err := t.directory.CheckNumber(t.Context(), number); err != nil || exists {
			t.Errorf("%s exists: %t (%v)", number, exists, err)
		}
		if c, err := t.directory.Contact(t.Context(), parley.NewContactID(number)); err != nil || c.OnNetwork {
			t.Errorf("contact %s is %+v (%v)", number, c, err)
		}
	}
}

func testDisconnected(t *fixture) {
	if t.pairer != nil {
		t.must(t.pairer.Logout(t.Context()))
		err := t.trySend(t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"}))[0]
		if network.ToClass(err) != network.Disconnected {
			t.Errorf("logged out: %v, want the class for no connection", err)
		}
	}
	t.must(t.s.Close())
	err := t.trySend(t.outgoing(t.phone.Contact(), parley.Text{Body: "hi"}))[0]
	if network.ToClass(err) != network.Disconnected {
		t.Errorf("closed: %v, want the class for no connection", err)
	}
	if shown := t.phone.Shows(t); len(shown) != 0 {
		t.Errorf("the phone shows %+v", shown)
	}
}

func (t *fixture) expectBodies(phone Phone, want ...string) {
	t.Helper()
	var got []string
	for _, m := range phone.Shows(t) {
		got = append(got, m.Content.Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the phone shows %q, want %q", got, want)
	}
}

func tinyPNG(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tinyWebP is a picture of one pixel.
var tinyWebP = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

func sha(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}
