package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

const sendText = "/api/send-message/text"

// textTo is a good body for a text.
func textTo(number string) string { return `{"contact_id":"` + number + `@c.us","message":"Hello"}` }

// TestEveryRequest holds every endpoint to the rules that all of them share for what they are sent.
func TestEveryRequest(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"bodies":        everyBody,
		"broken bodies": brokenBodies,
		"content types": contentTypes,
		"large bodies":  largeBodies,
		"loose fields":  looseFields,
		"strict types":  strictTypes,
		"validation":    validationErrors,
		"unknown paths": unknownPaths,
		"other methods": otherMethods,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

// everyBody sends what is no JSON object to every endpoint that takes a body.
func everyBody(t *testing.T, e *parleytest.Env) {
	tried := 0
	for _, op := range operations(t) {
		if !op.takesBody || op.path == "/api/media" { // a file is any bytes
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
func wantOnlyMessage(t *testing.T, a *parleytest.Response) {
	t.Helper()
	wantKeys(t, a, "", "message", "code")
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
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON",
		"application/json ; v=1; x=\"y\"",
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
	e.Post(sendText, textTo("6281400000002"), parleytest.With("Content-Encoding", "gzip")).ExpectError(http.StatusBadRequest,
		"Content-Encoding")
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
		`"colour":"red"`, `"Message":1`, `"message_id":{"deep":[1,2,{"x":null}]}`, `"":0`, `"reply_to":null,"linkPreview":null`,
		`"contact_id ":"x"`,
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
		method, path, body, field string // X is replaced by the value
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
	for value, fine := range map[string]bool{"5": true, "5.0": true, "5e0": true, "0.5e1": true, "5.5": false, "-5": false, "60001": false,
		"1e99": false} {
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
		{"POST", "/api/send-message/image", `{"contact_id":"x","caption":"","file":{"url":"ftp://x/y"}}`, []string{"contact_id", "caption",
			"file.url"}},
		{"POST", "/api/send-message/pool",
			`{"contact_id":"x","pools":[{"type":"text","data":{}},{"type":"song","data":["x"]},{"type":"text","data":["",1]},7]}`,
			[]string{"contact_id", "pools.0.data.message", "pools.1.type", "pools.2.data.0", "pools.2.data.1", "pools.3"}},
		{"GET", "/api/chat/detail?limit=0&offset=-1", "", []string{"contact_id", "limit", "offset"}},
		{"POST", "/api/sandbox/faults", `{"fault":"flood","times":0,"to":"nobody","type":"song","reason":""}`, []string{"fault", "times", "to",
			"type", "reason"}},
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
		wantKeys(t, a, "", "message", "code", "errors")
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
		"/api", "/api/", "/api/nowhere", "/api/send-message", "/api/send-message/", "/api/send-message/text/", "/api/send-message/texts",
		"/api/Send-Message/Text",
		"/api/chat/detail/more", "/api/sandbox/phones/", "/api/sandbox/phones/62811/none",
		"/api/manage", "/api/manage/channels/", "/api/manage/channels/demo/none", "/api/v1/chat", "/api/chat%2Fdetail", "/api/events/none",
		"/api/send-message/text%00",
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
	for _, path := range []string{"/", "/nowhere", "/apis", "/livez/", "/send-message/text", "/.well-known/", "/docs/none.js", "/metrics/x",
		"/.git/config"} {
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
