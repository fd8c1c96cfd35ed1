package api

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
)

// runRequestLog writes the request log until the test ends or the function is called.
func (e *env) runRequestLog() (stop func()) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := e.config.Requests.Run(ctx); err != nil {
			e.t.Error(err)
		}
	})
	for !e.config.Requests.Running() {
		time.Sleep(time.Millisecond)
	}
	stop = func() { cancel(); wg.Wait() }
	e.t.Cleanup(stop)
	return stop
}

// requests returns the request log of a channel as "METHOD path status code", newest first.
func (e *env) requests(code, query string) (lines []string) {
	e.t.Helper()
	reply := e.call("GET", "/api/manage/channels/"+code+"/requests"+query, e.admin, nil)
	reply.want(e.t, 200)
	for _, row := range reply.json["data"].([]any) {
		row := row.(m)
		word, _ := row["code"].(string)
		lines = append(lines, strings.TrimSpace(fmt.Sprint(row["method"], " ", row["path"], " ", row["status"], " ", word)))
	}
	return lines
}

func TestRequestLog(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.RequestsPerSecond = 1000 })
	e.runRequestLog()
	text := m{"contact_id": ayu, "message": "the secret text"}
	e.call("POST", "/api/send-message/text", e.main, text, "Idempotency-Key", "order-1", "X-Request-Id", "find-me").want(t, 200)
	e.call("POST", "/api/send-message/text", e.main, m{"message": 1}).want(t, 422)
	e.call("GET", "/api/messages?text=hidden-query", e.main, nil).want(t, 200)
	e.call("GET", "/api/messages/%00%F0%9F%98%80%22%3Cscript%3E", e.main, nil)
	e.call("GET", "/api/chat", e.main, nil, "X-Channel", "second").want(t, 403)
	e.call("GET", "/api/chat", e.global, nil, "X-Channel", "second").want(t, 200)
	e.call("GET", "/api/chat", "not-a-token", nil).want(t, 401)
	e.call("GET", "/api/manage/channels/main", e.admin, nil).want(t, 200)

	got := e.requests("main", "")
	want := []string{"GET /api/chat 403 forbidden", "GET /api/messages/{message_id} 404 not_found", "GET /api/messages 200",
		"POST /api/send-message/text 422 invalid", "POST /api/send-message/text 200"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("log:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := e.requests("second", ""); len(got) != 1 || got[0] != "GET /api/chat 200" {
		t.Errorf("log of the other channel: %v", got)
	}
	for query, want := range map[string]int{
		"?status=4xx": 3, "?status=403": 1, "?code=invalid": 1, "?path=send-message": 2, "?request_id=find-me": 1, "?idempotency_key=order-1": 1,
		"?method=GET&status=200": 1, "?token=tok_none": 0, "?limit=1": 1,
	} {
		if got := e.requests("main", query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	reply := e.call("GET", "/api/manage/channels/main/requests?request_id=find-me", e.admin, nil)
	row := reply.json["data"].([]any)[0].(m)
	if row["idempotency_key"] != "order-1" || !strings.HasPrefix(row["token"].(string), "tok_") || row["took_ms"].(float64) <= 0 {
		t.Errorf("row: %v", row)
	}
	for _, secret := range []string{"secret text", "hidden-query", e.main} {
		if strings.Contains(e.call("GET", "/api/manage/channels/main/requests", e.admin, nil).text, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

func TestRequestLogRefuses(t *testing.T) {
	e := newEnv(t)
	for _, query := range []string{"status=42", "status=6xx", "status=abc", "status=", "method=get", "method=", "after=-1", "after=x",
		"limit=0", "limit=101", "path=" + strings.Repeat("x", 301), "request_id=", "code="} {
		e.call("GET", "/api/manage/channels/main/requests?"+query, e.admin, nil).want(t, 422)
	}
	e.call("GET", "/api/manage/channels/none/requests", e.admin, nil).want(t, 404)
	e.call("GET", "/api/manage/channels/main/requests", e.main, nil).want(t, 403)
	viewer := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Viewer})
	e.call("GET", "/api/manage/channels/main/requests", viewer, nil).want(t, 200)
}

// TestRequestLogAtStop: what waits when the server stops is written.
func TestRequestLogAtStop(t *testing.T) {
	e := newEnv(t)
	stop := e.runRequestLog()
	e.call("GET", "/api/chat", e.main, nil).want(t, 200)
	stop()
	e.call("GET", "/api/chat", e.main, nil).want(t, 200) // nothing runs: not recorded, and nobody waits
	if got := e.requests("main", ""); len(got) != 1 {
		t.Errorf("log: %v", got)
	}
}
