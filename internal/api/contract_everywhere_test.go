package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
)

const sendText = "/api/send-message/text"

// textTo is a good body for a text.
func textTo(number string) string { return `{"contact_id":"` + number + `@c.us","message":"Hello"}` }

// TestEverywhere holds every endpoint to the rules that all of them share.
func TestEverywhere(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"bodies":           everyBody,
		"broken bodies":    brokenBodies,
		"content types":    contentTypes,
		"large bodies":     largeBodies,
		"loose fields":     looseFields,
		"strict types":     strictTypes,
		"validation":       validationErrors,
		"unknown paths":    unknownPaths,
		"other methods":    otherMethods,
		"request ids":      requestIDs,
		"times":            timesEverywhere,
		"security headers": securityHeaders,
		"references":       referencesToNothing,
		"envelopes":        envelopes,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

// everyBody sends what is no JSON object to every endpoint that takes a body.
func everyBody(t *testing.T, e *parleytest.Env) {
	tried := 0
	for _, op := range operations(t) {
		if !op.takesBody {
			continue
		}
		tried++
		as := []parleytest.Option{parleytest.As(op.goodToken(e))}
		for _, body := range []string{`[]`, `{"a":1`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":"\u0000"}`} {
			wantOnlyMessage(t, e.Call(op.method, op.filled, body, as...).Expect(http.StatusBadRequest))
		}
		plain := append(as, parleytest.With("Content-Type", "text/plain"))
		e.Call(op.method, op.filled, `{}`, plain...).ExpectError(http.StatusBadRequest, "Content-Type: application/json")
	}
	if tried < 25 {
		t.Errorf("only %d endpoints take a body", tried)
	}
}

// wantOnlyMessage checks the body of every error but a validation error.
func wantOnlyMessage(t *testing.T, a *parleytest.Answer) {
	t.Helper()
	wantKeys(t, a, "", "message")
	if sentence := a.Text("message"); len(strings.Fields(sentence)) < 3 || !strings.HasSuffix(sentence, ".") {
		t.Errorf("%s: the message %q is no sentence", a.Request, sentence)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: Content-Type %q of an error", a.Request, got)
	}
}

func brokenBodies(t *testing.T, e *parleytest.Env) {
	good := textTo("6281400000001")
	deep := strings.Repeat(`{"a":`, 17) + `1` + strings.Repeat(`}`, 17)
	for name, c := range map[string]struct{ body, says string }{
		"an array":                   {`[` + good + `]`, "JSON object"},
		"a string":                   {`"x"`, "JSON object"},
		"a number":                   {`1`, "JSON object"},
		"null":                       {`null`, "JSON object"},
		"true":                       {`true`, "JSON object"},
		"blanks":                     {" \n\t ", "empty"},
		"half an object":             {good[:len(good)-1], "ends before"},
		"half a string":              {`{"contact_id":"6281`, "ends before"},
		"something after it":         {good + `x`, "after the end"},
		"two objects":                {good + good, "after the end"},
		"single quotes":              {`{'contact_id':'x'}`, "not valid JSON"},
		"a comma too many":           {strings.TrimSuffix(good, "}") + ",}", "not valid JSON"},
		"a bare word":                {`{"message":hello}`, "not valid JSON"},
		"NaN":                        {`{"message":NaN}`, "not valid JSON"},
		"a number with zeros":        {`{"message":007}`, "not valid JSON"},
		"a comment":                  {`{/* x */"message":"x"}`, "not valid JSON"},
		"a line break in a string":   {"{\"message\":\"a\nb\"}", "not valid JSON"},
		"a byte order mark":          {"\ufeff" + good, "not valid JSON"},
		"a form":                     {`contact_id=6281400000001@c.us`, "not valid JSON"},
		"bytes that are no UTF-8":    {"{\"message\":\"\xff\xfe\"}", "UTF-8"},
		"no UTF-8 in a name":         {"{\"mess\xc0age\":1}", "UTF-8"},
		"an overlong character":      {"{\"message\":\"\xc0\xaf\"}", "UTF-8"},
		"half a surrogate pair":      {`{"message":"\ud800"}`, "JSON"},
		"UTF-16":                     {"{\x00\"\x00m\x00\"\x00}\x00", ""},
		"a NUL":                      {`{"contact_id":"6281400000001@c.us","message":"a\u0000b"}`, "U+0000"},
		"a NUL in a name":            {`{"mess\u0000age":1}`, "U+0000"},
		"a NUL in an unknown field":  {strings.TrimSuffix(good, "}") + `,"x":{"y":["\u0000"]}}`, "U+0000"},
		"a NUL byte":                 {"{\"message\":\"a\x00b\"}", ""},
		"a key twice":                {strings.TrimSuffix(good, "}") + `,"message":"Hello"}`, "twice"},
		"a key twice, with escapes":  {strings.TrimSuffix(good, "}") + `,"m\u0065ssage":"Hello"}`, "twice"},
		"an unknown key twice":       {strings.TrimSuffix(good, "}") + `,"x":1,"x":1}`, "twice"},
		"a key twice further inside": {strings.TrimSuffix(good, "}") + `,"x":[{"y":1,"y":1}]}`, "twice"},
		"nested too deep":            {deep, "deeper"},
	} {
		a := e.Post(sendText, c.body).Expect(http.StatusBadRequest)
		wantOnlyMessage(t, a)
		if !strings.Contains(a.Text("message"), c.says) {
			t.Errorf("%s: the message is %q, want something of %q", name, a.Text("message"), c.says)
		}
	}
	a := e.Post(sendText, "", parleytest.With("Content-Type", "application/json")).ExpectError(http.StatusBadRequest, "empty")
	wantOnlyMessage(t, a)
	if n := e.Get("/api/chat/detail?contact_id=6281400000001@c.us").Number("meta.total"); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func contentTypes(t *testing.T, e *parleytest.Env) {
	for _, kind := range []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON", "application/json ; v=1; x=\"y\"",
	} {
		e.Post(sendText, textTo("6281400000002"), parleytest.With("Content-Type", kind)).Expect(http.StatusOK)
	}
	for _, kind := range []string{
		"", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp",
		"application/vnd.api+json", "application", "json", "*/*", "text/plain, application/json",
	} {
		a := e.Post(sendText, textTo("6281400000002"), parleytest.With("Content-Type", kind))
		a.ExpectError(http.StatusBadRequest, "Content-Type: application/json")
	}
	e.Post(sendText, textTo("6281400000002"), parleytest.With("Content-Encoding", "gzip")).ExpectError(http.StatusBadRequest, "Content-Encoding")
	if n := e.Get("/api/chat/detail?contact_id=6281400000002@c.us").Number("meta.total"); n != 5 {
		t.Errorf("%d messages were sent, want 5", n)
	}
}

// streamed sends the body in chunks, so that its length is not known beforehand.
func streamed(r *http.Request) { r.ContentLength, r.GetBody = -1, nil }

func largeBodies(t *testing.T, e *parleytest.Env) {
	const most = 1 << 20
	good := textTo("6281400000003")
	padded := func(length int) string {
		return good[:len(good)-1] + strings.Repeat(" ", length-len(good)) + "}"
	}
	e.Post(sendText, padded(most)).Expect(http.StatusOK)
	e.Post(sendText, padded(most), streamed).Expect(http.StatusOK)
	for _, c := range []struct{ method, path, token string }{
		{"POST", sendText, e.Token}, {"PUT", "/api/send-message/reaction", e.Token}, {"DELETE", "/api/send-message/delete?message_id=x", e.Token},
		{"PATCH", "/api/manage/channels/demo", e.Admin}, {"DELETE", "/api/sandbox", e.Token}, {"POST", "/api/send-message/pool", e.Global},
	} {
		for _, option := range []parleytest.Option{func(*http.Request) {}, streamed} {
			a := e.Call(c.method, c.path, padded(most+1), parleytest.As(c.token), option).ExpectError(http.StatusRequestEntityTooLarge, "1 MiB")
			wantOnlyMessage(t, a)
		}
	}
	if n := e.Get("/api/chat/detail?contact_id=6281400000003@c.us").Number("meta.total"); n != 2 {
		t.Errorf("%d messages were sent, want 2", n)
	}
}

// looseFields checks that unknown fields are ignored and that null is the same as leaving out.
func looseFields(t *testing.T, e *parleytest.Env) {
	for _, more := range []string{
		`"colour":"red"`, `"Message":1`, `"message_id":{"deep":[1,2,{"x":null}]}`, `"":0`, `"reply_to":null,"linkPreview":null`, `"contact_id ":"x"`,
	} {
		e.Post(sendText, strings.TrimSuffix(textTo("6281400000004"), "}")+","+more+"}").Expect(http.StatusOK)
	}
	e.Post(sendText, `{"contact_id":null,"message":null}`).ExpectFields("contact_id", "message")
	e.Post("/api/sandbox/phones", `{"number":"6281400000004","name":null,"colour":[]}`).Expect(http.StatusOK)
	e.Post("/api/sandbox/faults", `{"fault":null,"times":null}`).ExpectFields("fault")
}

// strictTypes checks that a value of another type is refused and never converted.
func strictTypes(t *testing.T, e *parleytest.Env) {
	for _, c := range []struct {
		method, path, body, field string // X stands for the value
		right                     string // the only type that is taken, and null where the field is optional
		optional                  bool
	}{
		{"POST", sendText, `{"contact_id":X,"message":"x"}`, "contact_id", "string", false},
		{"POST", sendText, `{"contact_id":"6281400000005@c.us","message":X}`, "message", "string", false},
		{"POST", "/api/chat/archive", `{"contact_id":X}`, "contact_id", "string", false},
		{"POST", "/api/groups/create", `{"name":"x","participants":X}`, "participants", "array", false},
		{"PATCH", "/api/sandbox/phones/6281400000005", `{"online":X}`, "online", "boolean", true},
		{"PATCH", "/api/sandbox/phones/6281400000005", `{"delay_ms":X}`, "delay_ms", "number", true},
		{"PATCH", "/api/sandbox/phones/6281400000005", `{"name":X}`, "name", "string", true},
		{"POST", "/api/sandbox/clock", `{"advance":X}`, "advance", "number", false},
		{"POST", "/api/manage/channels", `{"code":X}`, "code", "string", false},
		{"POST", "/api/manage/channels", `{"code":"typed","settings":X,"network":"none"}`, "settings", "object", true},
	} {
		token := e.Token
		if strings.HasPrefix(c.path, "/api/manage") {
			token = e.Admin
		}
		for kind, value := range map[string]string{
			"string": `"1"`, "number": `1`, "boolean": `true`, "array": `["1"]`, "object": `{"a":1}`, "null": `null`,
		} {
			if kind == c.right || kind == "null" && c.optional {
				continue
			}
			a := e.Call(c.method, c.path, strings.Replace(c.body, "X", value, 1), parleytest.As(token)).Expect(http.StatusUnprocessableEntity)
			if a.Count("errors."+c.field) != 1 {
				t.Errorf("%s for %s: %s", value, c.field, a.Body)
			}
		}
	}
	// A whole number may be written in any way that means one.
	for value, fine := range map[string]bool{"5": true, "5.0": true, "5e0": true, "0.5e1": true, "5.5": false, "-5": false, "60001": false, "1e99": false} {
		a := e.Call("PATCH", "/api/sandbox/phones/6281400000005", `{"delay_ms":`+value+`}`)
		if fine {
			wantValue(t, a.Expect(http.StatusOK), "data.delay_ms", 5.0)
		} else {
			a.ExpectFields("delay_ms")
		}
	}
}

// validationErrors checks the form of a 422: every failing field at once, sentences, and a message of
// the first.
func validationErrors(t *testing.T, e *parleytest.Env) {
	for _, c := range []struct {
		method, path, body string
		fields             []string
	}{
		{"POST", sendText, `{"contact_id":"6281400000006@c.us"}`, []string{"message"}},
		{"POST", sendText, `{}`, []string{"contact_id", "message"}},
		{"POST", "/api/send-message/location", `{"contact_id":5,"latitude":6.2,"longitude":"200","title":"","reply_to":"a b"}`,
			[]string{"contact_id", "latitude", "longitude", "title", "reply_to"}},
		{"POST", "/api/send-message/image", `{"contact_id":"x","caption":"","file":{"url":"ftp://x/y"}}`, []string{"contact_id", "caption", "file.url"}},
		{"POST", "/api/send-message/pool", `{"contact_id":"x","pools":[{"type":"text","data":{}},{"type":"song","data":["x"]},{"type":"text","data":["",1]},7]}`,
			[]string{"contact_id", "pools.0.data.message", "pools.1.type", "pools.2.data.0", "pools.2.data.1", "pools.3"}},
		{"GET", "/api/chat/detail?limit=0&offset=-1", "", []string{"contact_id", "limit", "offset"}},
		{"POST", "/api/sandbox/faults", `{"fault":"flood","times":0,"to":"nobody","type":"song","reason":""}`, []string{"fault", "times", "to", "type", "reason"}},
		{"POST", "/api/sandbox/phones", `{"number":"nobody","name":""}`, []string{"number", "name"}},
		{"POST", "/api/manage/channels", `{"code":"NO","name":"","network":"smoke","settings":{"ttl":1,"allow_only":["x"]}}`,
			[]string{"code", "name", "network", "settings.ttl", "settings.allow_only.0"}},
		{"POST", "/api/manage/tokens", `{"kind":"root","name":"","expires_at":"soon"}`, []string{"kind", "name", "expires_at"}},
	} {
		token := e.Token
		switch {
		case strings.HasPrefix(c.path, "/api/manage"):
			token = e.Admin
		case strings.HasSuffix(c.path, "/pool"):
			token = e.Global
		}
		a := e.Call(c.method, c.path, c.body, parleytest.As(token)).ExpectFields(c.fields...)
		wantKeys(t, a, "", "message", "errors")
		var body struct {
			Message string
			Errors  map[string][]string
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			t.Fatal(err)
		}
		total, firsts := 0, []string{}
		for field, list := range body.Errors {
			total += len(list)
			firsts = append(firsts, list[0])
			for _, sentence := range list {
				if len(strings.Fields(sentence)) < 3 || !strings.HasSuffix(sentence, ".") {
					t.Errorf("%s: %s: %q is no full sentence", a.Request, field, sentence)
				}
			}
		}
		first := body.Message
		if total > 1 {
			suffix := fmt.Sprintf(" (and %d more errors)", total-1)
			if !strings.HasSuffix(first, suffix) {
				t.Errorf("%s: the message is %q, want %q at its end", a.Request, first, suffix)
			}
			first = strings.TrimSuffix(first, suffix)
		}
		if !slices.Contains(firsts, first) {
			t.Errorf("%s: the message %q begins with none of %q", a.Request, body.Message, firsts)
		}
	}
}

func unknownPaths(t *testing.T, e *parleytest.Env) {
	for _, path := range []string{
		"/api", "/api/", "/api/nowhere", "/api/send-message", "/api/send-message/", "/api/send-message/text/", "/api/send-message/texts", "/api/Send-Message/Text",
		"/api/chat/detail/more", "/api/sandbox/phones/", "/api/sandbox/phones/62811/none",
		"/api/manage", "/api/manage/channels/", "/api/manage/channels/demo/none", "/api/v1/chat", "/api/chat%2Fdetail", "/api/events/none", "/api/send-message/text%00",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			a := e.Call(method, path, "").Expect(http.StatusNotFound)
			wantOnlyMessage(t, a)
			if a.Header.Get("Allow") != "" {
				t.Errorf("%s: Allow %q", a.Request, a.Header.Get("Allow"))
			}
		}
		for _, token := range []string{e.Global, e.Admin} { // for any good token
			e.Get(path, parleytest.As(token)).Expect(http.StatusNotFound)
		}
		e.Get(path, parleytest.As("")).Expect(http.StatusUnauthorized) // who is nobody learns nothing
	}
	for _, path := range []string{"/", "/nowhere", "/apis", "/livez/", "/send-message/text", "/.well-known/", "/docs/none.js", "/metrics/x", "/.git/config"} {
		wantOnlyMessage(t, e.Get(path, parleytest.As("")).Expect(http.StatusNotFound))
	}
}

// otherMethods tries every method that a path does not have.
func otherMethods(t *testing.T, e *parleytest.Env) {
	known := map[string][]string{}
	tokens := map[string]string{}
	for _, op := range operations(t) {
		known[op.filled] = append(known[op.filled], op.method)
		tokens[op.filled] = op.goodToken(e)
		if op.method == "GET" {
			known[op.filled] = append(known[op.filled], "HEAD")
		}
	}
	for path, methods := range known {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"} {
			if slices.Contains(methods, method) {
				continue
			}
			a := e.Call(method, path, "", parleytest.As(tokens[path])).Expect(http.StatusMethodNotAllowed)
			wantOnlyMessage(t, a)
			if got := a.Header.Get("Allow"); got != allow {
				t.Errorf("%s: Allow %q, want %q", a.Request, got, allow)
			}
		}
	}
	a := e.Call("HEAD", "/api/channel/health", "").Expect(http.StatusOK)
	if len(a.Body) != 0 || a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %q with %v", a.Body, a.Header)
	}
}

func requestIDs(t *testing.T, e *parleytest.Env) {
	own := regexp.MustCompile(`^req_[0-9a-f]{24}$`)
	seen := map[string]bool{}
	for _, path := range []string{"/api/channel/health", "/api/chat/detail", "/api/nowhere", "/livez", "/docs", "/openapi.json", "/.well-known/jwks.json", "/none"} {
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
	for _, a := range []*parleytest.Answer{
		sent,
		e.Put("/api/send-message/reaction", `{"message_id":"`+received+`","reaction":"👍"}`),
		e.Post("/api/send-message/seen", `{"message_id":"`+received+`"}`),
		e.Delete("/api/send-message/delete?message_id=" + sent.Text("data.message_id")),
		e.Get("/api/chat"), e.Get("/api/chat/detail?contact_id=" + number + "@c.us"), e.Post("/api/chat/archive", `{"contact_id":"`+number+`@c.us"}`),
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
	for status, a := range map[int]*parleytest.Answer{
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
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/init.js", "/.well-known/jwks.json", "/nowhere"} {
		a := e.Get(path, parleytest.As(""))
		wantHeader(t, a, "X-Content-Type-Options", "nosniff")
		wantHeader(t, a, "Referrer-Policy", "no-referrer")
		wantHeader(t, a, "Server", "")
		if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: Content-Security-Policy %q", path, policy)
		}
	}
}

func wantHeader(t *testing.T, a *parleytest.Answer, name, want string) {
	t.Helper()
	if got := strings.Join(a.Header.Values(name), "|"); got != want {
		t.Errorf("%s (%d): %s is %q, want %q", a.Request, a.Status, name, got, want)
	}
}

// referencesToNothing checks that an unknown message, and one of another channel, is a wrong field.
func referencesToNothing(t *testing.T, e *parleytest.Env) {
	other := e.CreateChannel("references")
	sent := e.Post(sendText, textTo("6281400000009"), parleytest.As(other)).Expect(http.StatusOK)
	for _, id := range []string{sent.Text("data.message_id"), sent.Text("data.id"), "true_6281400000009@c.us_3EB0000000000000000000", "3EB0000000000000000000"} {
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
		"/api/channel/health": nil, "/api/chat": {"meta"}, "/api/groups": {"meta"}, "/api/contact": {"meta"}, "/api/sandbox/phones": nil, "/api/sandbox/cursor": nil,
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

// TestOrderOfChecksByCallers walks down the order of checks: each request would fail all the later
// ones too. A request that an earlier check refuses costs nothing of a later limit.
func TestOrderOfChecksByCallers(t *testing.T) {
	e := parleytest.Start(t, behindProxy, func(c *app.Config) { c.RequestsPerSecond = 0.001 }) // one request for each token
	data := besides(t, e)
	token := func(kind parley.TokenKind) parleytest.Option {
		t.Helper()
		made := parley.Token{Kind: kind}
		if kind == parley.ChannelToken {
			made.Channel = app.DemoChannel
		}
		raw, err := data.Tokens.Issue(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return parleytest.As(raw)
	}
	from := func(address string) parleytest.Option { return parleytest.With("X-Forwarded-For", address) }
	plain := parleytest.With("Content-Type", "text/plain")
	large := strings.Repeat("{", 1<<20+1)
	channel := token(parley.ChannelToken)

	for i := range 30 {
		if a := e.Post("/api/nowhere", "", parleytest.As("guess"), from("198.51.100.1")); a.Status != http.StatusUnauthorized {
			t.Fatalf("failure %d: %d", i+1, a.Status)
		}
	}
	for what, a := range map[string]*parleytest.Answer{
		"a bad token":                    e.Post("/api/nowhere", large, parleytest.As("guess"), plain, from("198.51.100.1")),
		"no token":                       e.Post(sendText, large, parleytest.As(""), plain, from("198.51.100.1")),
		"a good token, from the address": e.Post("/api/nowhere", large, channel, plain, from("198.51.100.1")),
	} {
		a.ExpectError(http.StatusTooManyRequests, "authentications")
		if seconds := a.Header.Get("Retry-After"); seconds == "" || seconds == "0" {
			t.Errorf("%s: Retry-After %q", what, seconds)
		}
	}
	admin := token(parley.AdminToken)
	for range 3 { // more than the limit of the token, which these do not touch
		e.Post("/api/nowhere", large, parleytest.As("guess"), plain, from("198.51.100.2")).Expect(http.StatusUnauthorized)
		e.Call("PATCH", sendText, large, admin, plain).Expect(http.StatusForbidden)
		e.Post("/api/send-message/pool", large, channel, plain).Expect(http.StatusForbidden)
		e.Post(sendText, large, channel, plain, parleytest.On("other")).Expect(http.StatusForbidden)
		e.Post("/api/nowhere", large, channel, plain).Expect(http.StatusNotFound)
		e.Call("PATCH", sendText, large, channel, plain).Expect(http.StatusMethodNotAllowed)
	}
	e.Get("/api/channel/health", channel).Expect(http.StatusOK)
	limited := e.Post(sendText, large, channel, plain).ExpectError(http.StatusTooManyRequests, "token")
	if limited.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantOnlyMessage(t, limited)
	e.Post("/api/nowhere", large, channel, plain).Expect(http.StatusNotFound)
	e.Call("PATCH", sendText, large, channel, plain).Expect(http.StatusMethodNotAllowed)

	e.Post(sendText, large, token(parley.GlobalToken), plain, parleytest.On("nobody")).Expect(http.StatusRequestEntityTooLarge)
	e.Post(sendText, `{"contact_id":1}`, token(parley.GlobalToken), plain, parleytest.On("nobody")).ExpectError(http.StatusBadRequest, "X-Channel")
	e.Post(sendText, `{"contact_id":1}`, token(parley.ChannelToken), plain).ExpectError(http.StatusBadRequest, "Content-Type")
	e.Post(sendText, `{"contact_id":1,}`, token(parley.ChannelToken)).ExpectError(http.StatusBadRequest, "JSON")
	e.Post(sendText, `{"contact_id":1}`, token(parley.ChannelToken)).ExpectFields("contact_id", "message")
	e.Post(sendText, textTo("6281400000011"), token(parley.ChannelToken)).Expect(http.StatusOK)
}

// behindProxy has the gateway believe what a caller on this machine says of its address, so that a
// test can be many callers.
func behindProxy(c *app.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// fromAnywhere gives a request an address that probably no other has, so that its failure to
// authenticate counts against nobody else.
func fromAnywhere() parleytest.Option {
	address := netip.AddrFrom4([4]byte{198, 19, byte(rand.N(256)), byte(rand.N(256))})
	return parleytest.With("X-Forwarded-For", address.String())
}

// TestMovedClockIsNoOtherTime holds the times of a channel whose clock was moved to the same form.
func TestMovedClockIsNoOtherTime(t *testing.T) {
	e := parleytest.Start(t)
	moved := e.Post("/api/sandbox/clock", `{"advance":86400}`).Expect(http.StatusOK)
	sent := e.Post(sendText, textTo("6281400000012")).Expect(http.StatusOK)
	for _, a := range []*parleytest.Answer{moved, sent} {
		at, err := time.Parse(time.RFC3339, a.Text("data.timestamp"))
		if err != nil || !stampForm.MatchString(a.Text("data.timestamp")) || time.Until(at) < 23*time.Hour {
			t.Errorf("%s: timestamp %q, want one a day ahead", a.Request, a.Text("data.timestamp"))
		}
	}
}
