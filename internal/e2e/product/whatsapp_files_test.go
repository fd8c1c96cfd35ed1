package product_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"golang.org/x/image/webp"

	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// wideDot is a picture of two pixels.
func wideDot(t *testing.T) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.SetNRGBA(0, 0, color.NRGBA{200, 10, 10, 255})
	img.SetNRGBA(1, 0, color.NRGBA{200, 10, 10, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withUpload sends an upload to Ayu, and returns what her phone shows.
func withUpload(e *parleytest.OnLoopback, token string, ayu *whatsapptest.Phone, endpoint, upload string) *waE2E.Message {
	e.T.Helper()
	a := e.Post("/api/send-message/"+endpoint, `{"contact_id":"`+ayuNumber+`@c.us","file":{"url":"`+upload+`"}}`, parleytest.As(token)).
		Expect(http.StatusOK)
	if a.Text("data.status") != "SENT" {
		e.T.Fatalf("%s answered %s", endpoint, a.Body)
	}
	return ayu.Expect(e.T, whatsapptest.ID(a.Text("data.id"))).Raw
}

// TestWhatsAppUploads sends files that were uploaded first. The phone decrypts the same bytes.
func TestWhatsAppUploads(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	picture, notes := wideDot(t), []byte(strings.Repeat("Milk, bread. ", 100_000))
	for _, c := range []struct {
		endpoint, mimetype string
		file               []byte
		carried            func(*waE2E.Message) whatsmeow.DownloadableMessage
	}{
		{"image", "image/png", picture, func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.GetImageMessage() }},
		{"file", "text/plain", notes, func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.GetDocumentMessage() }},
	} {
		up := e.Post("/api/media", string(c.file), parleytest.As(token), parleytest.With("Content-Type", c.mimetype)).Expect(http.StatusOK)
		for range 2 { // an upload may be used again
			got, err := ayu.Download(c.carried(withUpload(e, token, ayu, c.endpoint, up.Text("data.id"))))
			if err != nil || !bytes.Equal(got, c.file) {
				t.Errorf("%s: the phone got %d bytes, want %d (%v)", c.endpoint, len(got), len(c.file), err)
			}
		}
	}
}

// TestWhatsAppStickers sends a picture as a sticker, and then the file that was made of it.
func TestWhatsAppStickers(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	up := e.Post("/api/media", string(wideDot(t)), parleytest.As(token), parleytest.With("Content-Type", "image/png")).Expect(http.StatusOK)
	made := fetchSticker(e, withUpload(e, token, ayu, "sticker", up.Text("data.id")), ayu)
	up = e.Post("/api/media", string(made), parleytest.As(token), parleytest.With("Content-Type", "image/webp")).Expect(http.StatusOK)
	if again := fetchSticker(e, withUpload(e, token, ayu, "sticker", up.Text("data.id")), ayu); !bytes.Equal(again, made) {
		t.Errorf("a WebP file was changed: %d bytes, want %d", len(again), len(made))
	}

	raw := withUpload(e, token, ayu, "sticker", up.Text("data.id"))
	if _, err := ayu.SendMessage(t.Context(), owner, &waE2E.Message{StickerMessage: raw.GetStickerMessage()}); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the sticker of the phone is there", func() bool {
		a := e.Get(historyPath+ayuNumber+"@c.us&limit=1", parleytest.As(token)).Expect(http.StatusOK)
		return a.Text("data.0.from_me") == "false" && a.Text("data.0.type") == "sticker" && a.Text("data.0.media.status") == "ready" &&
			a.Text("data.0.media.mimetype") == "image/webp"
	})
}

// fetchSticker returns the file of a sticker, which must be a square.
func fetchSticker(e *parleytest.OnLoopback, m *waE2E.Message, phone *whatsapptest.Phone) []byte {
	e.T.Helper()
	s := m.GetStickerMessage()
	file, err := phone.Download(s)
	if err != nil {
		e.T.Fatal(err)
	}
	img, err := webp.Decode(bytes.NewReader(file))
	if err != nil {
		e.T.Fatal(err)
	}
	square := []int{512, 512, 512, 512}
	size := img.Bounds().Size()
	if !slices.Equal([]int{size.X, size.Y, int(s.GetWidth()), int(s.GetHeight())}, square) || s.GetMimetype() != "image/webp" ||
		s.GetFileLength() != uint64(len(file)) || s.GetIsAnimated() || len(s.GetMediaKey()) != 32 || s.GetURL() == "" {
		e.T.Errorf("the phone got %v, with a picture of %v", s, size)
	}
	return file
}
