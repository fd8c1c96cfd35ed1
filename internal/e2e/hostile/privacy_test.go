package hostile_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// What a canary may be found in besides the request and its answer.
type allowance int

const (
	nowhere  allowance = iota // not even in the data directory
	inData                    // it is what the gateway is there to keep
	inDevEnv                  // only in the file that a development server writes for its user
)

// canaries are values that occur nowhere else, by what they are.
type canaries map[string]struct {
	value string
	may   allowance
}

// TestNothingPrivateLeaks has everything happen with values that are easy to find again, and then
// looks for them where they must not be: in the log at its most talkative, in the figures, and, for
// what is not to be kept, in every file.
func TestNothingPrivateLeaks(t *testing.T) {
	e := parleytest.Start(t)
	made := e.CreateToken("channel", "demo")
	revoked := e.Post("/api/manage/tokens", `{"kind":"global","name":"gone"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	e.Delete("/api/manage/tokens/"+revoked.Text("data.id"), parleytest.As(e.Admin)).Expect(http.StatusOK)
	secrets := canaries{
		"the channel token": {e.Token, inDevEnv}, "the global token": {e.Global, inDevEnv}, "the admin token": {e.Admin, inDevEnv},
		"a new token": {made, nowhere}, "a revoked token": {revoked.Text("data.token"), nowhere},
		"a forged token": {"eyJhbGciOiJub25lIn0.canaryclaims.canarysig", nowhere},
		"a text":         {"canary-text-7f3a", inData}, "a caption": {"canary-caption-91bc", inData}, "a title": {"canary-title-55de", inData},
		"an option":         {"canary-option-08aa", inData},
		"what a phone says": {"canary-inbound-c01d", inData}, "a refused text": {"canary-refused-ee17", nowhere},
		"a broken body": {"canary-broken-3d3d", nowhere},
		"a number":      {"6281377001144", inData}, "another number": {"6281377001155", inData}, "a refused number": {"62813770011@66", nowhere},
		"a number looked up": {"6281377001177", inData},
		"a key":              {"canary-key-4b4b", inData}, "a refusal's reason": {"canary-reason-d00d", inData},
		"a file's name": {"canary-file-a0a0.txt", inData}, "a query": {"canary-query-b1b1", nowhere},
		"a group": {"canary-group-f2f2", inData}, "a name": {"canary-name-6a6a", inData},
	}
	runScenario(t, e, secrets)

	metrics := string(e.Get("/metrics", parleytest.As("")).Expect(http.StatusOK).Body)
	for what, canary := range secrets {
		for place, text := range map[string]string{"the log": e.Log.String(), "the figures": metrics} {
			if at := strings.Index(text, canary.value); at >= 0 {
				t.Errorf("%s is in %s: …%.200s…", what, place, text[max(0, at-100):])
			}
		}
	}
	e.Stop() // writes everything back
	for what, canary := range secrets {
		if canary.may == inData {
			continue
		}
		for _, file := range holding(t, string(e.Data), canary.value) {
			if canary.may != inDevEnv || file != filepath.Base(e.Data.DevEnv()) {
				t.Errorf("%s is in the file %s", what, file)
			}
		}
	}
	if found := holding(t, string(e.Data), secrets["a text"].value); len(found) == 0 {
		t.Error("the text is in no file: the search does not work")
	}
	if lines := strings.Count(e.Log.String(), "level=DEBUG"); lines < 20 {
		t.Errorf("only %d lines were logged at debug: the scenario did not run", lines)
	}
}

// runScenario uses every value in all the ways that callers, phones and mistakes do.
func runScenario(t *testing.T, e *parleytest.Env, secrets canaries) {
	t.Helper()
	v := func(what string) string { return secrets[what].value }
	files := parleytest.Files(t)
	to := `{"contact_id":"` + v("a number") + `@c.us",`
	k := parleytest.With("Idempotency-Key", v("a key"))
	const send = "/api/send-message/"

	// All goes well.
	text := e.Post(send+"text", to+`"message":"`+v("a text")+`"}`, k).Expect(http.StatusOK)
	e.Post(send+"text", to+`"message":"`+v("a text")+`"}`, k).Expect(http.StatusOK)
	e.Post(send+"image", to+`"caption":"`+v("a caption")+`","file":{"url":"`+files+`/dot.png"}}`).Expect(http.StatusOK)
	e.Post(send+"file", to+`"file":{"url":"`+files+`/notes.txt","filename":"`+v("a file's name")+`"}}`).Expect(http.StatusOK)
	e.Post(send+"voice", to+`"audioUrl":"`+files+`/hello.ogg"}`).Expect(http.StatusOK)
	e.Post(send+"video", to+`"caption":"`+v("a caption")+`","videoUrl":"`+files+`/film.mp4"}`).Expect(http.StatusOK)
	e.Post(send+"location", to+`"latitude":"1","longitude":"2","title":"`+v("a title")+`"}`).Expect(http.StatusOK)
	e.Post(send+"poll", to+`"title":"`+v("a title")+`","options":["`+v("an option")+`","b"]}`).Expect(http.StatusOK)
	e.Post(send+"pool", to+`"pools":[{"type":"text","data":["`+v("a text")+`"]}]}`, parleytest.As(e.Global), k).Expect(http.StatusOK)
	e.Post(send+"typing", to+`"x":1}`).Expect(http.StatusOK)
	phone := e.Phone(v("a number"))
	phone.Becomes(`{"name":"` + v("a name") + `"}`)
	phone.Types(v("what a phone says"))
	theirs := phone.Received(v("what a phone says"))
	phone.Sends(`{"type":"image","caption":"` + v("what a phone says") + `","file":{"url":"` + files + `/dot.png"}}`)
	phone.Reads()
	e.Put(send+"reaction", `{"message_id":"`+theirs+`","reaction":"👍"}`).Expect(http.StatusOK)
	e.Post(send+"seen", `{"message_id":"`+theirs+`"}`).Expect(http.StatusOK)
	e.Delete(send + "delete?message_id=" + text.Text("data.message_id")).Expect(http.StatusOK)
	e.Post("/api/chat/archive", to+`"x":1}`).Expect(http.StatusOK)
	e.Post("/api/groups/create", `{"name":"`+v("a group")+`","participants":[{"id":"`+v("a number")+`@c.us"}]}`).Expect(http.StatusOK)
	for _, path := range []string{"/api/chat", "/api/contact", "/api/groups", "/api/chat/detail?contact_id=" + v("a number") + "@c.us",
		"/api/contact/info?contact_id=" + v("another number") + "@c.us",
		"/api/channel/check-phone-number?phone=" + v("a number looked up"), "/api/sandbox/phones/" + v("a number") +
			"/messages?contains=canary"} {
		e.Get(path).Expect(http.StatusOK)
	}
	e.Get("/api/sandbox/phones/" + v("another number") + "/messages?wait=1&contains=" + v("a query")).Expect(http.StatusNotFound)

	// Callers make mistakes.
	e.Post(send+"text", `{"contact_id":"`+v("a refused number")+`","message":"`+v("a refused text")+`"}`).ExpectFields("contact_id")
	e.Post(send+"text", to+`"message":"`+v("a refused text")+`","reply_to":"`+v("a refused text")+`"}`).ExpectFields("reply_to")
	e.Post(send+"text", to+`"message":"`+v("a broken body")).Expect(http.StatusBadRequest)
	e.Post(send+"text", `["`+v("a broken body")+`"]`).Expect(http.StatusBadRequest)
	e.Post(send+"text", `{"`+v("a broken body")+`":1,"`+v("a broken body")+`":2}`).Expect(http.StatusBadRequest)
	e.Post(send+"text", to+`"message":"`+v("a refused text")+`"}`, k).ExpectFields("Idempotency-Key")
	e.Post(send+"image", to+`"caption":"`+v("a refused text")+`","file":{"url":"http://10.0.0.1/`+v("a query")+`"}}`).ExpectFields("file.url")
	e.Post(send+"image", to+`"file":{"url":"`+files+`/`+v("a query")+`"}}`).ExpectFields("file.url")
	e.Get("/api/chat/detail?limit="+v("a query")).ExpectFields("contact_id", "limit")
	e.Get("/api/" + v("a query")).Expect(http.StatusNotFound)
	e.Get("/api/chat", parleytest.As(v("a forged token"))).Expect(http.StatusUnauthorized)
	e.Get("/api/chat", parleytest.As(v("a revoked token"))).Expect(http.StatusUnauthorized)
	e.Get("/api/chat", parleytest.As(v("a new token"))).Expect(http.StatusOK)
	e.Get("/api/chat?token="+v("a new token"), parleytest.As("")).Expect(http.StatusUnauthorized)
	e.Get("/api/manage/tokens", parleytest.As(v("a new token"))).Expect(http.StatusForbidden)
	e.Get("/api/sandbox/phones/"+v("a query")+"/messages", parleytest.With("X-Request-Id", v("a broken body")+" not sane"))

	// The network makes trouble.
	for _, fault := range []string{"refuse", "twice", "reachout_limit", "drop_socket", "log_out"} {
		e.Post("/api/sandbox/faults", fmt.Sprintf(`{"fault":%q,"reason":%q,"to":%q}`, fault, v("a refusal's reason"), v("another number"))).
			Expect(http.StatusOK)
		e.Post(send+"text", `{"contact_id":"`+v("another number")+`@c.us","message":"`+v("a text")+`"}`, parleytest.With("Prefer", "wait=3")).
			Expect(http.StatusOK)
	}
	e.Post("/api/manage/channels/demo/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Phone(v("another number")).Expect(v("a text"))
	e.Post("/api/send-message/text", `{"contact_id":"99912345670@c.us","message":"`+v("a text")+`"}`).Expect(http.StatusOK)
	e.Post("/api/manage/channels/demo/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post(send+"text", to+`"message":"`+v("a refused text")+`"}`).Expect(http.StatusBadRequest)
	e.Restart()
}

// holding lists the files under a directory that hold a text.
func holding(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			name, _ := filepath.Rel(dir, path)
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}
