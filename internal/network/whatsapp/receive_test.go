package whatsapp

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/wait"
)

// arrives lets the friend send any message and returns the event that the gateway gets.
func (w *world) arrives(in *inbox, raw *waE2E.Message) network.Message {
	w.t.Helper()
	id, err := w.friend.SendMessage(within(w.t), w.owner, raw)
	must(w.t, err)
	return expect(in, 0, func(m network.Message) bool { return string(m.ID) == id })
}

// TestKindsOfMessages receives every kind of content.
func TestKindsOfMessages(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	data := []byte("some bytes of a file")
	file := func(kind whatsmeow.MediaType) whatsmeow.UploadResponse { return w.put(t, data, kind) }
	image, video, audio, paper := file(whatsmeow.MediaImage), file(whatsmeow.MediaVideo), file(whatsmeow.MediaAudio),
		file(whatsmeow.MediaDocument)
	quote := &waE2E.ContextInfo{StanzaID: new("3EB0AA")}
	for name, test := range map[string]struct {
		raw   *waE2E.Message
		want  parley.Content
		reply parley.MessageID
		media []byte
	}{
		"plain text": {&waE2E.Message{Conversation: new("hi\x00 there")}, parley.Text{Body: "hi there"}, "", nil},
		"a reply": {&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("yes"), ContextInfo: quote}},
			parley.Text{Body: "yes"}, "3EB0AA", nil},
		"disappearing": {&waE2E.Message{EphemeralMessage: &waE2E.FutureProofMessage{
			Message: &waE2E.Message{Conversation: new("gone soon")}}},
			parley.Text{Body: "gone soon"}, "", nil},
		"a video": {&waE2E.Message{VideoMessage: &waE2E.VideoMessage{Caption: new("film"), Mimetype: new("video/mp4"),
			Seconds:    new(uint32(4)),
			DirectPath: &video.DirectPath, MediaKey: video.MediaKey, FileSHA256: video.FileSHA256, FileEncSHA256: video.FileEncSHA256,
			FileLength: &video.FileLength}},
			parley.Video{Caption: "film"}, "", data},
		"to be seen once": {&waE2E.Message{ViewOnceMessageV2: &waE2E.FutureProofMessage{Message: &waE2E.Message{
			ImageMessage: &waE2E.ImageMessage{Mimetype: new("image/png"),
				DirectPath: &image.DirectPath, MediaKey: image.MediaKey, FileSHA256: image.FileSHA256, FileEncSHA256: image.FileEncSHA256,
				FileLength: &image.FileLength}}}},
			parley.Image{}, "", data},
		"a sticker": {&waE2E.Message{StickerMessage: &waE2E.StickerMessage{Mimetype: new("image/webp"),
			DirectPath: &image.DirectPath, MediaKey: image.MediaKey, FileSHA256: image.FileSHA256, FileEncSHA256: image.FileEncSHA256,
			FileLength: &image.FileLength}},
			parley.Sticker{}, "", data},
		"a voice note": {&waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: new(true), Seconds: new(uint32(3)),
			Mimetype: new("audio/ogg; codecs=opus"), Waveform: make([]byte, 64),
			DirectPath: &audio.DirectPath, MediaKey: audio.MediaKey, FileSHA256: audio.FileSHA256, FileEncSHA256: audio.FileEncSHA256,
			FileLength: &audio.FileLength}},
			parley.Voice{Media: parley.Media{Seconds: 3}}, "", data},
		"music": {&waE2E.Message{AudioMessage: &waE2E.AudioMessage{Mimetype: new("audio/mpeg"),
			DirectPath: &audio.DirectPath, MediaKey: audio.MediaKey, FileSHA256: audio.FileSHA256, FileEncSHA256: audio.FileEncSHA256,
			FileLength: &audio.FileLength}},
			parley.File{}, "", data},
		"a paper with a caption": {&waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{
			DocumentMessage: &waE2E.DocumentMessage{Caption: new("read"), FileName: new("a.pdf"), Mimetype: new("application/pdf"),
				DirectPath: &paper.DirectPath, MediaKey: paper.MediaKey, FileSHA256: paper.FileSHA256, FileEncSHA256: paper.FileEncSHA256,
				FileLength: &paper.FileLength}}}},
			parley.File{Caption: "read"}, "", data},
		"a place that moves": {&waE2E.Message{LiveLocationMessage: &waE2E.LiveLocationMessage{DegreesLatitude: new(-6.5),
			DegreesLongitude: new(106.25), Caption: new("me")}},
			parley.Location{Title: "me", Latitude: "-6.5", Longitude: "106.25"}, "", nil},
		"a contact": {&waE2E.Message{ContactMessage: &waE2E.ContactMessage{DisplayName: new("Cici"), Vcard: new("BEGIN:VCARD")}},
			parley.Contacts{Title: "Cici", Cards: []parley.ContactCard{{Name: "Cici", VCard: "BEGIN:VCARD"}}}, "", nil},
		"contacts": {&waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{DisplayName: new("2 people"),
			Contacts: []*waE2E.ContactMessage{{DisplayName: new("Ani"), Vcard: new("A")}, {DisplayName: new("Budi"), Vcard: new("B\x00")}}}},
			parley.Contacts{Title: "2 people", Cards: []parley.ContactCard{{Name: "Ani", VCard: "A"}, {Name: "Budi", VCard: "B"}}}, "", nil},
		"a place with an address": {&waE2E.Message{LocationMessage: &waE2E.LocationMessage{DegreesLatitude: new(-6.5),
			DegreesLongitude: new(106.25), Name: new("Monas"), Address: new("Jalan Medan Merdeka")}},
			parley.Location{Title: "Monas", Address: "Jalan Medan Merdeka", Latitude: "-6.5", Longitude: "106.25"}, "", nil},
		"a poll": {&waE2E.Message{PollCreationMessageV3: &waE2E.PollCreationMessage{Name: new("Tea?"),
			SelectableOptionsCount: new(uint32(1)),
			Options:                []*waE2E.PollCreationMessage_Option{{OptionName: new("yes")}, {OptionName: new("no")}}}},
			parley.Poll{Title: "Tea?"}, "", nil},
		"a chosen button": {&waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{
			SelectedButtonID: new("b1"), Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "OK"}}},
			parley.Text{Body: "OK", Choice: &parley.Choice{Type: parley.ButtonChoice, ID: "b1"}}, "", nil},
		"a chosen row": {&waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: new("Row 2"),
			SingleSelectReply: &waE2E.ListResponseMessage_SingleSelectReply{SelectedRowID: new("r2")}}},
			parley.Text{Body: "Row 2", Choice: &parley.Choice{Type: parley.ListChoice, ID: "r2"}}, "", nil},
		"a chosen button of a template": {&waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{
			SelectedID: new("t3"), SelectedDisplayText: new("Yes")}},
			parley.Text{Body: "Yes", Choice: &parley.Choice{Type: parley.ButtonChoice, ID: "t3"}}, "", nil},
		"a quick reply": {&waE2E.Message{InteractiveResponseMessage: &waE2E.InteractiveResponseMessage{
			Body: &waE2E.InteractiveResponseMessage_Body{Text: new("Later")},
			InteractiveResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage_{
				NativeFlowResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage{ParamsJSON: new(`{"id":"q4"}`)}}}},
			parley.Text{Body: "Later", Choice: &parley.Choice{Type: parley.ButtonChoice, ID: "q4"}}, "", nil},
		"an order": {&waE2E.Message{OrderMessage: &waE2E.OrderMessage{OrderID: new("o5"), Token: new("T"), Message: new("two of these")}},
			parley.Text{Body: "two of these", Choice: &parley.Choice{Type: parley.OrderChoice, ID: "o5", Token: "T"}}, "", nil},
		"an invitation": {&waE2E.Message{GroupInviteMessage: &waE2E.GroupInviteMessage{InviteCode: new("C6"), GroupName: new("Club")}},
			parley.Text{Body: "Club", Choice: &parley.Choice{Type: parley.InviteChoice, ID: "C6"}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := w.arrives(in, test.raw)
			if m.From != friendID || m.Past || m.At.IsZero() || m.ReplyTo != test.reply || (m.File != nil) != (test.media != nil) {
				t.Errorf("there came %+v", m)
			}
			if m.File != nil {
				if got := w.fetched(s, m); !bytes.Equal(got, test.media) {
					t.Errorf("its file is %q", got)
				}
			}
			checkContent(t, m.Content, test.want)
		})
	}
}

func checkContent(t *testing.T, got, want parley.Content) {
	t.Helper()
	if got.Kind() != want.Kind() || got.Text() != want.Text() {
		t.Errorf("it says %+v, want %+v", got, want)
	}
	if media := parley.MediaIn(want); media != nil && media.Seconds != 0 && parley.MediaIn(got).Seconds != media.Seconds {
		t.Errorf("it lasts %d seconds", parley.MediaIn(got).Seconds)
	}
	if text, ok := want.(parley.Text); ok && !reflect.DeepEqual(got.(parley.Text).Choice, text.Choice) {
		t.Errorf("the choice is %+v, want %+v", got.(parley.Text).Choice, text.Choice)
	}
	if place, ok := want.(parley.Location); ok && got != parley.Content(place) {
		t.Errorf("it is at %+v", got)
	}
	if cards, ok := want.(parley.Contacts); ok && !slices.Equal(got.(parley.Contacts).Cards, cards.Cards) {
		t.Errorf("the cards are %+v", got)
	}
}

// TestSenders names people by number however the network names them.
func TestSenders(t *testing.T) {
	for name, shown := range map[string]whatsapptest.Addressing{"by LID": whatsapptest.Both, "by number": whatsapptest.ByNumber} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, whatsapptest.Shown(shown))
			s, in := w.paired()
			_, err := w.friend.Send(within(t), w.owner, "hello")
			must(t, err)
			if m := in.said("hello"); m.From != friendID {
				t.Errorf("it is from %s", m.From)
			}
			m := w.sent(s, w.text(friendID, "hello yourself"))
			if r := in.got(parley.Delivered, m.ID); r.From != friendID {
				t.Errorf("the receipt is from %s", r.From)
			}
			_, err = w.friend.React(within(t), string(m.ID), "👍")
			must(t, err)
			if r := expect(in, 0, func(network.Reaction) bool { return true }); r.From != friendID || r.Target != m.Ref() {
				t.Errorf("the reaction is %+v", r)
			}
			poll := w.sent(s, w.outgoing(friendID, parley.Poll{Title: "?", Options: []string{"a", "b"}}))
			w.friend.Expect(t, whatsapptest.ID(string(poll.ID)))
			_, err = w.friend.Vote(within(t), string(poll.ID), "b")
			must(t, err)
			if v := expect(in, 0, func(network.Vote) bool { return true }); v.From != friendID || !slices.Equal(v.Options, []string{"b"}) {
				t.Errorf("the vote is %+v", v)
			}
		})
	}
}

// TestHiddenNumber gets a message of somebody whose number nobody tells at once, and answers it. When the number becomes known, the
// gateway learns so before the next message. LIDs have 14 or 15 digits.
func TestHiddenNumber(t *testing.T) {
	for name, learn := range map[string]func(*world, *session, *whatsapptest.Phone){
		"by the next message": func(w *world, _ *session, p *whatsapptest.Phone) { p.Show(whatsapptest.Both) },
		"by an answer of the network": func(w *world, s *session, p *whatsapptest.Phone) {
			must(w.t, s.current.Load().client.Store.LIDs.PutLIDMapping(w.t.Context(), p.LID(), p.JID()))
		},
	} {
		for _, number := range []string{"6281300000001", "6281300000002"} {
			t.Run(name+" "+number, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				hidden := w.Phone(number, whatsapptest.Shown(whatsapptest.OnlyLID))
				lid := hidden.LID().User
				id := parley.ContactID(strings.Repeat("0", 16-len(lid)) + lid + "@c.us")
				s, in := w.paired()
				if err := send(s, w.text(id, "stranger")); !errors.Is(err, errAbsent) {
					t.Errorf("a send before they met: %v", err)
				}
				_, err := hidden.Send(within(t), w.owner, "who am I?")
				must(t, err)
				if m := in.said("who am I?"); m.From != id {
					t.Errorf("it is from %s, not %s", m.From, id)
				}
				must(t, w.link.Idle(within(t))) // it is acknowledged
				m := w.text(id, "hello")
				w.sent(s, m)
				hidden.Expect(t, whatsapptest.Text("hello"))
				expect(in, 0, func(r network.Receipt) bool { return r.From == id && r.Status == parley.Delivered })

				learn(w, s, hidden)
				_, err = hidden.Send(within(t), w.owner, "it is me")
				must(t, err)
				if m := in.said("it is me"); m.From != parley.NewContactID(number) {
					t.Errorf("then it is from %s", m.From)
				}
				isAlias := func(e network.Event) bool {
					return e == network.Alias{Asked: id, Contact: parley.NewContactID(number)}
				}
				isLast := func(e network.Event) bool { m, ok := e.(network.Message); return ok && m.Content.Text() == "it is me" }
				if all := in.all(); !slices.ContainsFunc(all[:slices.IndexFunc(all, isLast)], isAlias) {
					t.Error("the number was used before the gateway learned whose it is")
				}
				w.sent(s, w.text(id, "by the old id"))
				hidden.Expect(t, whatsapptest.Text("by the old id"))
			})
		}
	}
}

// TestHiddenMembers has members of a group without a number, in a group that is addressed by LID and in one by number.
func TestHiddenMembers(t *testing.T) {
	for name, byNumber := range map[string]bool{"by LID": false, "by number": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hidden := w.Phone("6281300000001", whatsapptest.Shown(whatsapptest.OnlyLID))
			id := hiddenContact(hidden.LID())
			g := w.friend.CreateGroup("Club", w.owner, hidden)
			if byNumber {
				g.AddressByNumber()
			}
			group := parley.GroupID(g.JID().String())
			s, in := w.paired()
			members, err := s.Participants(t.Context(), group)
			must(t, err)
			var ids []parley.ContactID
			for _, m := range members {
				ids = append(ids, m.ID)
			}
			if want := []parley.ContactID{friendID, parley.NewContactID(ownerNumber), id}; !slices.Equal(ids, want) {
				t.Errorf("the members are %v, not %v", ids, want)
			}
			_, err = hidden.Send(within(t), g, "hello all")
			must(t, err)
			if m := in.said("hello all"); m.From != id || m.Group != group {
				t.Errorf("it is from %s in %s", m.From, m.Group)
			}
			m := w.text(group.Chat(), "hello @"+id.Number()+" and @"+friendNumber)
			m.Content = parley.Text{Body: m.Content.Text(), Mentions: []parley.ContactID{id, friendID}}
			w.sent(s, m)
			got := hidden.Expect(t, whatsapptest.ID(string(m.ID)))
			friend := w.friend.LID()
			if byNumber {
				friend = w.friend.JID()
			}
			want := []string{hidden.LID().String(), friend.String()}
			if is := got.Raw.GetExtendedTextMessage().GetContextInfo().GetMentionedJID(); !slices.Equal(is, want) {
				t.Errorf("it mentions %v, not %v", is, want)
			}
			if body := "hello @" + hidden.LID().User + " and @" + friend.User; got.Text != body {
				t.Errorf("it says %q, not %q", got.Text, body)
			}
			w.sent(s, w.text(id, "in private"))
			hidden.Expect(t, whatsapptest.Text("in private"))
		})
	}
}

// TestVoteAfterRestart opens a vote in a poll of before: its secret is kept, and its options are the gateway's.
func TestVoteAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.paired()
	poll := w.outgoing(friendID, parley.Poll{Title: "Kopi?", Options: []string{"ya", "tidak"}, Multiple: true})
	if err := w.losesAck(s, poll); network.ToClass(err) != network.Unknown {
		t.Fatal(err)
	}
	w.sent(s, poll) // again, and yet with the secret that the phone knows
	w.friend.Expect(t, whatsapptest.ID(string(poll.ID)))
	must(t, w.driver.Close())
	_, err := w.friend.Vote(within(t), string(poll.ID), "tidak")
	must(t, err)
	w.open()
	_, in := w.start()
	if v := expect(in, 0, func(network.Vote) bool { return true }); v.Poll != poll.ID || !slices.Equal(v.Options, []string{"tidak"}) {
		t.Errorf("the vote is %+v", v)
	}
}

// TestRefusedMessageComesAgain refuses a message until its connection ends, and until the program does:
// nothing is acknowledged before it is stored.
func TestRefusedMessageComesAgain(t *testing.T) {
	for name, restart := range map[string]bool{"another connection": false, "another start": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, in := w.paired()
			var refused atomic.Int32
			first := make(chan struct{})
			in.refuseWith(func(e network.Event) error {
				if m, ok := e.(network.Message); ok && m.Content.Text() == "keep me" {
					if refused.Add(1) == 1 {
						close(first)
					}
					return errors.New("the store is full")
				}
				return nil
			})
			id, err := w.friend.Send(within(t), w.owner, "keep me")
			must(t, err)
			<-first
			if e, _ := w.Trace(id); len(e.At(w.owner, w.link.Device()).Receipts) != 0 {
				t.Errorf("the trace is %+v", e.At(w.owner, w.link.Device()))
			}
			if restart {
				must(t, w.driver.Close())
				w.open()
				_, in = w.start()
			} else {
				skip := in.count()
				w.link.End(whatsapptest.Cut)
				in.statusAfter(skip, parley.ChannelReconnecting)
				in.refuseWith(nil)
			}
			in.said("keep me")
			w.friend.ExpectReceipt(t, id, types.ReceiptTypeDelivered)
		})
	}
}

// TestLostReceipt gets a message again because the network did not hear that we have it: the sink, which
// knows it, is not asked twice.
func TestLostReceipt(t *testing.T) {
	w := newWorld(t)
	_, in := w.paired()
	w.Inject(whatsapptest.LoseReceipt().To(w.friend))
	id, err := w.friend.Send(within(t), w.owner, "once")
	must(t, err)
	in.said("once")
	must(t, w.AwaitFaults(within(t)))
	w.link.End(whatsapptest.Cut)
	w.friend.ExpectReceipt(t, id, types.ReceiptTypeDelivered)
	count := 0
	for _, e := range in.all() {
		if m, ok := e.(network.Message); ok && string(m.ID) == id {
			count++
		}
	}
	if count != 1 {
		t.Errorf("it came %d times", count)
	}
}

// TestChangesOfMessages receives edits and deletions.
func TestChangesOfMessages(t *testing.T) {
	w := newWorld(t)
	_, in := w.paired()
	id, err := w.friend.Send(within(t), w.owner, "helo")
	must(t, err)
	in.said("helo")
	_, err = w.friend.Edit(within(t), id, "hello")
	must(t, err)
	if m := expect(in, 0, func(network.Edit) bool { return true }); string(m.Target) != id || m.From != friendID || m.At.IsZero() {
		t.Errorf("the edit is %+v", m)
	} else {
		checkContent(t, m.Content, parley.Text{Body: "hello"})
	}
	_, err = w.friend.SendMessage(within(t), w.owner, &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(),
			Key: &waCommon.MessageKey{ID: &id, FromMe: new(true), RemoteJID: new(w.owner.LID().String())}, EditedMessage: &waE2E.Message{
				ImageMessage: &waE2E.ImageMessage{Caption: new("a caption")}}}}}})
	must(t, err)
	m := expect(in, 0, func(e network.Edit) bool { return e.Content.Kind() == parley.KindImage })
	checkContent(t, m.Content, parley.Image{Caption: "a caption"})
	_, err = w.friend.Delete(within(t), id)
	must(t, err)
	if d := expect(in, 0, func(network.Deletion) bool { return true }); d.From != friendID || string(d.Target) != id {
		t.Errorf("the deletion is %+v", d)
	}
}

// TestPast gets messages from before the pairing, in both directions.
func TestPast(t *testing.T) {
	w := newWorld(t)
	_, in := w.paired()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	must(t, w.link.SendHistory(within(t), whatsapptest.Conversation{With: w.friend, Messages: []whatsapptest.Past{
		{ID: "OLD1", Text: "then", At: at}, {ID: "OLD2", Text: "mine", FromMe: true, At: at.Add(time.Minute)},
		{ID: "OLD3", Text: "later", At: at.Add(time.Hour)},
	}}))
	if m := in.said("later"); !m.Past || m.From != friendID || m.ID != "OLD3" || !m.At.Equal(at.Add(time.Hour)) {
		t.Errorf("there came %+v", m)
	}
	var all []parley.MessageID
	for _, e := range in.all() {
		if m, ok := e.(network.Message); ok {
			all = append(all, m.ID)
		}
	}
	if !slices.Equal(all, []parley.MessageID{"OLD1", "OLD2", "OLD3"}) {
		t.Errorf("there came %v", all)
	}
}

// TestSentOnPhone publishes what the owner writes on the phone, to a contact and in a group, with its receipts. What is no message is
// ignored.
func TestSentOnPhone(t *testing.T) {
	w := newWorld(t)
	_, in := w.paired()
	own, err := w.owner.Send(within(t), w.friend, "typed on the phone")
	must(t, err)
	w.friend.Expect(t, whatsapptest.ID(own))
	must(t, w.friend.Read(own))
	_, err = w.owner.SendMessage(within(t), w.friend, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: &waCommon.MessageKey{ID: new(own), FromMe: new(true), RemoteJID: new(w.friend.LID().String())}, Text: new("x")}})
	must(t, err)
	g := w.friend.CreateGroup("Club", w.owner)
	_, err = w.owner.Send(within(t), g, "to all")
	must(t, err)
	_, err = w.friend.Send(within(t), w.owner, "to you")
	must(t, err)
	in.said("to you")
	must(t, w.link.Idle(within(t)))
	if m := in.said("typed on the phone"); !m.Own || m.From != friendID || string(m.ID) != own {
		t.Errorf("it came as %+v", m)
	}
	if m := in.said("to all"); !m.Own || m.From != "" || m.Group != parley.GroupID(g.JID().String()) {
		t.Errorf("in the group it came as %+v", m)
	}
	expect(in, 0, func(r network.Receipt) bool {
		return r.From == friendID && r.Status == parley.Read && string(r.IDs[0]) == own
	})
	for _, e := range in.all() {
		if r, ok := e.(network.Reaction); ok {
			t.Errorf("there came %+v", r)
		}
	}
}

// TestUnknownReceiptEnds does not give a receipt for ever to a gateway that does not know what it is for.
func TestUnknownReceiptEnds(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	var tries atomic.Int32
	last := make(chan struct{})
	in.refuseWith(func(e network.Event) error {
		if _, ok := e.(network.Receipt); ok {
			if tries.Add(1) == receiptTries {
				close(last)
			}
			return parley.ErrNotFound
		}
		return nil
	})
	w.friend.Expect(t, whatsapptest.ID(string(w.sent(s, w.text(friendID, "of another program")).ID)))
	select {
	case <-last:
	case <-within(t).Done():
		t.Fatalf("the receipt was given only %d times", tries.Load())
	}
	must(t, w.link.Idle(within(t))) // it is acknowledged
	if got := tries.Load(); got != receiptTries {
		t.Errorf("the receipt was given %d times", got)
	}
}

// TestUnknownReceiptHoldsNobodyUp: while a receipt for a message that nobody knows waits to be given again, what
// its sender says comes, and the receipts of others.
func TestUnknownReceiptHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	w.driver.receiptRetryDelay = func(int) time.Duration { return time.Hour }
	s, in := w.paired()
	unknown := w.text(friendID, "of another program")
	refused := make(chan struct{}, 1)
	in.refuseWith(func(e network.Event) error {
		if r, ok := e.(network.Receipt); ok && slices.Contains(r.IDs, unknown.ID) {
			wait.Notify(refused)
			return &network.UnknownMessages{IDs: []parley.MessageID{unknown.ID}}
		}
		return nil
	})
	w.sent(s, unknown)
	<-refused
	known, others := w.sent(s, w.text(friendID, "known")), w.sent(s, w.text(otherID, "to another"))
	in.got(parley.Delivered, others.ID)
	in.got(parley.Delivered, known.ID)
	_, err := w.friend.Send(within(t), w.owner, "go on")
	must(t, err)
	in.said("go on")
}

// TestUnknownReceiptsAreBounded: contacts can invent any number of them.
func TestUnknownReceiptsAreBounded(t *testing.T) {
	conn := &connection{s: &session{d: &Driver{receiptRetryDelay: func(int) time.Duration { return time.Hour }}}}
	wait := func(from parley.ContactID, receipts int) (waiting int) {
		for range receipts {
			if conn.retryUnknown(queuedReceipt{Receipt: network.Receipt{From: from}}, []parley.MessageID{"3EB0NONE"}) {
				waiting++
			}
		}
		return waiting
	}
	if got := wait(friendID, 100); got != maxUnknownEach {
		t.Errorf("%d of one contact wait", got)
	}
	all := maxUnknownEach
	for i := range 100 {
		all += wait(parley.NewContactID(fmt.Sprint(62811000000+i)), 10)
	}
	if all != maxUnknown {
		t.Errorf("%d wait", all)
	}
	if conn := (&connection{s: conn.s}); conn.retryUnknown(queuedReceipt{tries: receiptTries - 1}, nil) {
		t.Error("it is given more often than it should be")
	}
}

// TestPreviewAndQuote looks at what a phone gets of a link and of a reply.
func TestPreviewAndQuote(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	m := w.sent(s, w.outgoing(friendID, parley.Text{Body: "see https://example.com", Preview: &parley.Preview{
		URL: "https://example.com", Title: "Example", Description: "of a page", Thumbnail: []byte("jpeg"), Width: 600, Height: 300}}))
	x := w.friend.Expect(t, whatsapptest.ID(string(m.ID))).Raw.GetExtendedTextMessage()
	if x.GetTitle() != "Example" || x.GetMatchedText() != "https://example.com" || x.GetDescription() != "of a page" ||
		string(x.GetJPEGThumbnail()) != "jpeg" || x.GetThumbnailDirectPath() == "" || x.GetThumbnailWidth() != 600 {
		t.Errorf("the preview is %v", x)
	}
	answer := w.outgoing(friendID, parley.Text{Body: "did you?"})
	answer.ReplyTo = m.ID
	w.sent(s, answer)
	quote := w.friend.Expect(t, whatsapptest.ID(string(answer.ID))).Raw.GetExtendedTextMessage().GetContextInfo()
	if quote.GetStanzaID() != string(m.ID) || quote.GetQuotedMessage().GetConversation() != m.Content.Text() ||
		quote.GetParticipant() != w.owner.LID().String() {
		t.Errorf("the quotation is %v", quote)
	}
	id, err := w.friend.Send(within(t), w.owner, "yes")
	must(t, err)
	answer = w.outgoing(friendID, parley.Text{Body: "good"})
	answer.ReplyTo = parley.MessageID(id)
	w.sent(s, answer)
	quote = w.friend.Expect(t, whatsapptest.ID(string(answer.ID))).Raw.GetExtendedTextMessage().GetContextInfo()
	if quote.GetParticipant() != w.friend.LID().String() {
		t.Errorf("the quotation is %v", quote)
	}
}

// TestPeople asks what is known of contacts.
func TestPeople(t *testing.T) {
	w := newWorld(t, whatsapptest.About("at work"), whatsapptest.Picture("https://example.com/ayu.jpg"))
	s, _ := w.paired()
	c, err := s.Contact(t.Context(), friendID)
	must(t, err)
	if c.Name != "Ayu A." || c.About != "at work" || c.PictureURL != "https://example.com/ayu.jpg" || !c.OnNetwork || c.IsBlocked {
		t.Errorf("the contact is %+v", c)
	}
	w.sent(s, w.text(otherID, "the list of the blocked is by LID, which is known of those we wrote to"))
	w.owner.Block(w.other) // the session has read the list: the network notifies it
	must(t, w.link.Idle(within(t)))
	all, total, err := s.Contacts(t.Context(), parley.Page{Limit: 10})
	must(t, err)
	if second, _, err := s.Contacts(t.Context(), parley.Page{Limit: 1, Offset: 1}); err != nil || total != 2 || len(second) != 1 ||
		second[0] != all[1] {
		t.Errorf("the second page is %v (%v), of %d", second, err, total)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		if c.IsBlocked != (c.ID == otherID) {
			t.Errorf("%s is blocked: %t", c.Name, c.IsBlocked)
		}
	}
	if strings.Join(names, ", ") != "Ayu A., Budi B." {
		t.Errorf("the contacts are %v", names)
	}
	g := w.friend.CreateGroup("Friends", w.owner, w.other)
	groups, total, err := s.Groups(t.Context(), parley.Page{Limit: 10})
	if err != nil || total != 1 || string(groups[0].ID) != g.JID().String() || groups[0].Owner != friendID || groups[0].IsOwner ||
		groups[0].ParticipantCount != 3 {
		t.Errorf("the groups are %+v (%v)", groups, err)
	}
	inside, err := s.Participants(t.Context(), groups[0].ID)
	must(t, err)
	if !slices.ContainsFunc(inside, func(p parley.Participant) bool { return p.ID == friendID && p.IsOwner && p.Name == "Ayu A." }) {
		t.Errorf("the participants are %+v", inside)
	}
	secret := w.friend.CreateGroup("Not ours", w.other)
	if _, err := s.Participants(t.Context(), parley.GroupID(secret.JID().String())); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("a group of others: %v", err)
	}
}
