package api

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/api/limit"
)

// TestOrderOfChecks walks down the order: each request would fail all later checks too.
func TestOrderOfChecks(t *testing.T) {
	e := newEnv(t)
	large := `{"contact_id":"` + strings.Repeat("1", maxBody) + `"}`
	for _, c := range []struct {
		what                string
		method, path, token string
		body                any
		headers             []string
		want                int
	}{
		{"no token, unknown path", "POST", "/api/nowhere", "", large, nil, 401},
		{"no token, unknown method", "PATCH", "/api/send-message/text", "", large, nil, 401},
		{"no token, bare prefix", "GET", "/api", "", nil, nil, 401},
		{"bad token, large body", "POST", "/api/send-message/text", "bad", large, nil, 401},
		{"admin token on a send, large body", "POST", "/api/send-message/text", e.admin, large, nil, 403},
		{"admin token on a send, unknown method", "PATCH", "/api/send-message/text", e.admin, large, nil, 403},
		{"channel token on a Global endpoint", "POST", "/api/send-message/pool", e.main, large, nil, 403},
		{"channel token on management", "GET", "/api/manage/channels", e.main, nil, nil, 403},
		{"Global token on management", "DELETE", "/api/manage/channels/main", e.global, nil, nil, 403},
		{"channel token names another channel", "POST", "/api/send-message/text", e.main, large, []string{"X-Channel", "second"}, 403},
		{"unknown path", "POST", "/api/nowhere", e.main, large, nil, 404},
		{"unknown path, admin", "POST", "/api/nowhere", e.admin, large, nil, 404},
		{"trailing slash", "POST", "/api/send-message/text/", e.main, large, nil, 404},
		{"unclean path", "POST", "/api//send-message/text", e.main, large, nil, 404},
		{"dots in path", "POST", "/api/x/../send-message/text", e.main, large, nil, 404},
		{"unknown method", "PATCH", "/api/send-message/text", e.main, large, nil, 405},
		{"large body of the wrong type, no channel", "POST", "/api/send-message/text", e.global, large, []string{"Content-Type", "text/plain"},
			413},
		{"no channel named", "POST", "/api/send-message/text", e.global, `{"contact_id":1}`, nil, 400},
		{"unknown channel named", "POST", "/api/send-message/text", e.global, `{"contact_id":1}`, []string{"X-Channel", "nobody"}, 400},
		{"wrong content type", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, []string{"Content-Type", "text/plain"}, 400},
		{"no content type", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, []string{"Content-Type", ""}, 400},
		{"compressed body", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, []string{"Content-Encoding", "gzip"}, 400},
		{"no body", "POST", "/api/send-message/text", e.main, nil, nil, 400},
		{"malformed body", "POST", "/api/send-message/text", e.main, `{"contact_id":1`, nil, 400},
		{"bad query", "GET", "/api/chat/detail?contact_id=%zz", e.main, nil, nil, 400},
		{"wrong fields", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, nil, 422},
		{"content type with a parameter", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, []string{"Content-Type",
			"Application/JSON; charset=utf-8"}, 422},
		{"own channel named", "POST", "/api/send-message/text", e.main, `{"contact_id":1}`, []string{"X-Channel", "main"}, 422},
		{"channel named by a Global token", "POST", "/api/send-message/text", e.global, `{"contact_id":1}`, []string{"X-Channel", "main"}, 422},
		{"outside of the API", "GET", "/nowhere", "", nil, nil, 404},
		{"outside of the API, method", "POST", "/livez", "", nil, nil, 405},
	} {
		r := e.call(c.method, c.path, c.token, c.body, c.headers...)
		if r.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", c.what, r.StatusCode, c.want, r.text)
		}
		checkError(t, c.what, r)
	}
}

// checkError checks what every error response must have.
func checkError(t *testing.T, what string, r reply) {
	t.Helper()
	if message, _ := r.json["message"].(string); message == "" {
		t.Errorf("%s: no message: %s", what, r.text)
	}
	checkCode(t, what, r)
	if (r.StatusCode == 422) != (len(r.wrong()) > 0) {
		t.Errorf("%s: %d with errors %v", what, r.StatusCode, r.wrong())
	}
	for header, on := range map[string][]int{"WWW-Authenticate": {401, 403}, "Allow": {405}, "Retry-After": {429, 503}} {
		there := r.Header.Get(header) != ""
		wanted := false
		for _, status := range on {
			wanted = wanted || r.StatusCode == status
		}
		if there != wanted {
			t.Errorf("%s: %d with %s %q", what, r.StatusCode, header, r.Header.Get(header))
		}
	}
	for header, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Content-Type": "application/json",
		"Content-Length": strconv.Itoa(len(r.text)),
	} {
		if got := r.Header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", what, header, got, want)
		}
	}
	if r.Header.Get("X-Request-Id") == "" || r.Header.Get("Server") != "" {
		t.Errorf("%s: headers %v", what, r.Header)
	}
}

func TestEveryFailingFieldIsReported(t *testing.T) {
	e := newEnv(t)
	r := e.call("POST", "/api/send-message/location", e.main, m{
		"contact_id": 5, "latitude": 6.2, "longitude": "200", "title": "", "reply_to": "a b",
	})
	r.want(t, 422)
	for _, field := range []string{"contact_id", "latitude", "longitude", "title", "reply_to"} {
		if sentences, _ := r.wrong()[field].([]any); len(sentences) != 1 {
			t.Errorf("%s: %v", field, sentences)
		}
	}
	if want := `contact_id must be a string, for example "6281234567890@c.us". (and 4 more errors)`; r.json["message"] != want {
		t.Errorf("message %q, want %q", r.json["message"], want)
	}
}

func TestAllowHeader(t *testing.T) {
	e := newEnv(t)
	for path, want := range map[string]string{
		"/api/send-message/text":         "POST",
		"/api/chat/detail":               "GET, HEAD",
		"/api/sandbox/phones":            "GET, HEAD, POST",
		"/api/send-message/delete":       "DELETE",
		"/api/sandbox/phones/62811/send": "POST",
	} {
		if got := e.call("OPTIONS", path, e.main, nil).Header.Get("Allow"); got != want {
			t.Errorf("%s: Allow %q, want %q", path, got, want)
		}
	}
	if r := e.call("HEAD", "/api/channel/health", e.main, nil); r.StatusCode != 200 || r.text != "" {
		t.Errorf("HEAD: %d %q", r.StatusCode, r.text)
	}
}

func TestUnauthorized(t *testing.T) {
	e := newEnv(t)
	const plain, invalid = `Bearer realm="parley"`, `Bearer realm="parley", error="invalid_token"`
	const none, notAToken, notValid = "No token was sent.", "This is not a token.", "This token is not valid on this server:"
	forged := e.main[:strings.LastIndexByte(e.main, '.')+1] + strings.Repeat("A", 86)
	for header, want := range map[string]struct{ challenge, says string }{
		"":                                    {plain, none},
		"Basic dXNlcjpwYXNz":                  {plain, none},
		"Bearer":                              {plain, none},
		e.main:                                {plain, none},
		"Bearer ":                             {plain, none}, // the blank is no part of a header
		"Bearer x":                            {invalid, notAToken},
		"Bearer " + e.main + "x":              {invalid, notAToken},
		"Bearer " + e.main + ", Bearer x":     {invalid, notAToken},
		"Bearer " + strings.Repeat(".", 9000): {invalid, notAToken},
		"Bearer " + forged:                    {invalid, notValid},
	} {
		r := e.call("GET", "/api/channel/health", "", nil, "Authorization", header)
		if message, _ := r.json["message"].(string); r.StatusCode != 401 || !strings.HasPrefix(message, want.says) {
			t.Errorf("%.40q: %d %q", header, r.StatusCode, message)
		}
		if got := r.Header.Get("WWW-Authenticate"); got != want.challenge {
			t.Errorf("%.40q: WWW-Authenticate %q", header, got)
		}
	}
	for _, header := range []string{"bearer " + e.main, "BEARER  " + e.main} {
		if r := e.call("GET", "/api/channel/health", "", nil, "Authorization", header); r.StatusCode != 200 {
			t.Errorf("%.20q: %d", header, r.StatusCode)
		}
	}
	if r := e.call("GET", "/api/channel/health?access_token="+e.main, "", nil); r.StatusCode != 401 {
		t.Errorf("token in the query: %d", r.StatusCode)
	}
}

func TestFailedAuthenticationsAreLimited(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.AuthFailures = 0 })
	ask := func(remote, token string) *httptest.ResponseRecorder {
		hr := httptest.NewRequest("GET", "/api/channel/health", nil)
		hr.RemoteAddr = remote
		hr.Header.Set("Authorization", "Bearer "+token)
		hr.Header.Set("X-Forwarded-For", "203.0.113.9") // of nobody whom we trust
		w := httptest.NewRecorder()
		e.handler.ServeHTTP(w, hr)
		return w
	}
	for i := range 30 {
		if w := ask("192.0.2.1:1000", "bad"); w.Code != 401 {
			t.Fatalf("failure %d: %d", i+1, w.Code)
		}
	}
	w := ask("192.0.2.1:2000", "bad")
	if seconds, _ := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 429 || seconds < 1 || seconds > 60 {
		t.Errorf("31st failure: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if w := ask("192.0.2.1:3000", e.main); w.Code != 200 {
		t.Errorf("a good token from the same address: %d", w.Code)
	}
	if w := ask("192.0.2.2:1000", e.main); w.Code != 200 {
		t.Errorf("a good token from another address: %d", w.Code)
	}
	for i := range 31 { // all of one network of 64 bits
		w = ask(fmt.Sprintf("[2001:db8::%x]:1", i), "bad")
	}
	if w.Code != 429 {
		t.Errorf("31st failure from an IPv6 network: %d", w.Code)
	}
	if w := ask("[2001:db8:0:1::1]:1", "bad"); w.Code != 401 {
		t.Errorf("another IPv6 network: %d", w.Code)
	}
}

func TestForwardedAddress(t *testing.T) {
	s := &server{config: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1:1", "", "192.0.2.1"},
		{"192.0.2.1:1", "203.0.113.9", "192.0.2.1"},
		{"10.0.0.1:1", "203.0.113.9", "203.0.113.9"},
		{"10.0.0.1:1", "1.2.3.4, 203.0.113.9", "203.0.113.9"},
		{"10.0.0.1:1", "203.0.113.9, 10.0.0.2", "203.0.113.9"},
		{"10.0.0.1:1", "nonsense", "10.0.0.1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"[::ffff:10.0.0.1]:1", "203.0.113.9", "203.0.113.9"},
	} {
		hr := httptest.NewRequest("GET", "/", nil)
		hr.RemoteAddr = c.remote
		if c.forwarded != "" {
			hr.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := s.clientAddress(hr).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestOneProxy has a client in the proxy's network, which sends a made-up X-Forwarded-For. The proxy adds the real address.
func TestOneProxy(t *testing.T) {
	s := &server{config: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, OneProxy: true}}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"10.0.0.1:1", "203.0.113.66, 10.9.8.7", "10.9.8.7"},
		{"10.0.0.1:1", "10.9.8.7", "10.9.8.7"},
		{"10.0.0.1:1", "203.0.113.66, nonsense", "10.0.0.1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"192.0.2.1:1", "203.0.113.9", "192.0.2.1"},
	} {
		hr := httptest.NewRequest("GET", "/", nil)
		hr.RemoteAddr = c.remote
		hr.Header.Set("X-Forwarded-For", c.forwarded)
		if got := s.clientAddress(hr).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestTokenLimit(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.RequestsPerSecond = 0.001 }) // and so one at once
	if r := e.call("GET", "/api/channel/health", e.main, nil); r.StatusCode != 200 {
		t.Fatal(r.text)
	}
	r := e.call("GET", "/api/channel/health", e.main, nil)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	if r := e.call("GET", "/api/channel/health", e.second, nil); r.StatusCode != 200 {
		t.Errorf("another token: %d", r.StatusCode)
	}
	if r := e.call("GET", "/api/nowhere", e.main, nil); r.StatusCode != 404 {
		t.Errorf("404 comes first: %d", r.StatusCode)
	}
}

func TestRequestID(t *testing.T) {
	e := newEnv(t)
	for id, kept := range map[string]bool{
		"abc-123_x.y:z/+=": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, `a"b`: false, "é": false,
	} {
		got := e.call("GET", "/api/channel/health", e.main, nil, "X-Request-Id", id).Header.Get("X-Request-Id")
		if (got == id) != kept || got == "" {
			t.Errorf("%q became %q", id, got)
		}
	}
	if !strings.Contains(e.logs.String(), `"request_id":"abc-123_x.y:z/+="`) {
		t.Error("the id is not in the log")
	}
}

// TestPanicAndInternalErrors checks that an error of ours shows nothing of itself but in the log.
func TestPanicAndInternalErrors(t *testing.T) {
	e := newEnv(t)
	s := &server{config: e.config, failures: limit.NewBuckets[netip.Addr](time.Second, 30)}
	router := newRouter(s, noMetrics{})
	fail := func(err error) work {
		return work{do: func(context.Context, *request) (response, error) {
			if err == nil {
				panic("secret panic")
			}
			return response{}, err
		}}
	}
	router.add([]row{
		{"GET /api/panic", ofChannel, viewer, "", nothing, fail(nil)},
		{"GET /api/error", ofChannel, viewer, "", nothing, fail(errors.New("secret path /etc/x"))},
		{"GET /api/coded", ofChannel, viewer, "", nothing, fail(parley.Errorf(parley.Internal, "secret sentence"))},
		{"GET /api/down", ofChannel, viewer, "", nothing, fail(&parley.Error{Code: parley.Unavailable, Message: "Try later.",
			Cause: errors.New("secret cause")})},
	})
	e.server.Config.Handler = router
	router.finish()
	for path, want := range map[string]string{
		"/api/panic": "Internal server error", "/api/error": "Internal server error", "/api/coded": "Internal server error",
		"/api/down": "Try later.",
	} {
		r := e.call("GET", path, e.main, nil, "X-Request-Id", "id-of-"+path[5:])
		checkError(t, path, r)
		if r.json["message"] != want || strings.Contains(r.text, "secret") || r.StatusCode < 500 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.text)
		}
		if !strings.Contains(e.logs.String(), "id-of-"+path[5:]) {
			t.Errorf("%s: not in the log", path)
		}
	}
	for _, secret := range []string{"secret panic", "secret path", "secret sentence", "secret cause"} {
		if !strings.Contains(e.logs.String(), secret) {
			t.Errorf("the log does not say %q", secret)
		}
	}
}

// TestLogHoldsNoSecrets sends a message and asks for failures, and searches the log.
func TestLogHoldsNoSecrets(t *testing.T) {
	e := newEnv(t)
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281299998888@c.us", "message": "canary text"}).want(t, 200)
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281299998888", "message": "canary text"}).want(t, 422)
	e.call("GET", "/api/sandbox/phones/6281299998888/messages?contains=canary", e.main, nil)
	e.call("GET", "/api/chat/detail?contact_id=6281299998888@c.us", e.main, nil)
	e.call("GET", "/api/chat/detail?contact_id=6281299998888@c.us", e.main+"x", nil)
	for _, secret := range []string{"canary", "6281299998888", e.main, e.main[len(e.main)-40:]} {
		if strings.Contains(e.logs.String(), secret) {
			t.Errorf("the log holds %.30q", secret)
		}
	}
}

func TestProbes(t *testing.T) {
	e := newEnv(t)
	for path, kind := range map[string]string{
		"/livez": "text/plain; charset=utf-8", "/readyz": "text/plain; charset=utf-8",
		"/metrics": "text/plain", "/.well-known/jwks.json": "application/json", "/openapi.json": "application/json", "/docs": "text/html",
	} {
		r := e.call("GET", path, "", nil)
		if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), kind) || r.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
	}
	if r := e.call("GET", "/metrics", "", nil); !strings.Contains(r.text,
		`parley_http_request_duration_seconds_count{route="GET /livez",status="200"}`) {
		t.Error("the figures have no requests")
	}
}

// TestWhoReadsMetrics asks for the figures from here and from elsewhere, through proxies and under other names.
func TestWhoReadsMetrics(t *testing.T) {
	e := newEnv(t)
	const here, elsewhere = "127.0.0.1:1000", "192.0.2.1:1000"
	viewer := e.token(parley.Token{Kind: parley.AdminToken, Role: parley.Viewer})
	ask := func(remote, host, token string, headers ...string) int {
		return e.getFrom(remote, "http://"+host+"/metrics", token, headers...).Code
	}
	for what, c := range map[string]struct{ got, want int }{
		"here":                          {ask(here, "localhost:7275", ""), 200},
		"here, by address":              {ask("[::1]:1000", "[::1]:7275", ""), 200},
		"another name for this machine": {ask(here, "evil.example", ""), 403},
		"through a proxy":               {ask(here, "localhost:7275", "", "X-Forwarded-For", "192.0.2.1"), 403},
		"through another proxy":         {ask(here, "localhost:7275", "", "Forwarded", "for=192.0.2.1"), 403},
		"elsewhere":                     {ask(elsewhere, "localhost:7275", ""), 403},
		"elsewhere, admin":              {ask(elsewhere, "chat.example.com", e.admin), 200},
		"elsewhere, viewer":             {ask(elsewhere, "chat.example.com", viewer), 200},
		"elsewhere, channel":            {ask(elsewhere, "chat.example.com", e.main), 403},
		"elsewhere, garbage":            {ask(elsewhere, "chat.example.com", "garbage"), 401},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
	e.config.TrustedProxies, e.config.Metrics = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, prometheus.NewRegistry()
	e.handler = New(e.config)
	if got := ask(here, "localhost:7275", ""); got != 403 { // it may be a proxy's, which adds no header
		t.Errorf("here, behind a proxy: %d", got)
	}
	if got := ask(here, "localhost:7275", e.admin); got != 200 {
		t.Errorf("here, behind a proxy, admin: %d", got)
	}
}

// TestPanicTellsNothingOfTheRequest has an endpoint panic with the request in its hands, and with the
// request itself as what it panics with.
func TestPanicTellsNothingOfTheRequest(t *testing.T) {
	e := newEnv(t)
	s := &server{config: e.config, failures: limit.NewBuckets[netip.Addr](time.Second, 30)}
	router := newRouter(s, noMetrics{})
	for path, trouble := range map[string]func(r *request){
		"index":   func(r *request) { _ = r.Text("message", 1, 100)[len(r.Text("message", 1, 100)):][0] },
		"nil":     func(r *request) { var none *request; none.id = r.Text("message", 1, 100) },
		"request": func(r *request) { panic(r) },
		"http":    func(r *request) { panic(*r.http) },
		"form":    func(r *request) { panic(struct{ Contact string }{r.Text("contact_id", 1, 100)}) },
	} {
		router.add([]row{{"POST /api/" + path, ofChannel, viewer, "", body, work{do: func(_ context.Context, r *request) (response, error) {
			trouble(r)
			return response{}, errors.New("it did not panic")
		}}}})
	}
	router.finish()
	e.server.Config.Handler = router
	for _, path := range []string{"index", "nil", "request", "http", "form"} {
		r := e.call("POST", "/api/"+path+"?canary=canary-query", e.main, m{"contact_id": ayu, "message": "canary-text"}, "X-Request-Id",
			"id-of-"+path)
		if r.StatusCode != 500 || r.json["message"] != "Internal server error" || r.json["code"] != "internal" || len(r.json) != 2 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.text)
		}
		if !strings.Contains(e.logs.String(), "id-of-"+path) || !strings.Contains(e.logs.String(), "handle_test.go") {
			t.Errorf("%s: the log does not say where", path)
		}
	}
	if strings.Contains(e.logs.String(), "it did not panic") {
		t.Error("an endpoint did not panic")
	}
	for _, secret := range []string{"canary", "6281234567890", e.main} {
		if at := strings.Index(e.logs.String(), secret); at >= 0 {
			t.Errorf("the log tells %q: …%.300s…", secret, e.logs.String()[max(0, at-150):])
		}
	}
}
