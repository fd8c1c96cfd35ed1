package api_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestPhonePicksFile has a phone send files that the request itself holds.
func TestPhonePicksFile(t *testing.T) {
	e := parleytest.Start(t)
	files := parleytest.Files(t)
	inBase64 := func(name string) string { return base64.StdEncoding.EncodeToString(fetched(t, files+"/"+name)) }
	const number, path = "6281800000091", phones + "/6281800000091/send"
	for _, c := range []struct{ body, kind, mime string }{
		{`{"type":"image","caption":"A dot","file":{"data":"` + inBase64("dot.png") + `","filename":"dot.png"}}`, "image", "image/png"},
		{`{"type":"voice","file":{"data":"` + inBase64("hello.ogg") + `"}}`, "voice", "audio/ogg; codecs=opus"},
		{`{"type":"voice","file":{"data":"` + base64.StdEncoding.EncodeToString(recording()) + `","filename":"voice.webm"}}`, "voice", "audio/ogg; codecs=opus"},
		{`{"type":"video","file":{"data":"` + inBase64("film.mp4") + `"}}`, "video", "video/mp4"},
		{`{"type":"file","file":{"data":"` + inBase64("notes.txt") + `","filename":"notes.txt"}}`, "file", "text/plain; charset=utf-8"},
	} {
		said := e.Post(path, c.body)
		wantActed(t, said)
		shown := e.Get(phones + "/" + number + "/chat?limit=1").Expect(http.StatusOK)
		wantValue(t, shown, "data.0.message_id", said.Text("data.message_id"))
		wantValue(t, shown, "data.0.type", c.kind)
		wantValue(t, shown, "data.0.media.mimetype", c.mime)
		if c.kind == "voice" && (shown.Count("data.0.media.waveform") != 64 || shown.Number("data.0.media.seconds") != 1) {
			t.Errorf("the voice message has no waveform or no length: %s", shown.Body)
		}
		e.Eventually("the channel has it", func() bool {
			return e.Get("/api/chat/detail?limit=1&contact_id="+number+"@c.us").Text("data.0.message_id") == said.Text("data.message_id")
		})
		// The file is there for whoever looks at the phone, also when the channel has taken it.
		e.Get(phones + "/" + number + "/media/" + said.Text("data.message_id")).Expect(http.StatusOK)
	}
	for _, c := range []struct{ body, field string }{
		{`{"type":"image","file":{"data":"no base64!"}}`, "file.data"},
		{`{"type":"image","file":{"data":""}}`, "file.data"},
		{`{"type":"image","file":{"data":"` + inBase64("notes.txt") + `"}}`, "file.data"},
		{`{"type":"voice","file":{"data":"` + inBase64("dot.png") + `"}}`, "file.data"},
		{`{"type":"voice","file":{"data":"` + base64.StdEncoding.EncodeToString([]byte("OggS and no more")) + `"}}`, "file.data"},
		{`{"type":"video","file":{"data":"` + inBase64("dot.png") + `"}}`, "file.data"},
		{`{"type":"image","file":{"data":"` + inBase64("dot.png") + `","url":"` + files + `/dot.png"}}`, "file.url"},
	} {
		e.Post(path, c.body).ExpectFields(c.field)
	}
}

// recording is a second of silence as browsers record it: webm with opus, and sizes that are left open.
func recording() []byte {
	const open = "\x01\xff\xff\xff\xff\xff\xff\xff"
	head := "OpusHead\x01\x01\x00\x00\x80\x3e\x00\x00\x00\x00\x00" // one voice, 16 kHz
	file := "\x1a\x45\xdf\xa3\x87\x42\x82\x84webm" + "\x18\x53\x80\x67" + open +
		"\x16\x54\xae\x6b\xa1\xae\x9f\xd7\x81\x01\x86\x86A_OPUS\x63\xa2\x93" + head + "\x1f\x43\xb6\x75" + open
	return []byte(file + strings.Repeat("\xa3\x87\x81\x00\x00\x80\xf8\xff\xfe", 50)) // of 20 ms
}

func fetched(t *testing.T, url string) []byte {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, answer.StatusCode, err)
	}
	return data
}

// TestFaultsAreListed orders faults, sees them used up, and switches the rest off.
func TestFaultsAreListed(t *testing.T) {
	e := parleytest.Start(t)
	const number = "6281900000091"
	faultsOf := func() int {
		t.Helper()
		return e.Get("/api/manage/channels", parleytest.As(e.Admin)).Expect(http.StatusOK).Number("data.0.faults")
	}
	list := e.Get(faults).Expect(http.StatusOK)
	if list.Count("data") != 0 || faultsOf() != 0 {
		t.Errorf("at first there are faults: %s", list.Body)
	}
	order(e, `{"fault":"refuse","times":2,"to":"`+number+`","type":"text","reason":"Full."}`)
	order(e, `{"fault":"late","times":3}`)
	try(e, number)
	list = e.Get(faults).Expect(http.StatusOK)
	wantValue(t, list, "data.0.fault", "refuse")
	wantValue(t, list, "data.0.times", 1.0)
	wantValue(t, list, "data.0.to", number)
	wantValue(t, list, "data.0.type", "text")
	wantValue(t, list, "data.0.reason", "Full.")
	wantValue(t, list, "data.1.to", nil)
	if list.Count("data") != 2 || faultsOf() != 2 {
		t.Errorf("%d faults are counted of %s", faultsOf(), list.Body)
	}
	e.Delete(faults).Expect(http.StatusOK)
	if got := e.Get(faults).Expect(http.StatusOK).Count("data"); got != 0 || faultsOf() != 0 {
		t.Errorf("%d faults are left", got)
	}
	if status, _, _ := try(e, number); status != "SENT" {
		t.Errorf("without faults a send ends %s", status)
	}
}
