package product_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestDataOfTheFirstVersion starts on a data directory of the first version and repeats requests made to that version:
// every field of its responses has the same value still.
//
// How testdata/first-version.tar.gz was made: a program started "parley dev" of version 0.1.0 (commit f617f67) and called
// its API. It created two webhooks (one that always fails), a second channel with a retention and a token; sent a text, an
// image, a location, a poll and 300 more texts to 40 contacts; had phones write and read; archived a chat; requested a code
// and a login link. It stored the responses to the requests below and the event log as answers.json, killed the server with
// SIGKILL, and packed both. The key and tokens in it are used by no other server.
func TestDataOfTheFirstVersion(t *testing.T) {
	dir := unpackFixture(t, "testdata/first-version.tar.gz")
	raw, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]any
	if err := json.Unmarshal(raw, &answers); err != nil {
		t.Fatal(err)
	}
	e := parleytest.Start(t, func(c *app.Config) { c.DataDir = app.Dir(filepath.Join(dir, "data")) })
	for question, was := range answers {
		switch question {
		case "events":
			continue
		case "/api/manage/deliveries?limit=100": // the start causes some more, which are newer
			deliveries := was.(map[string]any)
			delete(deliveries, "meta")
			deliveries["data"] = deliveries["data"].([]any)[:50]
		}
		token := e.Token
		if strings.HasPrefix(question, "/api/manage/") {
			token = e.Admin
		}
		var is any
		if err := json.Unmarshal(e.Get(question, parleytest.As(token)).Expect(http.StatusOK).Body, &is); err != nil {
			t.Fatal(err)
		}
		for _, difference := range missing("", was, is) {
			t.Errorf("%s: %s", question, difference)
		}
	}
	events := answers["events"].([]any)
	for i, is := range firstEvents(t, e, len(events)) {
		for _, difference := range missing("", events[i], is) {
			t.Errorf("event %d: %s", i, difference)
		}
	}
	for _, number := range []string{"6281234567890", "99900000007"} {
		expectOnPhone(t, e, number, answers["/api/chat/detail?contact_id="+number+"@c.us&limit=100"])
	}
	e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"and on it goes"}`).Expect(http.StatusOK)
}

// expectOnPhone compares what a simulated phone received with what the channel sent to it, as its chat was answered then.
func expectOnPhone(t *testing.T, e *parleytest.Env, number string, chat any) {
	t.Helper()
	received := map[string]string{}
	for _, m := range e.Phone(number).Messages() {
		received[m.MessageID] = m.Body
	}
	sent := 0
	for _, element := range chat.(map[string]any)["data"].([]any) {
		m := element.(map[string]any)
		if m["from_me"] != "true" {
			continue
		}
		sent++
		body, ok := received[m["message_id"].(string)]
		if shown := m["body"].(string); !ok || body != shown && !strings.Contains(shown, "•") { // a chat hides one-time codes
			t.Errorf("the phone %s has %q (%t), the channel sent %q", number, body, ok, shown)
		}
	}
	if sent == 0 || sent != len(received) {
		t.Errorf("the phone %s has %d messages, the channel sent %d", number, len(received), sent)
	}
}

// firstEvents reads so many events from the beginning of the log.
func firstEvents(t *testing.T, e *parleytest.Env, n int) (all []any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/api/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+e.Global)
	req.Header.Set("Last-Event-ID", "evt_00000000000000000000000000")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); len(all) < n && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var event any
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				t.Fatal(err)
			}
			all = append(all, event)
		}
	}
	if len(all) < n {
		t.Errorf("there are %d events, want %d", len(all), n)
	}
	return all
}

// changing are fields that may have another value: they say how something is now, or are sentences.
var changing = []string{"since", "reason", "last_used_at", "status_since", "up_time", "timestamp", "next_attempt_at", "attempts",
	"failures", "last_attempt_at", "failing_since",
	"user_agent", "last_used_from", "warning", "sent_24h", "failed_24h"}

// missing lists what of an earlier answer is not in a later one.
func missing(at string, was, is any) (all []string) {
	switch was := was.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return []string{at + " is no object"}
		}
		for name, value := range was {
			if !slices.Contains(changing, name) {
				all = append(all, missing(at+"."+name, value, is[name])...)
			}
		}
	case []any:
		is, ok := is.([]any)
		if !ok || len(is) < len(was) {
			return []string{fmt.Sprintf("%s has not %d elements", at, len(was))}
		}
		newer := newerThan(was, is)
		for i := range was {
			all = append(all, missing(fmt.Sprintf("%s.%d", at, i), was[i], is[i+newer])...)
		}
	default:
		if was != is && !isSameDuration(was, is) {
			return []string{fmt.Sprintf("%s is %v, was %v", at, is, was)}
		}
	}
	return all
}

// newerThan is how many elements of a list come before the first one of an earlier list.
func newerThan(was, is []any) int {
	id := func(element any) any {
		object, _ := element.(map[string]any)
		return object["id"]
	}
	if len(was) == 0 || id(was[0]) == nil {
		return 0
	}
	return max(0, slices.IndexFunc(is[:len(is)-len(was)+1], func(element any) bool { return id(element) == id(was[0]) }))
}

// isSameDuration reports whether two texts are the same length of time in two spellings.
func isSameDuration(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	was, err := time.ParseDuration(x)
	is, err2 := time.ParseDuration(y)
	return err == nil && err2 == nil && was == is
}

func unpackFixture(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		data, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
