package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/callback"
	"parley/internal/client"
)

const listenSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// madeUp is an event of a contact.
func madeUp(t *testing.T, n int, contact string) streamEvent {
	t.Helper()
	e, err := newStreamEvent(fmt.Appendf(nil, `{"id":"evt_%026d","seq":%d,"type":"message.received","channel":"demo",`+
		`"timestamp":"2026-11-15T08:30:00.000Z","data":{"contact_id":"%s","message_id":"m%d"}}`, n, n, contact, n))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pretend answers requests without a network, so that time can be pretended too.
type pretend func(*http.Request) (*http.Response, error)

func (p pretend) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

func respond(status int) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}
}

// newPretended makes a forwarder to a scripted server, and lists its output.
func newPretended(server pretend) (*forwarder, func() []string) {
	var mu sync.Mutex
	var lines []string
	f := newForwarder("http://localhost:3000/hook", callback.Keys{Secret: listenSecret}, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	})
	f.client.Transport = server
	return f, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

func TestForwardedEventsAreSigned(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	var said string
	f := newForwarder(server.URL+"/hook", callback.Keys{Secret: listenSecret}, func(line string) { said = line })
	e := madeUp(t, 1, "6281234567890@c.us")
	if err := f.forward(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	f.running.Wait()
	if got.Method != "POST" || got.URL.Path != "/hook" || got.Header.Get("Content-Type") != "application/json" || !bytes.Equal(body, e.body) {
		t.Errorf("got %s %s of type %s: %s", got.Method, got.URL, got.Header.Get("Content-Type"), body)
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(listenSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", got.Header.Get("webhook-id"), got.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.Header.Get("webhook-signature") != want ||
		got.Header.Get("webhook-id") != string(e.ID) {
		t.Errorf("the headers are %v, want the signature %s", got.Header, want)
	}
	if !strings.Contains(said, "<-- 200  POST "+server.URL+"/hook") {
		t.Errorf("it said %q", said)
	}
}

// TestForwardRetries has a server fail, take its time, send away and at last take an event, while
// others of the same chat wait and those of another chat do not.
func TestForwardRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var arrivals []string
		answers := map[string][]int{madeUpID(1): {500, 302, 0, 200}}
		f, said := newPretended(func(r *http.Request) (*http.Response, error) {
			id := r.Header.Get("webhook-id")
			mu.Lock()
			arrivals = append(arrivals, fmt.Sprintf("%s after %s", strings.TrimLeft(id, "evt_0"), time.Since(began)))
			next := http.StatusOK
			if left := answers[id]; len(left) > 0 {
				next, answers[id] = left[0], left[1:]
			}
			mu.Unlock()
			if next == 0 { // it never answers
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return respond(next), nil
		})
		for _, e := range []streamEvent{madeUp(t, 1, "a@c.us"), madeUp(t, 2, "a@c.us"), madeUp(t, 3, "b@c.us")} {
			if err := f.forward(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		f.running.Wait()
		want := []string{"1 after 0s", "3 after 0s", "1 after 5s", "1 after 5m5s", "1 after 35m15s", "2 after 35m15s"}
		if !slices.Equal(arrivals, want) {
			t.Errorf("arrivals:\n got %q\nwant %q", arrivals, want)
		}
		lines := strings.Join(said(), "\n")
		for _, part := range []string{"<-- 500  POST", "retry in 5 s", "<-- 302  POST", "retry in 5 min", "timeout after 10 s",
			"retry in 30 min"} {
			if !strings.Contains(lines, part) {
				t.Errorf("%q was not said:\n%s", part, lines)
			}
		}
	})
}

func madeUpID(n int) string { return fmt.Sprintf("evt_%026d", n) }

func TestForwardGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f, said := newPretended(func(*http.Request) (*http.Response, error) {
			tries++
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		})
		f.forward(t.Context(), madeUp(t, 1, "a@c.us"))
		f.running.Wait()
		if lines := said(); tries != 4 || len(lines) != 4 || !strings.Contains(lines[3], "connection refused") || !strings.Contains(lines[3],
			"given up: "+madeUpID(1)) {
			t.Errorf("%d tries, and it said %q", tries, lines)
		}
	})
}

// TestForwardEndsWithContext makes sure that Ctrl-C does not wait for a server or a retry.
func TestForwardEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newPretended(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("webhook-id") == madeUpID(1) {
				return respond(500), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		f.forward(ctx, madeUp(t, 1, "a@c.us"))
		f.forward(ctx, madeUp(t, 2, "b@c.us"))
		synctest.Wait()
		began := time.Now()
		cancel()
		f.running.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s to end", took)
		}
	})
}

func TestForwardAddress(t *testing.T) {
	for given, want := range map[string]string{
		"localhost:3000/hook":      "http://localhost:3000/hook",
		"https://example.com/a?b":  "https://example.com/a?b",
		"127.0.0.1:80":             "http://127.0.0.1:80",
		"ftp://localhost":          "",
		"http://":                  "",
		"http://localhost:99:99/x": "",
	} {
		got, err := forwardAddress(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q became %q, %v; want %q", given, got, err, want)
		}
	}
}

// TestStreamReconnects has a server break off, refuse for a while and go on: the last id is sent along.
func TestStreamReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := []string{}
		written := func(ids ...int) string {
			text := ": events follow\n\nretry: 2000\nid: evt_begin\n\n"
			for _, n := range ids {
				text += fmt.Sprintf("id: %s\nevent: message.received\ndata: %s\n\n", madeUpID(n), madeUp(t, n, "a@c.us").body)
			}
			return text
		}
		answers := []*http.Response{
			{StatusCode: 200, Body: io.NopCloser(strings.NewReader(written()))},
			{StatusCode: 503, Body: io.NopCloser(strings.NewReader(`{"message":"draining"}`))},
			{StatusCode: 200, Body: io.NopCloser(strings.NewReader(written(1, 2) + "id: evt_half\ndata: {"))},
			{StatusCode: 200, Body: io.NopCloser(strings.NewReader(written(3)))},
			{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"message":"A valid token is needed"}`))},
		}
		cl := &client.Client{Base: "http://parley", Token: "t", HTTP: &http.Client{}}
		cl.HTTP.Transport = pretend(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Header.Get("Last-Event-ID"))
			next := answers[0]
			answers = answers[1:]
			return next, nil
		})
		c := &cli{err: io.Discard, set: &settings{values: map[string]settingValue{keyURL: {text: "http://parley"}}}}
		var got []string
		e := &stream{cli: c, client: cl}
		err := e.follow(t.Context(), func(h streamEvent) error { got = append(got, string(h.ID)); return nil })
		if toExitCode(err) != exitNotAllowed {
			t.Errorf("it ended with %v", err)
		}
		if want := []string{madeUpID(1), madeUpID(2), madeUpID(3)}; !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		if want := []string{"", "evt_begin", "evt_begin", madeUpID(2), madeUpID(3)}; !slices.Equal(asked, want) {
			t.Errorf("asked to go on after %q, want %q", asked, want)
		}
	})
}

// TestStreamTimeout has a connection die without a word.
func TestStreamTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		cl := &client.Client{Base: "http://parley", Token: "t", HTTP: &http.Client{}}
		cl.HTTP.Transport = pretend(func(r *http.Request) (*http.Response, error) {
			if calls++; calls > 1 {
				return &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"message":"no"}`))}, nil
			}
			in, out := io.Pipe()
			context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Body: in}, nil
		})
		c := &cli{err: io.Discard, set: &settings{values: map[string]settingValue{keyURL: {text: "http://parley"}}}}
		began := time.Now()
		err := (&stream{cli: c, client: cl}).follow(t.Context(), func(streamEvent) error { return nil })
		if took := time.Since(began); toExitCode(err) != exitNotAllowed || took != streamTimeout+reconnectDelay {
			t.Errorf("it ended with %v after %s", err, took)
		}
	})
}

func TestSummaries(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"message.received","channel":"demo","data":{"contact_id":"6281234567890@c.us","message_id":"m","from_me":"false",` +
			`"body":"the text"}}`: "+62 812-3456-7890 → demo",
		`{"type":"message.status","channel":"demo","data":{"contact_id":"6281234567890@c.us","message_id":"m","from_me":"true","outgoing":true,` +
			`"status":"READ"}}`: "READ  demo → +62 812-3456-7890",
		`{"type":"message.reaction","channel":"demo","data":{"contact_id":"6281234567890@c.us","from_me":"true","outgoing":true,` +
			`"reaction":{"emoji":"👍"}}}`: "+62 812-3456-7890 → demo  👍",
		`{"type":"poll.vote","channel":"demo","data":{"contact_id":"6281234567890@c.us","from_me":"true","outgoing":true,` +
			`"vote":{"options":["now\u001b[2J","later"]}}}`: "+62 812-3456-7890 → demo  now [2J, later",
		`{"type":"channel.status","channel":"demo","data":{"status":"RECONNECTING","was":"WORKING",` +
			`"reason":"the socket was closed"}}`: "demo RECONNECTING, was WORKING  the socket was closed",
		`{"type":"otp.failed","channel":"demo","data":{"id":"otp_1","contact_id":"6281234567890@c.us",` +
			`"reason":"locked"}}`: "otp_1 +62 812-3456-7890 locked",
	} {
		e, err := newStreamEvent([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.summary(); got != want {
			t.Errorf("%s\n got %q\nwant %q", body, got, want)
		}
	}
}
