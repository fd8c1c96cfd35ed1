package hostile_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"parley/internal/parleytest"
)

// TestNoTextIsKept sends with an idempotency key on a channel that keeps no text: the key works, and
// the text is nowhere on disk afterwards.
func TestNoTextIsKept(t *testing.T) {
	e := parleytest.Start(t)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"retention":"0s"}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	const secret = "nobody shall find this sentence again"
	send := func() *parleytest.Answer {
		return e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"`+secret+`"}`, parleytest.With("Idempotency-Key", "k")).Expect(http.StatusOK)
	}
	first, second := send(), send()
	if first.Text("data.message") != secret || first.Text("data.status") != "SENT" {
		t.Errorf("the first answer is %s", first.Body)
	}
	if second.Header.Get("Idempotent-Replayed") != "true" || second.Text("data.id") != first.Text("data.id") || second.Text("data.message") != "" {
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
