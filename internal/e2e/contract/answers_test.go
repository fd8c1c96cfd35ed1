// Package contract_test holds the HTTP API to its contract: every request goes to a whole gateway, and every answer is
// checked against the OpenAPI document.
package contract_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestEveryAnswer holds every endpoint to the rules that all of them share for what they answer.
func TestEveryAnswer(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"request ids":      requestIDs,
		"times":            timesEverywhere,
		"security headers": securityHeaders,
		"references":       referencesToNothing,
		"envelopes":        envelopes,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

func requestIDs(t *testing.T, e *parleytest.Env) {
	own := regexp.MustCompile(`^req_[0-9a-f]{24}$`)
	seen := map[string]bool{}
	for _, path := range []string{"/api/channel/health", "/api/chat/detail", "/api/nowhere", "/livez", "/docs", "/openapi.json",
		"/.well-known/jwks.json", "/none"} {
		id := e.Get(path).Header.Get("X-Request-Id")
		if !own.MatchString(id) || seen[id] {
			t.Errorf("%s: id %q", path, id)
		}
		seen[id] = true
		if got := e.Get(path, parleytest.With("X-Request-Id", "their-own.id:1")).Header.Get("X-Request-Id"); got != "their-own.id:1" {
			t.Errorf("%s: the caller's id became %q", path, got)
		}
	}
	for id, kept := range map[string]bool{
		"x": true, "0123-abc_DEF.ghi:/+=": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, "a\tb": false, `a"b`: false, "é": false, "<script>": false, "a;b": false,
	} {
		got := e.Get("/api/channel/health", parleytest.With("X-Request-Id", id)).Header.Get("X-Request-Id")
		if kept && got != id || !kept && !own.MatchString(got) {
			t.Errorf("the caller's id %q became %q", id, got)
		}
	}
	// The log has it, so that a caller's complaint can be found.
	e.Post(sendText, `{}`, parleytest.With("X-Request-Id", "find-me-4711")).Expect(http.StatusUnprocessableEntity)
	if !e.Log.Contains("request_id=find-me-4711") {
		t.Error("the log does not have the request's id")
	}
}

// timesEverywhere looks at every time in many answers: all are written alike.
func timesEverywhere(t *testing.T, e *parleytest.Env) {
	const number = "6281400000007"
	sent := e.Post(sendText, textTo(number)).Expect(http.StatusOK)
	e.Phone(number).Types("Hi")
	received := e.Phone(number).Received("Hi")
	named := regexp.MustCompile(`(?:^|_)(?:at|timestamp|since|until)$`)
	found := 0
	var look func(request, name string, value any)
	look = func(request, name string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				look(request, name, inner)
			}
		case []any:
			for _, inner := range v {
				look(request, name, inner)
			}
		case string:
			if named.MatchString(name) {
				found++
				if !stampForm.MatchString(v) {
					t.Errorf("%s: %s is %q", request, name, v)
				}
			}
		}
	}
	for _, a := range []*parleytest.Response{
		sent,
		e.Put("/api/send-message/reaction", `{"message_id":"`+received+`","reaction":"👍"}`),
		e.Post("/api/send-message/seen", `{"message_id":"`+received+`"}`),
		e.Delete("/api/send-message/delete?message_id=" + sent.Text("data.message_id")),
		e.Get("/api/chat"), e.Get("/api/chat/detail?contact_id=" + number + "@c.us"), e.Post("/api/chat/archive",
			`{"contact_id":"`+number+`@c.us"}`),
		e.Get("/api/groups"), e.Get("/api/contact"), e.Get("/api/contact/info?contact_id=" + number + "@c.us"), e.Get("/api/channel/health"),
		e.Get("/api/sandbox/phones/" + number + "/messages"), e.Phone(number).Types("Bye"), e.Post("/api/sandbox/clock", `{"advance":1}`),
		e.Get("/api/manage/channels", parleytest.As(e.Admin)), e.Get("/api/manage/tokens", parleytest.As(e.Admin)),
		e.Post("/api/manage/tokens", `{"kind":"global","expires_at":"2999-01-02T03:04:05+07:00"}`, parleytest.As(e.Admin)),
	} {
		if a.Status >= 300 {
			t.Fatalf("%s: %d %s", a.Request, a.Status, a.Body)
		}
		look(a.Request, "", valueAt(a, ""))
	}
	if found < 22 {
		t.Errorf("only %d times were looked at", found)
	}
}

// securityHeaders checks what every answer carries, whatever became of the request.
func securityHeaders(t *testing.T, e *parleytest.Env) {
	admin := parleytest.As(e.Admin)
	for status, a := range map[int]*parleytest.Response{
		200: e.Get("/api/channel/health"),
		201: e.Post("/api/manage/tokens", `{"kind":"global"}`, admin),
		400: e.Post(sendText, `[]`),
		401: e.Get("/api/channel/health", parleytest.As("")),
		403: e.Get("/api/channel/health", admin),
		404: e.Get("/api/nowhere"),
		405: e.Delete("/api/channel/health"),
		413: e.Post(sendText, strings.Repeat(" ", 1<<20+1)),
		422: e.Get("/api/chat/detail"),
	} {
		a.Expect(status)
		wantHeader(t, a, "Cache-Control", "no-store")
		wantHeader(t, a, "X-Content-Type-Options", "nosniff")
		wantHeader(t, a, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		wantHeader(t, a, "Referrer-Policy", "no-referrer")
		wantHeader(t, a, "Content-Type", "application/json")
		wantHeader(t, a, "Server", "")
		wantHeader(t, a, "X-Powered-By", "")
		wantHeader(t, a, "Access-Control-Allow-Origin", "") // no page of another origin may use a token
		wantHeader(t, a, "Set-Cookie", "")
		for header, statuses := range map[string][]int{"WWW-Authenticate": {401, 403}, "Allow": {405}, "Retry-After": {}} {
			if there := a.Header.Get(header) != ""; there != slices.Contains(statuses, status) {
				t.Errorf("%d with %s %q", status, header, a.Header.Get(header))
			}
		}
	}
	wantHeader(t, e.Get("/api/contact"), "Cache-Control", "no-store")
	wantHeader(t, e.Post("/api/send-message/typing", `{"contact_id":"6281400000008@c.us"}`), "X-Content-Type-Options", "nosniff")
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/openapi.json", "/llms.txt", "/docs", "/docs/init.js",
		"/.well-known/jwks.json", "/nowhere"} {
		a := e.Get(path, parleytest.As(""))
		wantHeader(t, a, "X-Content-Type-Options", "nosniff")
		wantHeader(t, a, "Referrer-Policy", "no-referrer")
		wantHeader(t, a, "Server", "")
		if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy,
			"frame-ancestors 'none'") {
			t.Errorf("%s: Content-Security-Policy %q", path, policy)
		}
	}
}

func wantHeader(t *testing.T, a *parleytest.Response, name, want string) {
	t.Helper()
	if got := strings.Join(a.Header.Values(name), "|"); got != want {
		t.Errorf("%s (%d): %s is %q, want %q", a.Request, a.Status, name, got, want)
	}
}

// referencesToNothing checks that an unknown message, and one of another channel, is a wrong field.
func referencesToNothing(t *testing.T, e *parleytest.Env) {
	other := e.CreateChannel("references")
	sent := e.Post(sendText, textTo("6281400000009"), parleytest.As(other)).Expect(http.StatusOK)
	for _, id := range []string{sent.Text("data.message_id"), sent.Text("data.id"), "true_6281400000009@c.us_3EB0000000000000000000",
		"3EB0000000000000000000"} {
		e.Put("/api/send-message/reaction", `{"message_id":"`+id+`","reaction":"👍"}`).ExpectFields("message_id")
		e.Put("/api/send-message/star", `{"message_id":"`+id+`","starred":true}`).ExpectFields("message_id")
		e.Post("/api/send-message/seen", `{"message_id":"`+id+`"}`).ExpectFields("message_id")
		e.Delete("/api/send-message/delete?message_id=" + id).ExpectFields("message_id")
		for _, do := range []string{`"type":"reaction","reaction":"👍"`, `"type":"vote","options":[]`, `"type":"delete"`} {
			e.Post("/api/sandbox/phones/6281400000009/send", `{`+do+`,"message_id":"`+id+`"}`).ExpectFields("message_id")
		}
		e.Post("/api/sandbox/phones/6281400000009/read", `{"message_id":"`+id+`"}`).ExpectFields("message_id")
	}
	for _, id := range []string{sent.Text("data.id"), "3EB0000000000000000000"} {
		e.Post(sendText, `{"contact_id":"6281400000009@c.us","message":"x","reply_to":"`+id+`"}`).ExpectFields("reply_to")
		e.Post("/api/sandbox/phones/6281400000009/send", `{"type":"text","message":"x","reply_to":"`+id+`"}`).ExpectFields("reply_to")
	}
}

// envelopes checks the form of what succeeds.
func envelopes(t *testing.T, e *parleytest.Env) {
	for path, more := range map[string][]string{
		"/api/channel/health": nil, "/api/chat": {"meta"}, "/api/groups": {"meta"}, "/api/contact": {"meta"}, "/api/sandbox/phones": nil,
		"/api/sandbox/cursor":                            nil,
		"/api/chat/detail?contact_id=6281400000010@c.us": {"meta"}, "/api/contact/picture?contact_id=6281400000010@c.us": nil,
		"/api/channel/check-phone-number?phone=6281400000010": nil, "/api/sandbox/phones/6281400000010/messages": {"meta"},
	} {
		a := e.Get(path).Expect(http.StatusOK)
		wantKeys(t, a, "", append([]string{"success", "message", "data"}, more...)...)
		wantValue(t, a, "success", true)
		if a.Text("message") == "" {
			t.Errorf("%s: no message", path)
		}
	}
}
