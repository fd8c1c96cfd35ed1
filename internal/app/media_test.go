package app_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"

	"go.mau.fi/whatsmeow/proto/waE2E"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// costlyPicture is a small file with many pixels.
func costlyPicture(t *testing.T) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 6000, 6000), color.Palette{color.Black, color.White})
	for i := range 2000 {
		img.Pix[rand.IntN(len(img.Pix)-1)] = byte(i & 1)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// lostPicture refers to a file that nobody has.
func lostPicture(t *testing.T) *waE2E.Message {
	t.Helper()
	none := make([]byte, 32)
	return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
		Caption: new("lost"), Mimetype: new("image/png"), DirectPath: new("/mms/phone/none?v=1"),
		MediaKey: none, FileSHA256: none, FileEncSHA256: none, FileLength: new(uint64(1)),
	}}
}

// TestSlowFilesDelayNothing: while the media server never answers and 20 costly pictures of a stranger wait,
// another chat's text, a receipt and a login link on the same channel are handled. The files come later, also
// after a restart in the middle of it and although the media server fails for a while.
func TestSlowFilesDelayNothing(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, stranger, ayu := e.Net.Phone("6281234567890"), e.Net.Phone("6289876543210"), e.Net.Phone("6281100000001")
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	events := e.Events()

	e.Net.HoldDownloads(true)
	picture := costlyPicture(t)
	const pictures = 20
	for i := range pictures {
		if _, err := stranger.SendImage(t.Context(), owner, picture, "image/png", fmt.Sprint("picture ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Net.AwaitHeld(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	as := parleytest.As(token)
	sent := e.Post("/api/send-message/text", `{"contact_id":"6281100000001@c.us","message":"hello"}`, as).Expect(http.StatusOK)
	events.Expect(func(event parleytest.Event) bool {
		return event.Type == string(parley.MessageStatus) && event.Data["id"] == sent.Text("data.id") && event.Data["status"] == "DELIVERED"
	})
	link := e.Post("/api/otp/link/request", `{"contact_id":"6281100000001@c.us","expires":300}`, as).Expect(http.StatusOK)
	address, err := url.Parse(link.Text("data.app_uri"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ayu.Send(t.Context(), owner, address.Query().Get("text")); err != nil {
		t.Fatal(err)
	}
	events.Expect(func(event parleytest.Event) bool {
		return event.Type == string(parley.OTPApproved) && event.Data["id"] == link.Text("data.id")
	})

	var last parleytest.Event
	for i := range pictures {
		last = events.Expect(func(event parleytest.Event) bool {
			return event.Type == string(parley.MessageReceived) && event.Data["body"] == fmt.Sprint("picture ", i)
		})
		if file := last.Data["media"].(map[string]any); file["status"] != "pending" || file["mimetype"] != "image/png" {
			t.Errorf("picture %d came with %v", i, file)
		}
	}
	path := "/api/manage/messages/" + url.PathEscape(last.Data["message_id"].(string)) + "/media?channel=shop"
	a := e.Get(path, parleytest.As(e.Admin)).ExpectError(http.StatusServiceUnavailable, "still downloading")
	if a.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to ask again")
	}
	for _, event := range events.All() {
		if event.Type == string(parley.MessageMedia) {
			t.Errorf("a file came: %v", event.Data)
		}
	}

	e.Restart() // with files under way
	events = e.Events(parley.MessageMedia)
	e.Net.Inject(whatsapptest.FailDownload(507).Times(3))
	e.Net.HoldDownloads(false)
	for i := range pictures {
		event := events.Expect(func(event parleytest.Event) bool { return event.Data["body"] == fmt.Sprint("picture ", i) })
		file := event.Data["media"].(map[string]any)
		if file["status"] != "ready" || file["width"] != 6000.0 || file["size"] != float64(len(picture)) {
			t.Errorf("picture %d became %v", i, file)
		}
	}
	if a := e.Get(path, parleytest.As(e.Admin)).Expect(http.StatusOK); !bytes.Equal(a.Body, picture) {
		t.Errorf("%d bytes came of %d", len(a.Body), len(picture))
	}
	if err := e.Net.AwaitFaults(t.Context()); err != nil {
		t.Error(err)
	}

	failDownload(t, e, stranger, owner, events)
}

// failDownload sends a picture that the media server does not have.
func failDownload(t *testing.T, e *parleytest.OnLoopback, stranger, owner *whatsapptest.Phone, events *parleytest.EventStream) {
	t.Helper()
	if _, err := stranger.SendMessage(t.Context(), owner, lostPicture(t)); err != nil {
		t.Fatal(err)
	}
	event := events.Expect(func(event parleytest.Event) bool { return event.Data["body"] == "lost" })
	if file := event.Data["media"].(map[string]any); file["status"] != "failed" {
		t.Errorf("it became %v", file)
	}
	path := "/api/manage/messages/" + url.PathEscape(event.Data["message_id"].(string)) + "/media?channel=shop"
	e.Get(path, parleytest.As(e.Admin)).ExpectError(http.StatusNotFound, "was not downloaded")
}
