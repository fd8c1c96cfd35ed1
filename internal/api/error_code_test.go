package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/network"
)

// wantCode checks an error in the form of all errors, with a code that goes with its status.
func wantCode(t *testing.T, what string, r reply, want parley.Code) {
	t.Helper()
	if r.json["code"] != want.String() || r.StatusCode != statuses[want] {
		t.Errorf("%s: %d, want %d %s: %s", what, r.StatusCode, statuses[want], want, r.text)
	}
	checkCode(t, what, r)
}

// checkCode checks that the code of an error has the status of the response.
func checkCode(t *testing.T, what string, r reply) {
	t.Helper()
	for code, status := range statuses {
		if r.json["code"] == code.String() && r.StatusCode == status {
			return
		}
	}
	t.Errorf("%s: the code %v does not belong to the status %d: %s", what, r.json["code"], r.StatusCode, r.text)
}

// TestErrorCodesOfAllRoutes makes every route fail in all the ways that the checks before its work know.
func TestErrorCodesOfAllRoutes(t *testing.T) {
	e := newEnv(t)
	expired := e.token(parley.Token{Kind: parley.GlobalToken, ExpiresAt: time.Now().Add(2 * time.Second)})
	must(e.config.Gateway.StopChannel(t.Context(), "second"))(t)
	for e.call("GET", "/api/channel/health", expired, nil, "X-Channel", "main").StatusCode == http.StatusOK {
		time.Sleep(50 * time.Millisecond)
	}
	large := `{"x":"` + strings.Repeat("1", maxBody) + `"}`

	m := newRouter(&server{}, prometheus.NewRegistry())
	m.add(tokenRoutes(m.server))
	m.add(publicRoutes(m.server))
	delete(m.paths, "/mcp") // the errors of that protocol have its own form
	for path, p := range m.paths {
		for method, handler := range p.by {
			rt, ok := handler.(*route)
			if !ok {
				continue // a page or a file
			}
			where := strings.NewReplacer("{code}", "nobody", "{id}", "nobody", "{number}", "6281234567890", "{message_id}", "none").Replace(path)
			call := func(token string, body any) reply { return e.call(method, where, token, body) }
			name := method + " " + path
			good, wrongKind := e.main, e.admin
			switch rt.access {
			case ofAdmin:
				good, wrongKind = e.admin, e.main
			case ofGlobal:
				good, wrongKind = e.global, e.main
			}
			if rt.access != public {
				wantCode(t, name+" without a token", call("", nil), parley.Unauthenticated)
				wantCode(t, name+" with nonsense", call("x", nil), parley.Unauthenticated)
				wantCode(t, name+" with an expired token", call(expired, nil), parley.TokenExpired)
				wantCode(t, name+" with a token of another kind", call(wrongKind, nil), parley.Forbidden)
			}
			if rt.input == body {
				wantCode(t, name+" without a body", call(good, nil), parley.BadRequest)
				wantCode(t, name+" with half a body", call(good, `{"a":`), parley.BadRequest)
				wantCode(t, name+" with a large body", call(good, large), parley.TooLarge)
				if r := call(good, `{}`); r.StatusCode >= 400 {
					checkCode(t, name+" without fields", r)
				}
			}
			if rt.access == ofChannel && strings.HasPrefix(path, "/api/send-message/") && rt.input == body {
				wantCode(t, name+" on a stopped channel",
					call(e.second, `{"contact_id":"`+ayu+`","message":"x","message_id":"x"}`), parley.ChannelNotReady)
			}
		}
		wantCode(t, "another method on "+path, e.call("PROPFIND", strings.ReplaceAll(path, "/{$}", "/"), tokenFor(e, p.access), nil),
			parley.MethodNotAllowed)
	}
	for _, path := range []string{"/api", "/api/", "/api/nowhere", "/api//chat", "/nowhere", "/phone/abc", "/docs/nothing.js"} {
		wantCode(t, path, e.call("GET", path, e.main, nil), parley.NotFound)
	}
}

func tokenFor(e *env, who access) string {
	switch who {
	case public:
		return ""
	case ofAdmin:
		return e.admin
	case ofGlobal:
		return e.global
	}
	return e.main
}

// TestErrorCodes checks the codes of errors that the routes do not make by themselves.
func TestErrorCodes(t *testing.T) {
	for err, want := range map[error]parley.Code{
		errors.New("secret"):                                   parley.Internal,
		&panicError{value: "x"}:                                parley.Internal,
		parley.ErrNotFound:                                     parley.Internal, // of the store: the endpoint should have handled it
		network.ErrUnsupported:                                 parley.NotSupported,
		network.NotConnected(nil):                              parley.Unavailable,
		network.OutcomeUnknown(nil):                            parley.Unavailable,
		network.Refuse(parley.Refused, "The network refused."): parley.BadRequest,
		fmt.Errorf("write: %w", syscall.ENOSPC):                parley.Unavailable,
		context.Canceled:                                       parley.Unavailable,
		methodNotAllowed("GET"):                                parley.MethodNotAllowed,
		errMoving:                                              parley.Unavailable,
		parley.InvalidField("a", "a is wrong."):                parley.Invalid,
	} {
		a := refusal(err)
		var body struct{ Message, Code string }
		if e := json.Unmarshal(a.body, &body); e != nil || body.Code != want.String() || a.status != statuses[want] || body.Message == "" {
			t.Errorf("%v: %d %s, want %s", err, a.status, a.body, want)
		}
	}
	stopped := parley.Channel{State: parley.ChannelState{Status: parley.ChannelStopped}}
	if got := parley.ToCode(stopped.Usable()); got != parley.ChannelNotReady {
		t.Errorf("a stopped channel: %s", got)
	}
	if !parley.IsUnauthenticated(parley.Errorf(parley.TokenExpired, "x")) || parley.IsUnauthenticated(errors.New("x")) {
		t.Error("expired credentials are wrongly classed")
	}
}

// TestErrorCodesOfLimits: a full queue and too many requests have different codes.
func TestErrorCodesOfLimits(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.RequestsPerSecond = 0.001 })
	var r reply
	for range 5 {
		r = e.call("GET", "/api/channel/health", e.main, nil)
	}
	wantCode(t, "too many requests", r, parley.TooMany)
	full := fullQueue(&parley.Error{Code: parley.QueueFull, Message: "Full.", RetryAfter: time.Second})
	if a := refusal(full); a.status != http.StatusTooManyRequests || !strings.Contains(string(a.body), `"code":"queue_full"`) ||
		!slices.ContainsFunc(a.header, func(f field) bool { return f.key == "Retry-After" }) ||
		!slices.ContainsFunc(a.header, func(f field) bool { return f.key == "RateLimit" && strings.Contains(f.value, limitQueue) }) {
		t.Errorf("a full queue: %d %s %v", a.status, a.body, a.header)
	}
}

// TestErrorCodesAreDocumented compares the codes with the OpenAPI document and with docs/api.md.
func TestErrorCodesAreDocumented(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Enum []any }
		}
	}
	if err := json.Unmarshal(OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	enum := doc.Components.Schemas["ErrorCode"].Enum
	for code, status := range statuses {
		if !slices.Contains(enum, any(code.String())) {
			t.Errorf("ErrorCode does not have %s", code)
		}
		for file, row := range map[string]string{
			string(OpenAPI()): fmt.Sprintf("| %d | `%s` |", status, code),
			string(guide):     fmt.Sprintf("| `%s` | %d |", code, status),
		} {
			if !strings.Contains(file, row) {
				t.Errorf("there is no row %q in %.20s", row, file)
			}
		}
	}
	if len(enum) != len(statuses) {
		t.Errorf("%d codes are documented, and there are %d", len(enum), len(statuses))
	}
}
