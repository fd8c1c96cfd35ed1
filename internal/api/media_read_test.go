package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

const ayuNumber = "6281234567890"

// sentByPhone has a phone send a file, and returns its message once the channel has the file.
func (e *env) sentByPhone(kind, filename string, data []byte) m {
	e.t.Helper()
	sent := e.call("POST", "/api/sandbox/phones/"+ayuNumber+"/send", e.main,
		m{"type": kind, "file": m{"data": base64.StdEncoding.EncodeToString(data), "filename": filename}}).want(e.t, 200)
	return e.record(sent["id"], func(record m) bool {
		media, _ := record["media"].(m)
		return media["status"] == "ready"
	})
}

// record waits until a message of the chat with ayu is as wanted.
func (e *env) record(id any, wanted func(m) bool) m {
	e.t.Helper()
	for deadline := time.Now().Add(testTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, row := range e.call("GET", "/api/chat/detail?contact_id="+ayu, e.main, nil).json["data"].([]any) {
			if record := row.(m); record["id"] == id && wanted(record) {
				return record
			}
		}
	}
	e.t.Fatalf("message %v does not become as wanted", id)
	return nil
}

func isThere(m) bool { return true }

func TestReadMedia(t *testing.T) {
	e := newEnv(t)
	_, picture := files(t)
	media := e.sentByPhone("image", "dot.png", picture)["media"].(m)
	path := strings.TrimPrefix(media["url"].(string), e.server.URL)
	if path != "/api/media/"+media["id"].(string) {
		t.Fatalf("the link is %s", media["url"])
	}
	r := e.call("GET", path, e.main, nil)
	if r.StatusCode != 200 || r.text != string(picture) || r.ContentLength != int64(len(picture)) {
		t.Fatalf("%d, %d bytes", r.StatusCode, len(r.text))
	}
	for name, want := range map[string]string{
		"Content-Type": "image/png", "Content-Disposition": "inline; filename=dot.png", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": sandboxed, "Accept-Ranges": "bytes", "ETag": `"` + media["id"].(string) + `"`,
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if head := e.call("HEAD", path, e.main, nil); head.StatusCode != 200 || head.ContentLength != int64(len(picture)) || head.text != "" {
		t.Errorf("HEAD: %d, %d bytes", head.StatusCode, head.ContentLength)
	}
	if r := e.call("GET", path, e.global, nil, "X-Channel", "main"); r.StatusCode != 200 {
		t.Errorf("with a Global token: %d", r.StatusCode)
	}
	if r := e.call("GET", path, e.admin, nil); r.StatusCode != 403 {
		t.Errorf("with an admin token: %d", r.StatusCode)
	}
	if r := e.call("GET", path, "", nil); r.StatusCode != 401 {
		t.Errorf("without a token: %d", r.StatusCode)
	}
}

// TestOnlyCheckedTypesAreShown: a browser must not run what a stranger sent.
func TestOnlyCheckedTypesAreShown(t *testing.T) {
	e := newEnv(t)
	for _, c := range []struct{ name, content, kind, disposition string }{
		{"page.html", "<html><script>alert(1)</script>", "text/html; charset=utf-8", "attachment; filename=page.html"},
		{"drawing.svg", `<svg xmlns="http://www.w3.org/2000/svg">`, "image/svg+xml", "attachment; filename=drawing.svg"},
		{"paper.pdf", "%PDF-1.7 ...", "application/pdf", "attachment; filename=paper.pdf"},
		{"fake.png", "no picture at all", "text/plain; charset=utf-8", "attachment; filename=fake.png"},
	} {
		media := e.sentByPhone("file", c.name, []byte(c.content))["media"].(m)
		r := e.call("GET", "/api/media/"+media["id"].(string), e.main, nil)
		if r.StatusCode != 200 || r.text != c.content || r.Header.Get("Content-Type") != c.kind ||
			r.Header.Get("Content-Disposition") != c.disposition {
			t.Errorf("%s: %d %v", c.name, r.StatusCode, r.Header)
		}
	}
	// The sender of a file may name its type only where the content does not tell.
	address, _ := files(t)
	sent := e.call("POST", "/api/send-message/file", e.main,
		m{"contact_id": ayu, "file": m{"url": address + "/notes.txt", "mimeType": "image/png"}}).want(t, 200)
	id := e.record(sent["id"], isThere)["media"].(m)["id"].(string)
	if r := e.call("GET", "/api/media/"+id, e.main, nil); !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("a text that is named a picture: %v", r.Header)
	}
}

func TestRangesOfMedia(t *testing.T) {
	e := newEnv(t)
	const content = "0123456789"
	path := "/api/media/" + e.sentByPhone("file", "a.txt", []byte(content))["media"].(m)["id"].(string)
	tag := e.call("GET", path, e.main, nil).Header.Get("ETag")
	for _, c := range []struct {
		asked  string
		status int
		want   string
	}{
		{"bytes=0-0", 206, "0"}, {"bytes=2-4", 206, "234"}, {"bytes=7-", 206, "789"}, {"bytes=-3", 206, "789"}, {"bytes=-99", 206, content},
		{"bytes=5-99", 206, "56789"}, {"bytes=0-9223372036854775807", 206, content},
		{"bytes=10-", 416, ""}, {"bytes=99-100", 416, ""}, {"bytes=-0", 416, ""},
		{"bytes=4-2", 200, content}, {"bytes=", 200, content}, {"bytes=-", 200, content}, {"bytes=a-b", 200, content},
		{"lines=0-1", 200, content},
		{"bytes=0-99999999999999999999", 200, content}, {"bytes=--1", 200, content}, {"bytes=+1-2", 200, content},
		{"bytes=0-0,2-2", 200, content}, {"bytes=0-0" + strings.Repeat(",0-0", 10_000), 200, content},
	} {
		r := e.call("GET", path, e.main, nil, "Range", c.asked)
		if r.StatusCode != c.status || c.status != 416 && r.text != c.want {
			t.Errorf("%.40s: %d %q", c.asked, r.StatusCode, r.text)
		}
		if c.status == 206 {
			at := strings.Index(content, c.want)
			if want := fmt.Sprintf("bytes %d-%d/10", at, at+len(c.want)-1); r.Header.Get("Content-Range") != want {
				t.Errorf("%s: Content-Range %q, want %q", c.asked, r.Header.Get("Content-Range"), want)
			}
		}
		if c.status == 416 && r.Header.Get("Content-Range") != "bytes */10" {
			t.Errorf("%s: Content-Range %q", c.asked, r.Header.Get("Content-Range"))
		}
	}
	if r := e.call("GET", path, e.main, nil, "Range", "bytes=1-1", "If-Range", tag); r.text != "1" {
		t.Errorf("the same file: %q", r.text)
	}
	if r := e.call("GET", path, e.main, nil, "Range", "bytes=1-1", "If-Range", `"another"`); r.StatusCode != 200 || r.text != content {
		t.Errorf("another file: %d %q", r.StatusCode, r.text)
	}
}

// TestMediaOfOthers: a file of another channel looks like one that does not exist.
func TestMediaOfOthers(t *testing.T) {
	e := newEnv(t)
	record := e.sentByPhone("file", "a.txt", []byte("private"))
	id := record["media"].(m)["id"].(string)
	none := e.call("GET", "/api/media/med_"+strings.Repeat("0", 32)+"1", e.second, nil)
	if none.StatusCode != 404 {
		t.Fatalf("no file: %d %s", none.StatusCode, none.text)
	}
	if r := e.call("GET", "/api/media/"+id, e.second, nil); r.StatusCode != 404 || r.text != none.text {
		t.Errorf("the file of another channel: %d %s", r.StatusCode, r.text)
	}
	last := map[bool]string{true: "1", false: "0"}[id[len("med_")] == '0']
	for _, wrong := range []string{"med_" + last + id[len("med_")+1:], id + "0", id[:len(id)-1], "med_", "x", strings.ToUpper(id),
		id + "zzzzzzzzzzzzzzzzz",
		"med_" + id[len("med_"):36] + "-1", "med_" + id[len("med_"):36] + "00"} {
		if r := e.call("GET", "/api/media/"+wrong, e.main, nil); r.StatusCode != 404 || r.text != none.text {
			t.Errorf("%s: %d %s", wrong, r.StatusCode, r.text)
		}
	}
	e.call("POST", "/api/sandbox/phones/"+ayuNumber+"/send", e.main, m{"type": "delete", "message_id": record["message_id"]}).want(t, 200)
	e.record(record["id"], func(record m) bool { return record["status"] == "DELETED" && record["media"] == nil })
	if r := e.call("GET", "/api/media/"+id, e.main, nil); r.StatusCode != 404 {
		t.Errorf("the file of a deleted message: %d", r.StatusCode)
	}
}

func TestPendingAndFailedMedia(t *testing.T) {
	e := newEnv(t)
	const key = "5f2c1d8a90b34e6f7788990011223344"
	message := parley.Message{Channel: "main", Chat: ayu, ID: "3A00", Status: parley.Received, CreatedAt: time.Now(),
		Content: parley.Image{Media: parley.Media{ID: key, MIME: "image/png", Size: 5}}}
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.AddMessage(t.Context(), &message); err != nil {
			return err
		}
		return tx.AddMediaFetch(t.Context(), parley.MediaFetch{Seq: message.Seq, Reference: []byte("r"), CreatedAt: time.Now(),
			NextAt: time.Now().Add(time.Hour)})
	})
	if err != nil {
		t.Fatal(err)
	}
	media := e.record("3A00", isThere)["media"].(m)
	path := "/api/media/" + media["id"].(string)
	r := e.call("GET", path, e.main, nil)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || media["status"] != "pending" {
		t.Errorf("pending: %d %v %v", r.StatusCode, r.Header, media)
	}
	if r := e.call("GET", path, e.second, nil); r.StatusCode != 404 {
		t.Errorf("pending, of another channel: %d", r.StatusCode)
	}
	err = e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.FinishMediaFetch(t.Context(), message.Seq, parley.Media{ID: "x", Failure: "It is too large."})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := e.call("GET", path, e.main, nil); r.StatusCode != 404 {
		t.Errorf("failed: %d", r.StatusCode)
	}
	if media := e.record("3A00", isThere)["media"].(m); media["status"] != "failed" || media["reason"] != "It is too large." {
		t.Errorf("failed: %v", media)
	}
}

func TestSignedLinks(t *testing.T) {
	e := newEnv(t)
	first := parley.MediaID(e.sentByPhone("file", "a.txt", []byte("first"))["media"].(m)["id"].(string))
	other := parley.MediaID(e.sentByPhone("file", "b.txt", []byte("other"))["media"].(m)["id"].(string))
	links := parley.MediaLinks{Keys: e.config.Keyring.Derive(parley.MediaLinkKeys)}
	link := links.Signed(time.Now())(first)
	if r := e.call("GET", link, "", nil); r.StatusCode != 200 || r.text != "first" {
		t.Fatalf("signed: %d %s", r.StatusCode, r.text)
	}
	if r := e.call("GET", link, "", nil, "Range", "bytes=1-2"); r.StatusCode != 206 || r.text != "ir" {
		t.Errorf("a range: %d %s", r.StatusCode, r.text)
	}
	expired := links.Signed(time.Now().Add(-parley.SignedMediaLife))(first)
	if r := e.call("GET", expired, "", nil); r.StatusCode != 401 || !strings.Contains(r.text, "expired") {
		t.Errorf("expired: %d %s", r.StatusCode, r.text)
	}
	foreign := parley.MediaLinks{Keys: [][]byte{[]byte("another key")}}
	for what, wrong := range map[string]string{
		"another file":      strings.Replace(link, string(first), string(other), 1),
		"a later end":       strings.Replace(link, "expires=", "expires=9", 1),
		"a shorter end":     strings.Replace(link, "expires=1", "expires=", 1),
		"no end":            link[:strings.Index(link, "expires=")] + link[strings.Index(link, "signature="):],
		"a cut signature":   link[:len(link)-1],
		"no signature":      link[:strings.Index(link, "signature=")+len("signature=")],
		"upper case":        strings.ToUpper(link[strings.Index(link, "?")+1:]),
		"of another server": foreign.Signed(time.Now())(first),
	} {
		if !strings.HasPrefix(wrong, "/") {
			wrong = "/api/media/" + string(first) + "?" + strings.NewReplacer("EXPIRES", "expires", "SIGNATURE", "signature").Replace(wrong)
		}
		if r := e.call("GET", wrong, "", nil); r.StatusCode != 401 || strings.Contains(r.text, "first") {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.text)
		}
	}
	signature := link[strings.Index(link, "signature=")+len("signature="):]
	if strings.Contains(e.logs.String(), signature) || strings.Contains(e.logs.String(), "signature=") {
		t.Error("a signature was logged")
	}
	// A token is used even if the link has a signature.
	if r := e.call("GET", link, e.second, nil); r.StatusCode != 404 {
		t.Errorf("with the token of another channel: %d", r.StatusCode)
	}
}

func TestContentOfRecords(t *testing.T) {
	e := newEnv(t)
	send := func(body m) any {
		t.Helper()
		return e.call("POST", "/api/sandbox/phones/"+ayuNumber+"/send", e.main, body).want(t, 200)["id"]
	}
	place := e.record(send(m{"type": "location", "latitude": "-6.2", "longitude": "106.8", "title": "Monas", "address": "Jakarta"}), isThere)
	want := m{"latitude": "-6.2", "longitude": "106.8", "title": "Monas", "address": "Jakarta"}
	if fmt.Sprint(place["location"]) != fmt.Sprint(want) {
		t.Errorf("location: %v", place["location"])
	}
	card := e.record(send(m{"type": "contact", "contacts": []m{{"name": "Budi; Jr", "numbers": []string{"+62 811-2222-333"}}}}), isThere)
	cards, _ := card["contacts"].([]any)
	if len(cards) != 1 || card["type"] != "contact" || card["body"] != "Budi; Jr" || card["is_media"] != false {
		t.Fatalf("a card: %v", card)
	}
	const vcard = "BEGIN:VCARD\nVERSION:3.0\nN:;Budi\\; Jr;;;\nFN:Budi\\; Jr\nTEL;type=CELL;waid=628112222333:+628112222333\nEND:VCARD"
	if c := cards[0].(m); c["name"] != "Budi; Jr" || c["vcard"] != vcard {
		t.Errorf("a card: %v", c)
	}
	question := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Tea or coffee?"}).want(t, 200)
	reply := e.record(send(m{"type": "text", "message": "Tea", "reply_to": question["id"]}), isThere)
	if quoted, _ := reply["quoted"].(m); quoted["id"] != question["id"] || quoted["body"] != "Tea or coffee?" {
		t.Errorf("quoted: %v", reply)
	}
	detail := e.call("GET", "/api/manage/messages/"+reply["message_id"].(string)+"?channel=main", e.admin, nil).want(t, 200)
	if quoted, _ := detail["quoted"].(m); quoted["body"] != "Tea or coffee?" {
		t.Errorf("an admin sees %v", detail)
	}
	e.call("DELETE", "/api/send-message/delete?message_id="+question["message_id"].(string), e.main, nil).want(t, 200)
	reply = e.record(reply["id"], func(record m) bool { return record["quoted"].(m)["body"] == "" })
	if reply["quoted"].(m)["id"] != question["id"] {
		t.Errorf("quoted, after it was deleted: %v", reply)
	}
	for what, wrong := range map[string]m{
		"no cards":       {"contacts": []m{}},
		"no list":        {"contacts": "x"},
		"no name":        {"contacts": []m{{"numbers": []string{"+628112222333"}}}},
		"no numbers":     {"contacts": []m{{"name": "x"}}},
		"a wrong number": {"contacts": []m{{"name": "x", "numbers": []string{"abc"}}}},
		"too many":       {"contacts": make([]m, maxCards+1)},
	} {
		wrong["type"] = "contact"
		if r := e.call("POST", "/api/sandbox/phones/"+ayuNumber+"/send", e.main, wrong); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.text)
		}
	}
}
