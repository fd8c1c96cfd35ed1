package hostile_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestNoTextIsKept sends with an idempotency key on a channel that keeps no text: the key works, and
// the text is nowhere on disk afterwards.
func TestNoTextIsKept(t *testing.T) {
	e := parleytest.Start(t)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"retention":"0s"}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	const secret = "nobody shall find this sentence again"
	send := func() *parleytest.Response {
		return e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"`+secret+`"}`, parleytest.With("Idempotency-Key", "k")).
			Expect(http.StatusOK)
	}
	first, second := send(), send()
	if first.Text("data.message") != secret || first.Text("data.status") != "SENT" {
		t.Errorf("the first answer is %s", first.Body)
	}
	if second.Header.Get("Idempotent-Replayed") != "true" || second.Text("data.id") != first.Text("data.id") ||
		second.Text("data.message") != "" {
		t.Errorf("the second answer is %v %s", second.Header, second.Body)
	}
	e.Phone("6281234567890").Expect(secret) // it did arrive, and the sandbox is not ours to empty
	e.Stop()
	for _, file := range []string{e.Data.Database(), e.Data.Database() + "-wal"} {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds the text", file)
		}
	}
}

// TestWhatIsForgottenIsGone lets the time pass after which texts, codes and links are to be forgotten,
// and looks for them in the bytes of every file of the gateway: what a database deletes can stay behind
// in places that it uses no more.
func TestWhatIsForgottenIsGone(t *testing.T) {
	e := parleytest.Start(t)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"retention":"1h"}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	files := parleytest.Files(t)
	const number, other = "6281399003311", "6281399003322"
	gone := []string{"canary-old-text", "canary-old-caption", "canary-old-name.txt", "canary-old-words", "canary-old-app", "canary-old-prompt",
		"canary-old-success", "canary-old-failure", "canary-old-end", "canary-old-callback"}
	to := `{"contact_id":"` + number + `@c.us",`
	for i := range 40 { // more than fits on one page of the database
		e.Post("/api/send-message/text", fmt.Sprintf(`%s"message":"canary-old-text %s %d"}`, to, strings.Repeat("padding ", 50), i),
			parleytest.With("Idempotency-Key", fmt.Sprint(i))).Expect(http.StatusOK)
	}
	e.Post("/api/send-message/image", to+`"caption":"canary-old-caption","file":{"url":"`+files+`/dot.png"}}`).Expect(http.StatusOK)
	e.Post("/api/send-message/file", to+`"file":{"url":"`+files+`/notes.txt","filename":"canary-old-name.txt"}}`).Expect(http.StatusOK)
	e.Phone(number).Types("canary-old-words")
	e.Phone(number).Received("canary-old-words")
	e.Post("/api/otp/code/request", to+`"name":"canary-old-app","expires":60}`).Expect(http.StatusOK)
	link := e.Post("/api/otp/link/request", `{"contact_id":"`+other+`@c.us","expires":60,"name":"canary-old-app",`+
		`"message":{"prompt":"canary-old-prompt ##code##","success":"canary-old-success","failed":"canary-old-failure",`+
		`"expired":"canary-old-end"},`+
		`"callback":{"success":"`+files+`/?key=canary-old-callback","failed":"`+files+`/?key=canary-old-callback"}}`).Expect(http.StatusOK).
		Text("data.id")
	for _, text := range gone {
		if len(kept(t, e, text)) == 0 {
			t.Errorf("%s is in no file to begin with", text)
		}
	}

	e.Post("/api/sandbox/clock", `{"advance":61}`).Expect(http.StatusOK)
	e.Eventually("the link expired", func() bool {
		return e.Get("/api/otp/link/"+link).Text("data.status") == "EXPIRED"
	})
	e.Post("/api/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, 26*60*60)).Expect(http.StatusOK)
	e.Restart() // a gateway that starts cleans up first
	e.Eventually("the link is forgotten", func() bool { return e.Get("/api/otp/link/"+link).Status == http.StatusNotFound })
	e.Eventually("the texts are erased", func() bool {
		return !strings.Contains(string(e.Get("/api/chat/detail?limit=100&contact_id="+number+"@c.us").Expect(http.StatusOK).Body), "canary-old")
	})
	fresh := e.Post("/api/send-message/text", to+`"message":"canary-fresh"}`).Expect(http.StatusOK)
	e.Stop()
	for _, text := range gone {
		for _, file := range kept(t, e, text) {
			t.Errorf("%s is still in %s", text, file)
		}
	}
	if len(kept(t, e, "canary-fresh")) == 0 {
		t.Errorf("what was sent last is gone too: %s", fresh.Body)
	}
}

// kept lists the files of the gateway that hold a text. The sandbox network's own record is not the
// gateway's to empty.
func kept(t *testing.T, e *parleytest.Env, text string) (files []string) {
	t.Helper()
	for _, file := range holding(t, string(e.Data), text) {
		if !strings.HasPrefix(file, "sandbox.") {
			files = append(files, file)
		}
	}
	return files
}
