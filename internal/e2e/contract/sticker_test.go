package contract_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/image/webp"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestContractStickers holds POST /send-message/sticker to what is promised of it.
func TestContractStickers(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t, func(c *app.Config) { c.MediaPerMinute = -1 })
	shop := e.CreateChannel("shop")
	g := newGallery(t)
	phone, number := newPhone(e)
	fields := slices.DeleteFunc(slices.Clone(fileFields), func(m member) bool { return m.name == "caption" })
	sticker := endpoint{method: "POST", path: "sticker", body: object{"contact_id": phone.Contact(), "file": object{"url": g.url +
		"/still.webp"}}, fields: fields}
	part(t, e, "WebP is sent as it is", func(e *parleytest.Env) {
		a := expectSent(sticker.call(e, sticker.body))
		expectSendData(a, phone.Contact())
		if a.Text("data.message") != g.url+"/still.webp" {
			e.T.Errorf("the answer is %s", a.Body)
		}
		expectArrivedFile(e, number, "sticker", "", "still.webp", "image/webp", g.files["still.webp"])
		expectKept(e, g.files["still.webp"])
		row := findHistory(e, phone.Contact(), a.Text("data.id"))
		if row["is_media"] != true || row["body"] != "" || row["type"] != "sticker" {
			e.T.Errorf("history has %v", row)
		}
	})
	for _, name := range []string{"dot.png", "dot.jpg", "dot.gif", "liar.gif"} {
		part(t, e, "converted: "+name, func(e *parleytest.Env) {
			a := expectSent(sticker.call(e, sticker.body.with("file.url", g.url+"/"+name)))
			expectConverted(e, phone.Contact(), number, a.Text("data.message_id"))
		})
	}
	part(t, e, "an upload and bytes in the address", func(e *parleytest.Env) {
		data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(g.files["dot.png"])
		expectSent(sticker.call(e, sticker.body.with("file.url", data)))
		up := e.Post("/api/media", string(g.files["still.webp"]), parleytest.With("Content-Type", "image/webp")).Expect(http.StatusOK)
		expectSent(sticker.call(e, sticker.body.with("file", object{"url": up.Text("data.id"), "filename": "up.webp"})))
		expectArrivedFile(e, number, "sticker", "", "up.webp", "image/webp", g.files["still.webp"])
	})
	part(t, e, "one that came in is sent again", func(e *parleytest.Env) {
		e.Post("/api/sandbox/phones/"+number+"/send", `{"type":"sticker","file":{"url":"`+g.url+`/still.webp"}}`).Expect(http.StatusOK)
		var id string
		e.Eventually("the channel has it", func() bool {
			a := e.Get("/api/chat/detail?limit=1&contact_id=" + phone.Contact()).Expect(http.StatusOK)
			id = a.Text("data.0.media.id")
			return a.Text("data.0.from_me") == "false" && a.Text("data.0.type") == "sticker" && a.Text("data.0.media.status") == "ready" &&
				a.Text("data.0.media.mimetype") == "image/webp"
		})
		expectSent(sticker.call(e, sticker.body.with("file.url", id)))
	})
	sticker.expectTypes(t, e)
	sticker.expectContacts(t, e)
	sticker.expectReplies(t, e, shop, phone)
	sticker.expectAddresses(t, e, "file.url", g.url+"/still.webp", ".webp")
	sticker.expectUnfetchable(t, e, g, "file.url", ".webp")
	sticker.expectRefused(t, e, g, "file.url", "page.html", "notes.txt", "drawing.svg", "old.bmp", "empty.png", "cut.png", "film.mp4",
		"tone.mp3", "paper.pdf")
	sticker.expectSizes(t, e, g, "file.url", "dot.png", 16*mebibyte)
	sticker.expectTooLarge(t, e, "too large as it turns out", "file.url", g.sized("dot.png", 16*mebibyte+1), 16*mebibyte)
	part(t, e, "not in a pool", func(e *parleytest.Env) {
		pool := object{"contact_id": phone.Contact(), "pools": []any{object{"type": parley.KindSticker, "data": sticker.body}}}
		expectInvalid(e.Post("/api/send-message/pool", toJSON(e.T, pool), parleytest.As(e.Global)), "pools.0.type")
	})
}

// expectConverted demands that the newest message of a phone is a square sticker, and that the channel has the same file.
func expectConverted(e *parleytest.Env, contact, number, messageID string) {
	e.T.Helper()
	row, media := arrivedFile(e, number)
	file := e.Get("/api/sandbox/phones/" + number + "/media/" + messageID).Expect(http.StatusOK)
	img, err := webp.Decode(bytes.NewReader(file.Body))
	if err != nil || img.Bounds().Size() != image.Pt(512, 512) {
		e.T.Fatalf("the phone got %v, %v", media, err)
	}
	if _, _, _, alpha := img.At(256, 1).RGBA(); alpha != 0 {
		e.T.Error("the border is not transparent")
	}
	if row["type"] != "sticker" || media["mimetype"] != "image/webp" || fmt.Sprint(media["width"], media["height"]) != "512 512" ||
		media["size"] != float64(len(file.Body)) {
		e.T.Errorf("the phone got %v", row)
	}
	shown := e.Get("/api/chat/detail?limit=1&contact_id=" + contact).Expect(http.StatusOK)
	if shown.Text("data.0.media.sha256") != media["sha256"] {
		e.T.Errorf("the channel has %s, and the phone got %v", shown.Body, media)
	}
}
