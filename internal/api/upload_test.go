package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/media"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// upload sends a body as it is; headers are pairs.
func (e *env) upload(token string, body io.Reader, headers ...string) reply {
	e.t.Helper()
	req := must(http.NewRequestWithContext(e.t.Context(), "POST", e.server.URL+"/api/media", body))(e.t)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil { // the server may refuse a large body before it was sent
		return reply{Response: &http.Response{}, text: err.Error()}
	}
	defer resp.Body.Close()
	r := reply{Response: resp, text: string(must(io.ReadAll(resp.Body))(e.t))}
	json.Unmarshal([]byte(r.text), &r.json)
	return r
}

func formWith(t testing.TB, parts ...string) (body io.Reader, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 3 {
		var part io.Writer
		if parts[i+1] == "" {
			part = must(w.CreateFormField(parts[i]))(t)
		} else {
			part = must(w.CreateFormFile(parts[i], parts[i+1]))(t)
		}
		io.WriteString(part, parts[i+2])
	}
	w.Close()
	return &b, w.FormDataContentType()
}

// storedFiles lists the complete and the temporary files of the library.
func (e *env) storedFiles() (list []string) {
	dir := filepath.Join(filepath.Dir(e.keyFile), "media")
	filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			list = append(list, path)
		}
		return nil
	})
	return list
}

func TestUpload(t *testing.T) {
	e := newEnv(t)
	_, picture := files(t)
	asForm, kind := formWith(t, "note", "", "x", "file", "dot.png", string(picture))
	for what, r := range map[string]reply{
		"a form": e.upload(e.main, asForm, "Content-Type", kind),
		"bytes": e.upload(e.main, bytes.NewReader(picture), "Content-Type", "image/png",
			"Content-Disposition", `attachment; filename="dot.png"`),
		"a lie": e.upload(e.main, bytes.NewReader(picture), "Content-Type", "text/html",
			"Content-Disposition", `attachment; filename="../dot.png"`),
	} {
		data := r.want(t, 200)
		if data["mimetype"] != "image/png" || data["size"] != float64(len(picture)) || data["filename"] != "dot.png" {
			t.Errorf("%s: %s", what, r.text)
		}
		id := data["id"].(string)
		if r := e.call("GET", "/api/media/"+id, e.main, nil); r.text != string(picture) || r.Header.Get("Content-Type") != "image/png" {
			t.Errorf("%s: read back %d, %d bytes, %v", what, r.StatusCode, len(r.text), r.Header)
		}
		if r := e.call("GET", "/api/media/"+id, e.second, nil); r.StatusCode != 404 {
			t.Errorf("%s: another channel reads it: %d", what, r.StatusCode)
		}
		sent := e.call("POST", "/api/send-message/image", e.main, m{"contact_id": ayu, "file": m{"url": id}}).want(t, 200)
		if said := sent["message"].(m); said["image"] != id || said["details"].(m)["width"] != "12" {
			t.Errorf("%s: sent %v", what, sent)
		}
		record := e.record(sent["id"], isThere)
		if r := e.call("GET", "/api/media/"+record["media"].(m)["id"].(string), e.main, nil); r.text != string(picture) {
			t.Errorf("%s: the message has %d bytes", what, len(r.text))
		}
		// An upload may be used again, also as a document, and so may the file of a message.
		for _, again := range []any{id, record["media"].(m)["id"]} {
			doc := e.call("POST", "/api/send-message/file", e.main, m{"contact_id": ayu, "file": m{"url": again}}).want(t, 200)
			if media := e.record(doc["id"], isThere)["media"].(m); media["filename"] != "dot.png" || media["mimetype"] != "image/png" {
				t.Errorf("%s: the document is %v", what, media)
			}
		}
	}
	if n := len(e.storedFiles()); n != 1 {
		t.Errorf("one file is stored %d times", n)
	}
}

func TestUploadsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	empty, emptyKind := formWith(t, "file", "a.txt", "")
	other, otherKind := formWith(t, "document", "a.txt", "x")
	late, lateKind := formWith(t, "note", "", strings.Repeat("x", 2*maxPreamble), "file", "a.txt", "x")
	cut, cutKind := formWith(t, "file", "a.txt", strings.Repeat("x", 1000))
	cutBytes := must(io.ReadAll(cut))(t)
	for _, c := range []struct {
		what    string
		body    io.Reader
		headers []string
		status  int
	}{
		{"no type", strings.NewReader("x"), nil, 400},
		{"a broken type", strings.NewReader("x"), []string{"Content-Type", "///"}, 400},
		{"a form of a browser", strings.NewReader("x"), []string{"Content-Type", "application/x-www-form-urlencoded"}, 400},
		{"other parts", strings.NewReader("x"), []string{"Content-Type", "multipart/mixed; boundary=x"}, 400},
		{"no boundary", strings.NewReader("x"), []string{"Content-Type", "multipart/form-data"}, 400},
		{"no parts", strings.NewReader("x"), []string{"Content-Type", "multipart/form-data; boundary=x"}, 400},
		{"compressed", strings.NewReader("x"), []string{"Content-Type", "image/png", "Content-Encoding", "gzip"}, 400},
		{"nothing", strings.NewReader(""), []string{"Content-Type", "image/png"}, 422},
		{"an empty file", empty, []string{"Content-Type", emptyKind}, 422},
		{"no file", other, []string{"Content-Type", otherKind}, 422},
		{"a file behind much else", late, []string{"Content-Type", lateKind}, 400},
		{"a form that is cut", bytes.NewReader(cutBytes[:len(cutBytes)/2]), []string{"Content-Type", cutKind}, 400},
	} {
		r := e.upload(e.main, c.body, append(c.headers, "X-Request-Id", "r1")...)
		if r.StatusCode != c.status || r.json["message"] == nil {
			t.Errorf("%s: %d %s", c.what, r.StatusCode, r.text)
		}
	}
	if r := e.upload(e.admin, strings.NewReader("x"), "Content-Type", "text/plain"); r.StatusCode != 403 {
		t.Errorf("with an admin token: %d", r.StatusCode)
	}
	if r := e.upload("x", strings.NewReader("x"), "Content-Type", "text/plain"); r.StatusCode != 401 {
		t.Errorf("without a token: %d", r.StatusCode)
	}
	if left := e.storedFiles(); len(left) > 0 {
		t.Errorf("stored: %v", left)
	}
}

// zeros is a file of any size.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	n := min(int64(len(p)), z.left)
	if z.left -= n; n == 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	return int(n), nil
}

// TestLargestUpload: memory stays small, and one byte more is refused with nothing stored.
func TestLargestUpload(t *testing.T) {
	e := newEnv(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	data := e.upload(e.main, &zeros{media.MaxUpload}, "Content-Type", "application/octet-stream").want(t, 200)
	runtime.ReadMemStats(&after)
	if data["size"] != float64(media.MaxUpload) {
		t.Errorf("its size is %v", data["size"])
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	r := e.upload(e.main, &zeros{media.MaxUpload + 1}, "Content-Type", "application/octet-stream") // in chunks
	if r.StatusCode != 413 && r.StatusCode != 0 {
		t.Errorf("a byte more: %d %s", r.StatusCode, r.text)
	}
	if left := e.storedFiles(); len(left) != 1 {
		t.Errorf("stored: %v", left)
	}
}

// TestForeignUploads: a file of another channel looks like one that does not exist.
func TestForeignUploads(t *testing.T) {
	e := newEnv(t)
	own := e.upload(e.second, strings.NewReader("private"), "Content-Type", "text/plain").want(t, 200)["id"].(string)
	received := e.sentByPhone("file", "a.txt", []byte("private"))["media"].(m)["id"].(string)
	send := func(token, id string) reply {
		return e.call("POST", "/api/send-message/file", token, m{"contact_id": ayu, "file": m{"url": id}})
	}
	none := send(e.main, "med_"+strings.Repeat("0", 32))
	if none.StatusCode != 422 || none.wrong()["file.url"] == nil {
		t.Fatalf("no upload: %d %s", none.StatusCode, none.text)
	}
	for _, c := range []struct{ token, id string }{{e.main, own}, {e.second, received}, {e.main, "med_"}, {e.main, "med_x"},
		{e.main, own + "1"},
		{e.main, "med_" + strings.Repeat("../", 10) + "aa"}, {e.main, strings.ToUpper(own[:4]) + own[4:]}} {
		if r := send(c.token, c.id); r.StatusCode != 422 || strings.HasPrefix(c.id, "med_") && r.text != none.text {
			t.Errorf("%s: %d %s", c.id, r.StatusCode, r.text)
		}
	}
	if r := e.call("GET", "/api/media/"+own, e.main, nil); r.StatusCode != 404 {
		t.Errorf("read by another channel: %d", r.StatusCode)
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 1 {
		t.Errorf("%d messages", n)
	}
	pool := e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": ayu, "pools": []m{{"type": "file", "data": []string{own}}}},
		"X-Channel", "main")
	if pool.StatusCode != 422 || pool.wrong()["pools.0.data.0"] == nil {
		t.Errorf("in a pool of another channel: %d %s", pool.StatusCode, pool.text)
	}
	pool = e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": ayu, "pools": []m{{"type": "file", "data": []string{own}}}},
		"X-Channel", "second")
	if pool.StatusCode != 200 || pool.json["success"] != true {
		t.Errorf("in a pool: %d %s", pool.StatusCode, pool.text)
	}
}

func TestDataAddresses(t *testing.T) {
	e := newEnv(t)
	_, picture := files(t)
	whole := base64.StdEncoding.EncodeToString(picture)
	prefix := "data:text/plain,"
	longest := prefix + strings.Repeat("x", maxDataURL-len(prefix))
	for what, c := range map[string]struct {
		url    string
		status int
		source string
		size   int
	}{
		"base64":          {"data:image/png;base64," + whole, 200, "data:image/png;base64,", len(picture)},
		"without padding": {"data:;base64," + strings.TrimRight(whole, "="), 200, "data:;base64,", len(picture)},
		"escaped":         {"DATA:image/png;base64," + strings.ReplaceAll(whole, "+", "%2B"), 200, "data:image/png;base64,", len(picture)},
		"text":            {"data:,a%20b", 200, "data:,", 3},
		"the longest":     {longest, 200, prefix, maxDataURL - len(prefix)},
		"longer":          {longest + "x", 422, "", 0},
		"nothing":         {"data:", 422, "", 0},
		"no content":      {"data:image/png;base64,", 422, "", 0},
		"no base64":       {"data:image/png;base64,????", 422, "", 0},
		"a broken type":   {"data:///;base64,aaaa", 422, "", 0},
		"broken escapes":  {"data:,%zz", 422, "", 0},
		"neither of them": {"datum:,x", 422, "", 0},
	} {
		r := e.call("POST", "/api/send-message/file", e.main, m{"contact_id": ayu, "file": m{"url": c.url}})
		if r.StatusCode != c.status || c.status == 422 && (r.wrong()["file.url"] == nil || len(r.text) > 2000) {
			t.Errorf("%s: %d %.300s", what, r.StatusCode, r.text)
		}
		if c.status != 200 {
			continue
		}
		data := r.want(t, 200)
		if data["message"].(m)["file"] != c.source {
			t.Errorf("%s: it is from %.100v", what, data["message"].(m)["file"])
		}
		if media := e.record(data["id"], isThere)["media"].(m); media["size"] != float64(c.size) {
			t.Errorf("%s: %v", what, media)
		}
	}
	noPicture := m{"contact_id": ayu, "file": m{"url": "data:image/png,no picture"}}
	if r := e.call("POST", "/api/send-message/image", e.main, noPicture); r.StatusCode != 422 {
		t.Errorf("no picture: %d %s", r.StatusCode, r.text)
	}
}

// TestQuotaOfUploads: uploads that no message was made of count, used ones do not.
func TestQuotaOfUploads(t *testing.T) {
	e := newEnv(t)
	add := func(n int, u store.Upload) {
		t.Helper()
		err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
			var errs []error
			for range n {
				u.Key, u.Channel, u.At = media.NewKey(), "main", time.Now()
				errs = append(errs, tx.AddUpload(t.Context(), u))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	upload := func(token string) reply {
		return e.upload(token, strings.NewReader("12345"), "Content-Type", "text/plain")
	}
	add(maxUploads, store.Upload{Size: 1, Used: true})
	add(maxUploads-1, store.Upload{Size: 1})
	last := upload(e.main).want(t, 200)["id"]
	r := upload(e.main)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" || !strings.Contains(r.Header.Get("RateLimit"), limitUploads) {
		t.Errorf("one more: %d %s %v", r.StatusCode, r.text, r.Header)
	}
	upload(e.second).want(t, 200) // another channel has its own
	before := len(e.storedFiles())
	e.call("POST", "/api/send-message/file", e.main, m{"contact_id": ayu, "file": m{"url": last}}).want(t, 200)
	upload(e.main).want(t, 200)                 // for the used one
	if n := len(e.storedFiles()); n != before { // it is the same file
		t.Errorf("%d files, %d before", n, before)
	}
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PurgeUploads(t.Context(), time.Now().Add(time.Hour), 10_000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	add(1, store.Upload{Size: maxUploadBytes - 5})
	upload(e.main).want(t, 200)
	if r := upload(e.main); r.StatusCode != 429 {
		t.Errorf("more than 1 GiB: %d %s", r.StatusCode, r.text)
	}
}

// TestAnswerAfterBody: a client that reads only after it has sent the whole body gets the answer of a request that was refused at once.
func TestAnswerAfterBody(t *testing.T) {
	e := newEnv(t)
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddUpload(t.Context(), store.Upload{Key: media.NewKey(), Channel: "main", At: time.Now(), Size: maxUploadBytes})
	})
	if err != nil {
		t.Fatal(err)
	}
	const size = 30 << 20
	for _, c := range []struct {
		path, header string
		chunked      bool
		status       int
	}{
		{"/api/media", "Content-Type: image/jpeg", false, 429},
		{"/api/media", "Content-Type: application/x-www-form-urlencoded", true, 400},
		{"/api/send-message/text", "Content-Type: application/json", false, 413},
		{"/api/send-message/text", "Content-Type: application/json", true, 413},
	} {
		conn := must(net.Dial("tcp", e.server.Listener.Addr().String()))(t)
		defer conn.Close()
		length := fmt.Sprintf("Content-Length: %d", size)
		if c.chunked {
			length = "Transfer-Encoding: chunked"
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n%s\r\n\r\n", c.path, e.main, c.header, length)
		body := io.Reader(&zeros{size})
		if c.chunked {
			body = io.MultiReader(strings.NewReader(fmt.Sprintf("%x\r\n", size)), body, strings.NewReader("\r\n0\r\n\r\n"))
		}
		if _, err := io.Copy(conn, body); err != nil {
			t.Errorf("%s %s: send: %v", c.path, length, err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s %s: %v", c.path, length, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || !json.Valid(text) {
			t.Errorf("%s %s: %d %s, %v", c.path, length, resp.StatusCode, text, err)
		}
	}
}

// TestNoRoomForFiles: without room, and after too many files in a day, texts are sent and files are not.
func TestNoRoomForFiles(t *testing.T) {
	for _, c := range []struct {
		limits store.StorageLimits
		status int
		code   string
	}{
		{store.StorageLimits{MinFree: 1 << 60}, 507, "storage_full"},
		{store.StorageLimits{PerDay: 1}, 429, "storage_limit"},
	} {
		e := newEnv(t, func(config *Config) {
			library := media.Config{Dir: t.TempDir(), Store: config.Store, Limits: c.limits}
			config.Media = must(media.Open(library, safehttp.Policy{}))(t)
		})
		for what, r := range map[string]reply{
			"upload": e.upload(e.main, strings.NewReader("12345"), "Content-Type", "text/plain"),
			"send":   e.call("POST", "/api/send-message/file", e.main, m{"contact_id": ayu, "file": m{"url": "data:,hello"}}),
			"phone":  e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "file", "file": m{"url": "data:,hello"}}),
		} {
			if r.StatusCode != c.status || r.json["code"] != c.code || c.status == 429 && r.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s %v", what, r.StatusCode, r.text, r.Header)
			}
		}
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "hi"}).want(t, 200)
	}
}

// TestManyUploads: as many as fit are stored, not one more, whatever the callers do at once.
func TestManyUploads(t *testing.T) {
	if testing.Short() {
		t.Skip("it stores a thousand files")
	}
	e := newEnv(t)
	const callers, each = 16, 80
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				r := e.upload(e.main, strings.NewReader(fmt.Sprint(caller, " ", i)), "Content-Type", "text/plain")
				mu.Lock()
				statuses[r.StatusCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if statuses[200] != maxUploads || statuses[429] != callers*each-maxUploads {
		t.Errorf("statuses: %v", statuses)
	}
	if n := len(e.storedFiles()); n != maxUploads {
		t.Errorf("%d files are stored", n)
	}
}

func TestIdempotentUpload(t *testing.T) {
	e := newEnv(t)
	upload := func(body string) reply {
		return e.upload(e.main, strings.NewReader(body), "Content-Type", "text/plain", "Idempotency-Key", "k1")
	}
	first := upload("one").want(t, 200)
	again := upload("one")
	if again.want(t, 200)["id"] != first["id"] || again.Header.Get(replayedHeader) != "true" {
		t.Errorf("again: %v %s", again.Header, again.text)
	}
	if r := upload("two"); r.StatusCode != 422 {
		t.Errorf("another file with the same key: %d", r.StatusCode)
	}
	if n := len(e.storedFiles()); n != 1 {
		t.Errorf("%d files are stored", n)
	}
}

// TestVoiceFromFile: the voice endpoint takes a file in place of an address.
func TestVoiceFromFile(t *testing.T) {
	e := newEnv(t)
	for what, c := range map[string]struct {
		body  m
		field string
	}{
		"no sound":     {m{"file": m{"url": "data:text/plain,no sound"}}, "file.url"},
		"no such file": {m{"file": m{"url": "med_" + strings.Repeat("0", 32)}}, "file.url"},
		"no url":       {m{"file": m{}}, "file.url"},
		"nothing":      {m{}, "audioUrl"},
		"an old field": {m{"audioUrl": "med_" + strings.Repeat("0", 32)}, "audioUrl"},
	} {
		c.body["contact_id"] = ayu
		if r := e.call("POST", "/api/send-message/voice", e.main, c.body); r.StatusCode != 422 || r.wrong()[c.field] == nil {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.text)
		}
	}
	wave := "RIFF\x24\x7d\x00\x00" +
		"WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x7d\x00\x00" +
		strings.Repeat("\x00", 0x7d00)
	id := e.upload(e.main, strings.NewReader(wave), "Content-Type", "audio/wav").want(t, 200)["id"]
	sent := e.call("POST", "/api/send-message/voice", e.main, m{"contact_id": ayu, "file": m{"url": id}}).want(t, 200)
	if sent["message"] != id {
		t.Errorf("sent: %v", sent)
	}
	if record := e.record(sent["id"], isThere); record["type"] != "voice" || record["media"].(m)["duration"] != 1.0 {
		t.Errorf("the message is %v", record)
	}
}

// TestLargePicture: a small upload that decodes to a large picture is refused when it is sent as one.
func TestLargePicture(t *testing.T) {
	e := newEnv(t)
	bomb := fmt.Sprintf("GIF89a%c%c%c%c\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00%c%c%c%c\x00\x02\x02D\x01\x00;",
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	raw := make([]byte, 0, len(bomb))
	for _, r := range bomb {
		raw = append(raw, byte(r))
	}
	id := e.upload(e.main, bytes.NewReader(raw), "Content-Type", "image/gif").want(t, 200)["id"]
	if r := e.call("POST", "/api/send-message/image", e.main, m{"contact_id": ayu, "file": m{"url": id}}); r.StatusCode != 422 {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
}
