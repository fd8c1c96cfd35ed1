package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// files is a server with files to send.
func files(t *testing.T) (address string, picture []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 12, 34))); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/dot.png", func(w http.ResponseWriter, _ *http.Request) { w.Write(b.Bytes()) })
	mux.HandleFunc("/notes.txt", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("some notes")) })
	mux.HandleFunc("/fake.mp3", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("no sound at all")) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, b.Bytes()
}

func TestSendImage(t *testing.T) {
	e := newEnv(t)
	address, picture := files(t)
	r := e.call("POST", "/api/send-message/image", e.main, m{"contact_id": ayu, "file": m{"url": address + "/dot.png"}})
	data := r.want(t, 200)
	said := data["message"].(m)
	sum := sha256.Sum256(picture)
	details := said["details"].(m)
	if said["caption"] != "" || said["image"] != address+"/dot.png" || details["mimetype"] != "image/png" ||
		details["width"] != "12" || details["height"] != "34" || details["fileSha256"] != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("response: %s", r.text)
	}
	got := e.call("GET", "/api/sandbox/phones/6281234567890/messages?type=image&wait=10", e.main, nil)
	got.want(t, 200)
	if rows := got.json["data"].([]any); len(rows) != 1 || rows[0].(m)["media"].(m)["size"] != float64(len(picture)) {
		t.Errorf("the phone got %s", got.text)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	e := newEnv(t)
	address, _ := files(t)
	for _, c := range []struct {
		what, path string
		body       m
		fields     []string
	}{
		{"no file", "image", m{}, []string{"file.url"}},
		{"null file", "image", m{"file": nil}, []string{"file.url"}},
		{"file is no object", "image", m{"file": "x"}, []string{"file"}},
		{"no url", "image", m{"file": m{}}, []string{"file.url"}},
		{"url of the wrong type", "image", m{"file": m{"url": 1}}, []string{"file.url"}},
		{"another scheme", "image", m{"file": m{"url": "ftp://example.com/x"}}, []string{"file.url"}},
		{"a password", "image", m{"file": m{"url": "http://a:b@example.com/x"}}, []string{"file.url"}},
		{"too long", "image", m{"file": m{"url": "http://example.com/" + strings.Repeat("x", 2048)}}, []string{"file.url"}},
		{"empty caption, bad type", "image", m{"caption": "", "file": m{"url": "x", "mimeType": "nonsense"}}, []string{"caption", "file.url",
			"file.mimeType"}},
		{"long caption", "image", m{"caption": strings.Repeat("é", 1025), "file": m{"url": address + "/dot.png"}}, []string{"caption"}},
		{"missing file", "image", m{"file": m{"url": address + "/missing.png"}}, []string{"file.url"}},
		{"no image", "image", m{"file": m{"url": address + "/notes.txt"}}, []string{"file.url"}},
		{"no video", "video", m{"file": m{"url": address + "/dot.png"}}, []string{"file.url"}},
		{"no video by its other name", "video", m{"videoUrl": address + "/dot.png"}, []string{"videoUrl"}},
		{"neither", "video", m{}, []string{"file.url"}},
		{"closed port", "file", m{"file": m{"url": "http://127.0.0.1:1/x"}}, []string{"file.url"}},
		{"no sound", "voice", m{"audioUrl": address + "/fake.mp3"}, []string{"audioUrl"}},
		{"another ending", "voice", m{"audioUrl": address + "/notes.txt"}, []string{"audioUrl"}},
		{"no audio at all", "voice", m{}, []string{"audioUrl"}},
		{"private address", "file", m{"file": m{"url": "http://10.0.0.1/x"}}, []string{"file.url"}},
	} {
		c.body["contact_id"] = ayu
		r := e.call("POST", "/api/send-message/"+c.path, e.main, c.body)
		if r.StatusCode != 422 || len(r.wrong()) != len(c.fields) {
			t.Errorf("%s: %d %s", c.what, r.StatusCode, r.text)
		}
		for _, field := range c.fields {
			if r.wrong()[field] == nil {
				t.Errorf("%s: not on %s: %s", c.what, field, r.text)
			}
		}
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestFetchesAreLimited has more files fetched at once than a token may.
func TestFetchesAreLimited(t *testing.T) {
	e := newEnv(t)
	fetching, release := make(chan struct{}, 10), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetching <- struct{}{}
		<-release
		w.Write([]byte("a file"))
	}))
	defer slow.Close()
	body := m{"contact_id": ayu, "file": m{"url": slow.URL + "/x.txt"}}
	var wg sync.WaitGroup
	for range maxFetches {
		wg.Go(func() { e.call("POST", "/api/send-message/file", e.main, body).want(t, 200) })
	}
	for range maxFetches {
		<-fetching
	}
	r := e.call("POST", "/api/send-message/file", e.main, body)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", r.StatusCode, r.text)
	}
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "no file"}).want(t, 200)
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": slow.URL + "/page", "linkPreview": true}).want(t, 200)
	if len(fetching) > 0 {
		t.Error("a preview was fetched beside the files")
	}
	close(release)
	wg.Wait()
	e.call("POST", "/api/send-message/file", e.main, body).want(t, 200)
}

// TestPoolsFetchWithinTheLimit has two pools with many files sent at once: together they fetch no more at once
// than one.
func TestPoolsFetchWithinTheLimit(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	var now, most int
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		if now == maxFetches && most < now {
			close(full)
		}
		most = max(most, now)
		mu.Unlock()
		<-full // so that there are as many at once as may be
		mu.Lock()
		now--
		mu.Unlock()
		w.Write([]byte("a file"))
	}))
	defer server.Close()
	var items []m
	for i := range 8 {
		items = append(items, m{"type": "text", "data": m{"message": fmt.Sprintf("%s/%d", server.URL, i), "linkPreview": true}})
	}
	body := m{"contact_id": ayu, "pools": items}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { e.call("POST", "/api/send-message/pool", e.global, body).want(t, 200) })
	}
	wg.Wait()
	if most != maxFetches {
		t.Errorf("%d were fetched at once", most)
	}
}

func TestUnsentFilesAreRemoved(t *testing.T) {
	e := newEnv(t)
	address, _ := files(t)
	kept := func() (n int) {
		dir := filepath.Dir(t.TempDir())
		filepath.WalkDir(dir, func(path string, entry os.DirEntry, _ error) error {
			if entry != nil && !entry.IsDir() && strings.Contains(path, "/media/") {
				n++
			}
			return nil
		})
		return n
	}
	before := kept()
	pool := m{"contact_id": ayu, "pools": []m{
		{"type": "image", "data": m{"file": m{"url": address + "/dot.png"}}},
		{"type": "image", "data": m{"file": m{"url": address + "/missing.png"}}},
	}}
	r := e.call("POST", "/api/send-message/pool", e.global, pool)
	if r.StatusCode != 422 || r.wrong()["pools.1.data.file.url"] == nil || len(r.wrong()) != 1 {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	if after := kept(); after != before {
		t.Errorf("%d files stayed behind", after-before)
	}
}

func TestPool(t *testing.T) {
	e := newEnv(t)
	address, _ := files(t)
	outcomes := func(r reply) (list []m) {
		t.Helper()
		if err := json.Unmarshal([]byte(r.json["pools"].(string)), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	r := e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": ayu, "pools": []m{
		{"type": "text", "data": m{"message": "one"}},
		{"type": "text", "data": []string{"two", "three"}},
		{"type": "image", "data": []string{address + "/dot.png"}},
		{"type": "file", "data": m{"caption": "notes", "file": m{"url": address + "/notes.txt"}}},
	}}, "X-Channel", "second")
	r.want(t, 200)
	list := outcomes(r)
	if r.json["success"] != true || r.json["message"] != "OK" || len(list) != 5 || list[3]["type"] != "image" || list[4]["status"] != "SENT" {
		t.Errorf("response: %s", r.text)
	}
	got := e.call("GET", "/api/sandbox/phones/6281234567890/messages", e.second, nil)
	var bodies []any
	for _, row := range got.json["data"].([]any) {
		bodies = append(bodies, row.(m)["body"])
	}
	if len(bodies) != 5 || bodies[0] != "one" || bodies[1] != "two" || bodies[2] != "three" {
		t.Errorf("the phone got %v", bodies)
	}

	// After one fails, the later ones are not sent.
	r = e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": "99900000000@c.us",
		"pools": []m{{"type": "text", "data": []string{"a", "b"}}}})
	list = outcomes(r)
	if r.want(t, 200); r.json["success"] != false || r.json["message"] != "Failed to send pool message" ||
		list[0]["status"] != "FAILED" || list[0]["id"] == nil || list[1]["id"] != nil || list[1]["error"].(m)["code"] != "not_sent" {
		t.Errorf("response: %s", r.text)
	}

	// A pinned channel that does not work takes nothing.
	e.call("POST", "/api/manage/channels/second/stop", e.admin, nil).want(t, 200)
	r = e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": ayu, "pools": []m{{"type": "text", "data": []string{"a", "b"}}}},
		"X-Channel", "second")
	list = outcomes(r)
	if r.want(t, 200); r.json["success"] != false || len(list) != 2 || list[0]["id"] != nil || list[0]["status"] != "FAILED" {
		t.Errorf("response: %s", r.text)
	}
}

func TestPoolsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	text := m{"type": "text", "data": m{"message": "x"}}
	ten := m{"type": "text", "data": strings.Split("1234567890", "")}
	repeat := func(item m, n int) (list []m) {
		for range n {
			list = append(list, item)
		}
		return list
	}
	for _, c := range []struct {
		what  string
		pools any
		field string
	}{
		{"none", nil, "pools"},
		{"an object", m{}, "pools"},
		{"empty", []m{}, "pools"},
		{"31 items", repeat(text, 31), "pools"},
		{"110 messages", repeat(ten, 11), "pools"},
		{"an item that is no object", []any{1}, "pools.0"},
		{"no type", []m{{"data": m{"message": "x"}}}, "pools.0.type"},
		{"unknown type", []m{text, {"type": "poll", "data": m{}}}, "pools.1.type"},
		{"no data", []m{{"type": "text"}}, "pools.0.data"},
		{"data is a string", []m{{"type": "text", "data": "x"}}, "pools.0.data"},
		{"no text", []m{{"type": "text", "data": m{}}}, "pools.0.data.message"},
		{"no strings", []m{{"type": "text", "data": []string{}}}, "pools.0.data"},
		{"11 strings", []m{{"type": "text", "data": strings.Split("12345678901", "")}}, "pools.0.data"},
		{"an empty string", []m{{"type": "text", "data": []string{"a", ""}}}, "pools.0.data.1"},
		{"a number", []m{{"type": "text", "data": []any{1}}}, "pools.0.data.0"},
		{"no address", []m{{"type": "file", "data": []string{"hello"}}}, "pools.0.data.0"},
		{"no file", []m{{"type": "image", "data": m{"caption": "x"}}}, "pools.0.data.file.url"},
		{"no voice", []m{{"type": "voice", "data": m{}}}, "pools.0.data.audioUrl"},
		{"unknown reply", []m{{"type": "text", "data": m{"message": "x", "reply_to": "3EB0"}}}, "pools.0.data.reply_to"},
	} {
		r := e.call("POST", "/api/send-message/pool", e.global, m{"contact_id": ayu, "pools": c.pools})
		if r.StatusCode != 422 || len(r.wrong()) != 1 || r.wrong()[c.field] == nil {
			t.Errorf("%s: %d %s", c.what, r.StatusCode, r.text)
		}
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestFetchedBytesAreLimited has files fetched until a token's minute is used up. Then nothing is
// fetched for it any more, and a text goes without a preview.
func TestFetchedBytesAreLimited(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.MediaPerMinute = 1000 })
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.URL.Path == "/page" {
			fmt.Fprintf(w, "<html><head><title>A page</title></head><body>%200s", "")
			return
		}
		w.Write(bytes.Repeat([]byte("x"), 600))
	}))
	defer server.Close()
	send := func(kind, token string) reply {
		return e.call("POST", "/api/send-message/"+kind, token, m{"contact_id": ayu, "file": m{"url": server.URL + "/x.bin"}})
	}
	text := m{"contact_id": ayu, "message": "Look: " + server.URL + "/page"}
	left := func(r reply) string {
		t.Helper()
		if policy := r.Header.Get("RateLimit-Policy"); policy != `"media-fetch";q=1000;w=60;qu="content-bytes"` {
			t.Errorf("policy %s", policy)
		}
		limit := toList(t, r.Header.Get("RateLimit"))[0]
		if seconds, err := strconv.Atoi(limit.params["t"]); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("limit %v", limit)
		}
		return limit.params["r"]
	}

	if r := send("file", e.main); r.StatusCode != 200 || left(r) != "400" {
		t.Fatalf("the first file: %d %v %s", r.StatusCode, r.Header, r.text)
	}
	if r := send("image", e.main); r.StatusCode != 422 || left(r) != "0" { // it is no picture, but it was read
		t.Fatalf("the second file: %d %v %s", r.StatusCode, r.Header, r.text)
	}
	if r := e.call("POST", "/api/send-message/text", e.main, text); r.StatusCode != 200 || left(r) != "0" || hits.Load() != 2 {
		t.Errorf("a text: %d, %d requests, %s", r.StatusCode, hits.Load(), r.text)
	}
	for range 3 {
		r := send("file", e.main)
		if r.StatusCode != 429 || left(r) != "0" || len(r.json) != 2 || hits.Load() != 2 {
			t.Fatalf("beyond the limit: %d, %d requests, %s", r.StatusCode, hits.Load(), r.text)
		}
		if after := r.Header.Get("Retry-After"); !strings.HasSuffix(r.Header.Get("RateLimit"), ";t="+after) {
			t.Errorf("Retry-After is %s, RateLimit %s", after, r.Header.Get("RateLimit"))
		}
	}
	e.call("POST", "/api/send-message/image", e.main, m{"contact_id": ayu}).want(t, 422) // comes first
	pool := m{"contact_id": ayu, "pools": []m{{"type": "file", "data": []string{server.URL + "/a", server.URL + "/b"}}}}
	if r := e.call("POST", "/api/send-message/pool", e.global, pool); r.StatusCode != 200 || left(r) != "0" || hits.Load() != 4 {
		t.Errorf("another token: %d, %d requests, %s", r.StatusCode, hits.Load(), r.text)
	}
	if r := e.call("POST", "/api/send-message/text", e.second, text); r.StatusCode != 200 || hits.Load() != 5 || left(r) == "1000" {
		t.Errorf("a third token: %d, %d requests, %v %s", r.StatusCode, hits.Load(), r.Header, r.text)
	}
	if r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "no link"}); r.Header.Get("RateLimit") != "" {
		t.Errorf("a text without a link shows %s", r.Header.Get("RateLimit"))
	}
}
