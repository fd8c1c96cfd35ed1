package contract_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
)

const mebibyte = 1 << 20

// TestContractMedia holds the endpoints that send files to what is promised of them.
func TestContractMedia(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t, func(c *app.Config) { c.MediaPerMinute = -1 }) // the largest files, all within a minute
	shop := e.CreateChannel("shop")
	g := newGallery(t)
	t.Run("image", func(t *testing.T) { testImage(t, e, g, shop) })
	t.Run("file", func(t *testing.T) { testFile(t, e, g, shop) })
	t.Run("video", func(t *testing.T) { testVideo(t, e, g, shop) })
	t.Run("voice", func(t *testing.T) { testVoice(t, e, g, shop) })
}

// fileFields are the fields of every endpoint that takes a file object.
var fileFields = []member{
	{name: "contact_id", kind: "string", required: true},
	{name: "caption", kind: "string"},
	{name: "file", kind: "object", required: true, missing: "file.url"},
	{name: "file.url", kind: "string", required: true},
	{name: "file.filename", kind: "string"},
	{name: "file.mimeType", kind: "string"},
	{name: "reply_to", kind: "string"},
}

func testImage(t *testing.T, e *parleytest.Env, g *gallery, shop string) {
	phone, number := newPhone(e)
	picture := endpoint{method: "POST", path: "image", body: object{"contact_id": phone.Contact(), "file": object{"url": g.url +
		"/dot.png"}}, fields: fileFields}
	for name, want := range map[string]struct{ mimetype, width, height string }{
		"dot.png": {"image/png", "9", "5"}, "dot.jpg": {"image/jpeg", "9", "5"}, "dot.gif": {"image/gif", "9", "5"},
		"still.webp": {"image/webp", "32", "16"},
		"liar.gif":   {"image/png", "9", "5"}, // by content, whatever it is called
	} {
		part(t, e, name, func(e *parleytest.Env) {
			url, caption := g.url+"/"+name, "A dot\nשלום 👍"
			a := picture.call(e, picture.body.with("caption", caption).with("file.url", url))
			expectFileData(a, "image", phone.Contact(), url, caption, g.files[name], want.mimetype, want.width, want.height)
			expectArrivedFile(e, number, "image", caption, name, want.mimetype, g.files[name])
			_, media := arrivedFile(e, number)
			if fmt.Sprint(media["width"], "×", media["height"]) != want.width+"×"+want.height {
				e.T.Errorf("the phone got %v", media)
			}
			expectKept(e, g.files[name])
		})
	}
	part(t, e, "no caption", func(e *parleytest.Env) {
		first := picture.call(e, picture.body)
		expectFileData(first, "image", phone.Contact(), g.url+"/dot.png", "", g.files["dot.png"], "image/png", "9", "5")
		second := picture.call(e, picture.body.with("caption", nil))
		expectFileData(second, "image", phone.Contact(), g.url+"/dot.png", "", g.files["dot.png"], "image/png", "9", "5")
		if key := "data.message.details.mediaKey"; first.Text(key) == second.Text(key) {
			e.T.Error("two messages have one media key")
		}
		if row := findHistory(e, phone.Contact(), first.Text("data.id")); row["is_media"] != true || row["body"] != "" || row["type"] != "image" {
			e.T.Errorf("history has %v", row)
		}
	})
	part(t, e, "mimeType does not decide", func(e *parleytest.Env) {
		a := picture.call(e, picture.body.with("file.mimeType", "image/gif; q=1"))
		expectFileData(a, "image", phone.Contact(), g.url+"/dot.png", "", g.files["dot.png"], "image/png", "9", "5")
	})
	for _, bad := range []string{"image", "image/", "/png", "image png", "image/png;;", "x"} {
		part(t, e, "mimeType "+bad, func(e *parleytest.Env) {
			expectInvalid(picture.call(e, picture.body.with("file.mimeType", bad)), "file.mimeType")
		})
	}
	testFilenames(t, e, g, picture, number)
	picture.expectTypes(t, e)
	picture.expectContacts(t, e)
	picture.expectReplies(t, e, shop, phone)
	picture.expectLengths(t, e, "caption", 1, 1024, func(e *parleytest.Env, text string) {
		if got := newest(phone).Body; got != text {
			e.T.Errorf("%d bytes arrived, want %d", len(got), len(text))
		}
	})
	picture.expectAddresses(t, e, "file.url", g.url+"/dot.png", ".png")
	picture.expectUnfetchable(t, e, g, "file.url", ".png")
	picture.expectRefused(t, e, g, "file.url", "page.html", "notes.txt", "drawing.svg", "old.bmp", "empty.png", "cut.png", "film.mp4",
		"tone.mp3", "paper.pdf")
	picture.expectSizes(t, e, g, "file.url", "dot.png", 16*mebibyte)
	picture.expectTooLarge(t, e, "too large as it turns out", "file.url", g.sized("dot.png", 16*mebibyte+1), 16*mebibyte)
	part(t, e, "several errors at once", func(e *parleytest.Env) {
		expectInvalid(picture.call(e, object{"contact_id": "x", "caption": "", "reply_to": "a b", "file": object{"url": "x", "filename": 1,
			"mimeType": "x"}}),
			"contact_id", "caption", "reply_to", "file.url", "file.filename", "file.mimeType")
	})
	part(t, e, "by a redirect", func(e *parleytest.Env) {
		url := g.url + "/to/dot.png"
		expectFileData(picture.call(e, picture.body.with("file.url", url)), "image", phone.Contact(), url, "", g.files["dot.png"], "image/png",
			"9", "5")
	})
	part(t, e, "nothing is sent that was refused", func(e *parleytest.Env) {
		before := len(phone.Messages())
		expectInvalid(picture.call(e, picture.body.with("file.url", g.url+"/page.html")), "file.url")
		if after := len(phone.Messages()); after != before {
			e.T.Errorf("%d messages arrived", after-before)
		}
	})
}

// expectKept demands that the library has a file with these bytes.
func expectKept(e *parleytest.Env, file []byte) {
	e.T.Helper()
	found := false
	err := filepath.WalkDir(e.Data.Media(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Equal(data, file)
		return err
	})
	if err != nil || !found {
		e.T.Errorf("the file is not kept (%v)", err)
	}
}

func testFilenames(t *testing.T, e *parleytest.Env, g *gallery, picture endpoint, number string) {
	for name, c := range map[string]struct{ url, given, want string }{
		"of the address":       {"/dot.png?x=/other.gif", "", "dot.png"},
		"of the server":        {"/named/dot.png", "", "from the server.png"},
		"given":                {"/named/dot.png", "Foto Ayu – 1.png", "Foto Ayu – 1.png"},
		"without an extension": {"/picture", "", "picture.png"},
		"with folders":         {"/dot.png", "../../etc/passwd.png", "passwd.png"},
		// shortened to what can be saved everywhere
		"of 255 characters":      {"/dot.png", strings.Repeat("a", 251) + ".png", strings.Repeat("a", 196) + ".png"},
		"that hides its end":     {"/dot.png", "gnp.\u202egpj.exe", "gnp.gpj.exe"},
		"with control signs":     {"/dot.png", "a\tb\r\n.png", "ab.png"},
		"in a language of marks": {"/dot.png", "تقرير.png", "تقرير.png"},
	} {
		part(t, e, "filename "+name, func(e *parleytest.Env) {
			body := picture.body.with("file.url", g.url+c.url)
			if c.given != "" {
				body = body.with("file.filename", c.given)
			}
			expectSent(picture.call(e, body))
			if _, media := arrivedFile(e, number); media["filename"] != c.want {
				e.T.Errorf("the phone got %q, want %q", media["filename"], c.want)
			}
		})
	}
	part(t, e, "filename of 256 characters", func(e *parleytest.Env) {
		expectInvalid(picture.call(e, picture.body.with("file.filename", strings.Repeat("é", 256))), "file.filename")
	})
}

// expectRefused tries files that are not of the kind.
func (ep endpoint) expectRefused(t *testing.T, e *parleytest.Env, g *gallery, field string, names ...string) {
	t.Helper()
	for _, name := range names {
		part(t, e, "refused: "+name, func(e *parleytest.Env) {
			expectInvalid(ep.call(e, ep.body.with(field, g.url+"/"+name)), field)
		})
	}
}

// expectSizes tries a file at its limit, and one whose server says that it is larger.
func (ep endpoint) expectSizes(t *testing.T, e *parleytest.Env, g *gallery, field, name string, limit int) {
	t.Helper()
	part(t, e, "as large as it may be", func(e *parleytest.Env) { expectSent(ep.call(e, ep.body.with(field, g.sized(name, limit)))) })
	ep.expectTooLarge(t, e, "too large as it says", field, fmt.Sprintf("%s/claim/%d/%s", g.url, limit+1, name), limit)
}

func (ep endpoint) expectTooLarge(t *testing.T, e *parleytest.Env, how, field, url string, limit int) {
	t.Helper()
	part(t, e, how, func(e *parleytest.Env) {
		a := expectInvalid(ep.call(e, ep.body.with(field, url)), field)
		expectSentence(a, field, fmt.Sprintf("at most %d MiB", limit/mebibyte))
	})
}

func testFile(t *testing.T, e *parleytest.Env, g *gallery, shop string) {
	phone, number := newPhone(e)
	document := endpoint{method: "POST", path: "file", body: object{"contact_id": phone.Contact(), "file": object{"url": g.url +
		"/notes.txt"}}, fields: fileFields}
	for name, mimetype := range map[string]string{
		"notes.txt": "text/plain; charset=utf-8", "paper.pdf": "application/pdf", "table.csv": "text/csv", "bundle.zip": "application/zip",
		"page.html": "text/html; charset=utf-8", "drawing.svg": "image/svg+xml", "tone.mp3": "audio/mpeg", "film.mp4": "video/mp4",
	} {
		part(t, e, name, func(e *parleytest.Env) {
			url := g.url + "/" + name
			a := document.call(e, document.body.with("caption", "See").with("file.url", url))
			width, height := "0", "0"
			if name == "film.mp4" {
				width, height = "32", "16"
			}
			expectFileData(a, "file", phone.Contact(), url, "See", g.files[name], mimetype, width, height)
			expectArrivedFile(e, number, "file", "See", name, mimetype, g.files[name])
			expectKept(e, g.files[name])
		})
	}
	part(t, e, "a picture as a file", func(e *parleytest.Env) {
		url := g.url + "/dot.png"
		a := document.call(e, document.body.with("file.url", url))
		expectFileData(a, "file", phone.Contact(), url, "", g.files["dot.png"], "image/png", "9", "5")
	})
	part(t, e, "mimeType where the content does not say", func(e *parleytest.Env) {
		a := document.call(e, document.body.with("file.mimeType", "text/markdown").with("file.filename", "list.md"))
		expectFileData(a, "file", phone.Contact(), g.url+"/notes.txt", "", g.files["notes.txt"], "text/markdown", "0", "0")
		expectArrivedFile(e, number, "file", "", "list.md", "text/markdown", g.files["notes.txt"])
	})
	part(t, e, "a file without an extension", func(e *parleytest.Env) {
		expectSent(document.call(e, document.body.with("file.url", g.url+"/bare")))
		expectArrivedFile(e, number, "file", "", "bare.txt", "text/plain; charset=utf-8", g.files["bare"])
	})
	document.expectTypes(t, e)
	document.expectContacts(t, e)
	document.expectReplies(t, e, shop, phone)
	document.expectLengths(t, e, "caption", 1, 1024, nil)
	document.expectAddresses(t, e, "file.url", g.url+"/notes.txt", ".txt")
	document.expectUnfetchable(t, e, g, "file.url", ".txt")
	document.expectRefused(t, e, g, "file.url", "empty.png")
	document.expectSizes(t, e, g, "file.url", "notes.txt", 100*mebibyte)
}

func testVideo(t *testing.T, e *parleytest.Env, g *gallery, shop string) {
	phone, number := newPhone(e)
	film := endpoint{method: "POST", path: "video", body: object{"contact_id": phone.Contact(), "file": object{"url": g.url + "/film.mp4"}},
		fields: fileFields}
	short := endpoint{method: "POST", path: "video", body: object{"contact_id": phone.Contact(), "videoUrl": g.url + "/film.mp4"},
		fields: []member{
			{name: "contact_id", kind: "string", required: true},
			{name: "caption", kind: "string"},
			{name: "videoUrl", kind: "string", required: true, missing: "file.url"},
			{name: "reply_to", kind: "string"},
		}}
	for name, mimetype := range map[string]string{"film.mp4": "video/mp4", "film.webm": "video/webm"} {
		for form, body := range map[string]object{"file": film.body.with("file.url", g.url+"/"+name), "videoUrl": short.body.with("videoUrl",
			g.url+"/"+name)} {
			part(t, e, name+" as "+form, func(e *parleytest.Env) {
				a := film.call(e, body.with("caption", "Watch"))
				expectFileData(a, "video", phone.Contact(), g.url+"/"+name, "Watch", g.files[name], mimetype, "32", "16")
				expectArrivedFile(e, number, "video", "Watch", name, mimetype, g.files[name])
			})
		}
	}
	film.expectTypes(t, e)
	film.expectContacts(t, e)
	film.expectReplies(t, e, shop, phone)
	film.expectLengths(t, e, "caption", 1, 1024, nil)
	film.expectRefused(t, e, g, "file.url", "notes.txt", "dot.png", "tone.mp3", "page.html", "empty.png")
	film.expectUnfetchable(t, e, g, "file.url", ".mp4")
	film.expectSizes(t, e, g, "file.url", "film.mp4", 64*mebibyte)
	t.Run("videoUrl", func(t *testing.T) {
		short.expectTypes(t, e)
		short.expectAddresses(t, e, "videoUrl", g.url+"/film.mp4", ".mp4")
		short.expectUnfetchable(t, e, g, "videoUrl", ".mp4")
		short.expectRefused(t, e, g, "videoUrl", "notes.txt", "dot.png", "tone.mp3")
	})
}

func testVoice(t *testing.T, e *parleytest.Env, g *gallery, shop string) {
	phone, number := newPhone(e)
	db := openStore(e)
	voice := endpoint{method: "POST", path: "voice", body: object{"contact_id": phone.Contact(), "audioUrl": g.url + "/tone.ogg"},
		fields: []member{
			{name: "contact_id", kind: "string", required: true},
			{name: "audioUrl", kind: "string", required: true},
			{name: "reply_to", kind: "string"},
		}}
	const note = "audio/ogg; codecs=opus"
	for name, filename := range map[string]string{
		"tone.ogg": "tone.ogg", "tone.opus": "tone.opus", // voice notes already
		"tone.mp3": "tone.ogg", "tone.wav": "tone.ogg", "tone.aac": "tone.ogg", "tone.m4a": "tone.ogg", "stereo.ogg": "stereo.ogg", // converted
	} {
		part(t, e, name, func(e *parleytest.Env) {
			url := g.url + "/" + name
			a := expectSent(voice.call(e, voice.body.with("audioUrl", url)))
			expectSendData(a, phone.Contact())
			if a.Value("data.message") != url {
				e.T.Errorf("the message is %v", a.Value("data.message"))
			}
			row, media := arrivedFile(e, number)
			if row["type"] != "voice" || row["body"] != "" || media["mimetype"] != note || media["filename"] != filename || media["seconds"] != 2.0 {
				e.T.Errorf("the phone got %v", row)
			}
			expectToneThenSilence(e, toContent(a, e, db))
			if name == "tone.ogg" {
				expectArrivedFile(e, number, "voice", "", name, note, g.files[name])
				expectKept(e, g.files[name])
			}
		})
	}
	voice.expectTypes(t, e)
	voice.expectContacts(t, e)
	voice.expectReplies(t, e, shop, phone)
	voice.expectAddresses(t, e, "audioUrl", g.url+"/tone.ogg", ".ogg")
	voice.expectUnfetchable(t, e, g, "audioUrl", ".mp3")
	for _, name := range []string{"tone", "tone.flac", "tone.OGG", "tone.ogg?x=1", "tone.ogg#x", "tone.ogg/", "toneogg", "tone.ogg ",
		"tone.ogg\n", "tone.mp4", "tone.ogg.txt"} {
		part(t, e, fmt.Sprintf("pattern %q", name), func(e *parleytest.Env) {
			expectInvalid(voice.call(e, voice.body.with("audioUrl", g.url+"/"+name)), "audioUrl")
		})
	}
	part(t, e, "pattern by the query's end", func(e *parleytest.Env) {
		expectSent(voice.call(e, voice.body.with("audioUrl", g.url+"/tone.ogg?as=x.mp3")))
	})
	voice.expectRefused(t, e, g, "audioUrl", "wrong.mp3", "page.wav", "empty.opus", "picture.ogg", "film.m4a", "cut.ogg")
	part(t, e, "as large as it may be", func(e *parleytest.Env) {
		expectSent(voice.call(e, voice.body.with("audioUrl", g.url+"/long.wav")))
	})
	voice.expectTooLarge(t, e, "too large as it says", "audioUrl", fmt.Sprintf("%s/claim/%d/x.mp3", g.url, 16*mebibyte+1), 16*mebibyte)
	voice.expectTooLarge(t, e, "too large as it turns out", "audioUrl", g.sized("long.wav", 16*mebibyte+1), 16*mebibyte)
}

// expectToneThenSilence demands a waveform that shows what is heard.
func expectToneThenSilence(e *parleytest.Env, c parley.Content) {
	e.T.Helper()
	note, ok := c.(parley.Voice)
	if !ok || len(note.Media.Waveform) != 64 {
		e.T.Fatalf("what was sent is %+v", c)
	}
	var tone, silence int
	for i, v := range note.Media.Waveform {
		switch {
		case v > 100:
			e.T.Errorf("the waveform has a value of %d", v)
		case i < 31:
			tone += int(v)
		case i > 33:
			silence += int(v)
		}
	}
	if tone < 31*20 || silence > tone/10 {
		e.T.Errorf("the waveform shows no tone and then silence: %v", note.Media.Waveform)
	}
}
