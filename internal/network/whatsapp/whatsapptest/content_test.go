package whatsapptest_test

import (
	"bytes"
	"errors"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestMediaBothWays sends files through the media server with their real encryption.
func TestMediaBothWays(t *testing.T) {
	w := newWorld(t)
	data := bytes.Repeat([]byte("picture "), 5000)
	up := must[whatsmeow.UploadResponse](t)(w.client.Upload(within(t), data, whatsmeow.MediaImage))
	sent := must[whatsmeow.SendResponse](t)(w.client.SendMessage(within(t), w.friend.JID(),
		&waE2E.Message{ImageMessage: &waE2E.ImageMessage{
			Caption: proto.String("look"), Mimetype: proto.String("image/png"),
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey,
			FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength,
		}}))
	m := w.friend.Expect(t, whatsapptest.ID(sent.ID))
	if m.Kind != whatsapptest.KindImage || m.Text != "look" {
		t.Errorf("the phone shows %s %q", m.Kind, m.Text)
	}
	if got := must[[]byte](t)(w.friend.Download(m.Raw.GetImageMessage())); !bytes.Equal(got, data) {
		t.Error("the phone downloaded something else")
	}

	id := must[string](t)(w.friend.SendImage(within(t), w.owner, data, "image/png", "back"))
	e := expect(w.client, func(e *events.Message) bool { return e.Info.ID == id })
	if e.Info.Type != "media" {
		t.Errorf("the image came as %s", e.Info.Type)
	}
	if got := must[[]byte](t)(w.client.Download(within(t), e.Message.GetImageMessage())); !bytes.Equal(got, data) {
		t.Error("the client downloaded another image")
	}
}

// TestMediaErrors lets uploads and downloads fail.
func TestMediaErrors(t *testing.T) {
	w := newWorld(t)
	w.Inject(whatsapptest.FailUpload(500))
	if _, err := w.client.Upload(within(t), []byte("x"), whatsmeow.MediaImage); err == nil {
		t.Error("an upload that the server refused succeeded")
	}
	id := must[string](t)(w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", ""))
	e := expect(w.client, func(e *events.Message) bool { return e.Info.ID == id })
	for _, status := range []int{403, 404, 410} {
		w.Inject(whatsapptest.FailDownload(status))
		if _, err := w.client.Download(within(t), e.Message.GetImageMessage()); err == nil {
			t.Errorf("a download that the server answered with %d succeeded", status)
		}
	}
	w.PurgeMedia()
	if _, err := w.client.Download(within(t), e.Message.GetImageMessage()); err == nil {
		t.Error("a file that the server forgot could be downloaded")
	}
}

// TestMediaRetry asks the phone for a file that the media server forgot.
func TestMediaRetry(t *testing.T) {
	w := newWorld(t)
	c, data := w.client, []byte("a picture")
	id := must[string](t)(w.friend.SendImage(within(t), w.owner, data, "image/png", ""))
	e := expect(c, func(e *events.Message) bool { return e.Info.ID == id })
	w.owner.Expect(t, whatsapptest.ID(id))
	w.PurgeMedia()
	image := e.Message.GetImageMessage()
	if _, err := c.Download(within(t), image); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404) {
		t.Errorf("a file that the server forgot: %v", err)
	}
	if err := c.SendMediaRetryReceipt(within(t), &e.Info, image.GetMediaKey()); err != nil {
		t.Fatal(err)
	}
	again := expect(c, func(e *events.MediaRetry) bool { return e.MessageID == id })
	answer := must[*waMmsRetry.MediaRetryNotification](t)(whatsmeow.DecryptMediaRetryNotification(again, image.GetMediaKey()))
	image.DirectPath = answer.DirectPath
	if got := must[[]byte](t)(c.Download(within(t), image)); !bytes.Equal(got, data) {
		t.Error("the client downloaded something else")
	}
}

// TestOwnersPhoneWrites shows the client what its owner writes on the phone.
func TestOwnersPhoneWrites(t *testing.T) {
	w := newWorld(t)
	id := must[string](t)(w.owner.Send(within(t), w.friend, "typed on the phone"))
	w.friend.Expect(t, whatsapptest.ID(id))
	if e := w.client.message("typed on the phone"); !e.Info.IsFromMe || e.Info.Chat != w.friend.LID() ||
		e.Info.RecipientAlt != w.friend.JID() {
		t.Errorf("the client got %+v", e.Info)
	}
	if err := w.link.Idle(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestKindsOfMessages sends every kind that is no file, both ways.
func TestKindsOfMessages(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client, within(t)
	hello := c.text(w.friend.JID(), "hello")
	w.friend.Expect(t, whatsapptest.ID(hello.ID))

	send := func(m *waE2E.Message) whatsapptest.Message {
		t.Helper()
		r := must[whatsmeow.SendResponse](t)(c.SendMessage(ctx, w.friend.JID(), m))
		return w.friend.Expect(t, whatsapptest.ID(r.ID))
	}
	if m := send(&waE2E.Message{LocationMessage: &waE2E.LocationMessage{DegreesLatitude: proto.Float64(1),
		DegreesLongitude: proto.Float64(2), Name: proto.String("here")}}); m.Kind != whatsapptest.KindLocation || m.Text != "here" {
		t.Errorf("a place is shown as %s %q", m.Kind, m.Text)
	}
	if m := send(c.BuildReaction(w.friend.LID(), types.EmptyJID, hello.ID, "👍")); m.Kind != whatsapptest.KindReaction || m.Text != "👍" ||
		m.Target != hello.ID {
		t.Errorf("a reaction is shown as %+v", m)
	}
	if m := send(c.BuildEdit(w.friend.LID(), hello.ID,
		&waE2E.Message{Conversation: proto.String("hello!")})); m.Kind != whatsapptest.KindEdit || m.Text != "hello!" ||
		m.Target != hello.ID {
		t.Errorf("an edit is shown as %+v", m)
	}
	if m := send(c.BuildRevoke(w.friend.LID(), types.EmptyJID, hello.ID)); m.Kind != whatsapptest.KindDelete || m.Target != hello.ID {
		t.Errorf("a deletion is shown as %+v", m)
	}

	theirs := must[string](t)(w.friend.Send(ctx, w.owner, "mine"))
	c.message("mine")
	next := func(id string) *events.Message {
		t.Helper()
		return expect(c, func(e *events.Message) bool { return e.Info.ID == id })
	}
	if e := next(must[string](t)(w.friend.React(ctx, hello.ID, "❤️"))); e.Message.GetReactionMessage().GetKey().GetID() != hello.ID ||
		e.Message.GetReactionMessage().GetText() != "❤️" {
		t.Errorf("the client got the reaction %v", e.Message)
	}
	if e := next(must[string](t)(w.friend.Edit(ctx, theirs,
		"mine!"))); e.Message.GetProtocolMessage().GetEditedMessage().GetConversation() != "mine!" || !e.IsEdit {
		t.Errorf("the client got the edit %v", e.Message)
	}
	if e := next(must[string](t)(w.friend.Delete(ctx,
		theirs))); e.Message.GetProtocolMessage().GetType() != waE2E.ProtocolMessage_REVOKE ||
		e.Message.GetProtocolMessage().GetKey().GetID() != theirs {
		t.Errorf("the client got the deletion %v", e.Message)
	}
}

// TestVotes votes in a poll of the client, by each form of address.
func TestVotes(t *testing.T) {
	for _, shown := range []whatsapptest.Addressing{whatsapptest.Both, whatsapptest.ByNumber} {
		w := newWorld(t, whatsapptest.Shown(shown))
		c := w.client
		r := must[whatsmeow.SendResponse](t)(c.SendMessage(within(t), w.friend.JID(),
			c.BuildPollCreation("lunch?", []string{"yes", "no"}, 1)))
		w.friend.Expect(t, whatsapptest.ID(r.ID))
		id := must[string](t)(w.friend.Vote(within(t), r.ID, "yes"))
		e := expect(c, func(e *events.Message) bool { return e.Info.ID == id })
		vote := must[*waE2E.PollVoteMessage](t)(c.DecryptPollVote(within(t), e))
		if want := whatsmeow.HashPollOptions([]string{"yes"})[0]; len(vote.SelectedOptions) != 1 ||
			!bytes.Equal(vote.SelectedOptions[0], want) {
			t.Errorf("shown as %d: the client read another vote", shown)
		}
	}
}
