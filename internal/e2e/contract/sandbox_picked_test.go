package contract_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
		{`{"type":"voice","file":{"data":"` + base64.StdEncoding.EncodeToString(recording(t)) + `","filename":"voice.webm"}}`, "voice",
			"audio/ogg; codecs=opus"},
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
		// The phone still has the file after the channel has fetched it.
		e.Get(phones + "/" + number + "/media/" + said.Text("data.message_id")).Expect(http.StatusOK)
	}
	for _, c := range []struct{ body, field string }{
		{`{"type":"sticker","file":{"data":"` + inBase64("dot.png") + `"}}`, "file.data"},
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

// recording is a second of sound as browsers record it: webm with opus, with sizes left open.
func recording(t *testing.T) []byte {
	t.Helper()
	needFFmpeg(t)
	path := filepath.Join(t.TempDir(), "voice.webm")
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", "libopus", "-live",
		"1", path).CombinedOutput()
	if err != nil {
		t.Fatalf("record: %v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
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
