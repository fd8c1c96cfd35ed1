package hostile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// target is a route that takes a body, with one that would work.
type target struct{ method, path, as, good string }

var targets = []target{
	{"POST", "/api/send-message/text", "", `{"contact_id":"6281234567890@c.us","message":"never sent"}`},
	{"POST", "/api/send-message/image", "",
		`{"contact_id":"6281234567890@c.us","caption":"x","file":{"url":"https://parley.invalid/x.png","filename":"x","mimeType":"image/png"}}`},
	{"POST", "/api/send-message/video", "", `{"contact_id":"6281234567890@c.us","videoUrl":"https://parley.invalid/x.mp4"}`},
	{"POST", "/api/send-message/file", "", `{"contact_id":"6281234567890@c.us","file":{"url":"https://parley.invalid/x"}}`},
	{"POST", "/api/send-message/voice", "", `{"contact_id":"6281234567890@c.us","audioUrl":"https://parley.invalid/x.ogg"}`},
	{"POST", "/api/send-message/location", "", `{"contact_id":"6281234567890@c.us","latitude":"-6.2","longitude":"106.8","title":"x"}`},
	{"POST", "/api/send-message/poll", "", `{"contact_id":"6281234567890@c.us","title":"x","options":["a","b"]}`},
	{"POST", "/api/send-message/pool", "global", `{"contact_id":"6281234567890@c.us","pools":[{"type":"text","data":["never sent"]}]}`},
	{"PUT", "/api/send-message/reaction", "", `{"message_id":"3EB0000000","reaction":"👍"}`},
	{"POST", "/api/send-message/seen", "", `{"message_id":"3EB0000000"}`},
	{"PUT", "/api/send-message/star", "", `{"message_id":"3EB0000000","starred":true}`},
	{"POST", "/api/send-message/typing", "", `{"contact_id":"6281234567890@c.us"}`},
	{"POST", "/api/send-message/stop-typing", "", `{"contact_id":"6281234567890@c.us"}`},
	{"POST", "/api/chat/archive", "", `{"contact_id":"6281234567890@c.us"}`},
	{"POST", "/api/chat/un-archive", "", `{"contact_id":"6281234567890@c.us"}`},
	{"POST", "/api/groups/create", "", `{"name":"x","participants":[{"id":"6281234567890@c.us"}]}`},
	{"POST", "/api/otp/link/request", "", `{"contact_id":"6281234567890@c.us","expires":60,"name":"x"}`},
	{"POST", "/api/otp/link/global", "global", `{"contact_id":"6281234567890@c.us","expires":60}`},
	{"POST", "/api/otp/code/global", "global", `{"contact_id":"6281234567890@c.us","name":"x"}`},
	{"POST", "/api/groups/participant", "", `{"group_id":"120363020000000001@g.us"}`},
	{"PATCH", "/api/sandbox/phones/6281234567890", "", `{"name":"Mallory","online":false}`},
	{"POST", "/api/sandbox/phones/6281234567890/send", "", `{"type":"text","message":"never said"}`},
	{"POST", "/api/sandbox/phones/6281234567890/open", "", `{"link":"https://wa.me/1?text=x"}`},
	{"POST", "/api/sandbox/faults", "", `{"fault":"refuse","times":1}`},
	{"POST", "/api/sandbox/clock", "", `{"advance":1}`},
	{"POST", "/api/manage/channels", "admin", `{"code":"mallory","network":"sandbox"}`},
	{"PATCH", "/api/manage/channels/demo", "admin", `{"name":"Mallory"}`},
	{"POST", "/api/manage/tokens", "admin", `{"kind":"admin","name":"mallory"}`},
}

const asJSON = "Content-Type: application/json"

// notJSON are bodies that are no JSON object, or none that can be trusted. GOOD is replaced by the body
// that the route takes, and OPEN for the same without its closing brace.
var notJSON = []string{
	" ", "\n", "\x00", "null", "true", "0", "1e999", `"text"`, "[]", "[GOOD]", `"GOOD`, "GOODGOOD", "GOOD GOOD", "GOOD,", "GOOD}", "GOOD]",
	"GOOD x", "GOOD\x00", "GOODnull",
	"\ufeffGOOD", "\x00GOOD", "\xff\xfeGOOD", "\x1f\x8b\x08\x00GOOD", ")]}'\nGOOD", "/* x */GOOD", "GOOD// x", "#x\nGOOD", "x=GOOD",
	"\u00a0GOOD", "\vGOOD",
	"OPEN", "OPEN,", "OPEN,}", "OPEN,,\"x\":1}", "OPEN]", "OPEN,\"x\"}", "OPEN,\"x\":}", "OPEN,\"x\":,\"y\":1}", "OPEN,\"x\" 1}",
	"OPEN;\"x\":1}", "OPEN,\"x\"=1}", "OPEN,x:1}", "OPEN,'x':1}", "OPEN,1:1}", "OPEN,null:1}", "OPEN,\"x\":1 2}",
	"OPEN,\"x\":01}", "OPEN,\"x\":+1}", "OPEN,\"x\":.5}", "OPEN,\"x\":5.}", "OPEN,\"x\":1e}", "OPEN,\"x\":1e+}", "OPEN,\"x\":-}",
	"OPEN,\"x\":--1}", "OPEN,\"x\":0x10}", "OPEN,\"x\":1_000}", "OPEN,\"x\":NaN}", "OPEN,\"x\":Infinity}", "OPEN,\"x\":-Infinity}",
	"OPEN,\"x\":tru}", "OPEN,\"x\":True}", "OPEN,\"x\":NULL}", "OPEN,\"x\":undefined}", "OPEN,\"x\":truefalse}", "OPEN,\"x\":[1,]}",
	"OPEN,\"x\":[,1]}", "OPEN,\"x\":[1 2]}", "OPEN,\"x\":[}", "OPEN,\"x\":{]}",
	"OPEN,\"x\":\"y}", "OPEN,\"x\":\"\\x41\"}", "OPEN,\"x\":\"\\u12\"}", "OPEN,\"x\":\"\\u00zz\"}", "OPEN,\"x\":\"\\\"}", "OPEN,\"x\":'y'}",
	"OPEN,\"x\":\"a\nb\"}", "OPEN,\"x\":\"a\tb\"}", "OPEN,\"x\":\"a\x00b\"}", "OPEN,\"x\":\"a\x1fb\"}",
	"OPEN,\"x\":\"\\u0000\"}", "OPEN,\"x\":\"a\\u0000b\"}", "OPEN,\"\\u0000\":1}", "OPEN,\"x\":[\"\\u0000\"]}",
	"OPEN,\"x\":{\"y\":\"\\u0000\"}}", // a NUL
	"OPEN,\"x\":\"\\ud800\"}", "OPEN,\"x\":\"\\udc00\"}", "OPEN,\"x\":\"\\udc00\\ud800\"}", "OPEN,\"x\":\"\\ud800\\u0041\"}",
	"OPEN,\"\\ud800\":1}", // lone surrogates
	"OPEN,\"x\":\"\xff\"}", "OPEN,\"x\":\"\xc0\x80\"}", "OPEN,\"x\":\"\xed\xa0\x80\"}", "OPEN,\"x\":\"\xe2\x82\"}",
	"OPEN,\"x\":\"\xf4\x90\x80\x80\"}", "OPEN,\"x\":\"caf\xe9\"}", "OPEN,\"\xff\":1}", // no UTF-8
	"OPEN,\"x\":1,\"x\":1}", "OPEN,\"x\":1,\"\\u0078\":2}", "OPEN,\"x\":{\"y\":1,\"y\":2}}", "OPEN,\"x\":[{\"y\":1,\"y\":2}]}",
	"OPEN,\"\":1,\"\":2}", // a field twice
	"OPEN,\"x\":" + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "}", "OPEN,\"x\":" + strings.Repeat("[", 50_000) +
		strings.Repeat("]", 50_000) + "}", strings.Repeat("[", 100_000), // deep
	strings.Repeat(`{"x":`, 100_000), "OPEN,\"x\":" + strings.Repeat(`{"x":`, 20) + "1" + strings.Repeat("}", 21),
	"OPEN,\"x\":[" + strings.Repeat("1,", 20_000) + "1]}", "OPEN" + strings.Repeat(",\"x\":1", 20_000) + "}", // many values
	"contact_id=6281234567890@c.us&message=x", "<xml/>", "contact_id: 6281234567890@c.us",
	"--x\r\nContent-Disposition: form-data; name=contact_id\r\n\r\n6281234567890@c.us\r\n--x--",
	"{\x00\"\x00a\x00\"\x00:\x001\x00}\x00", // UTF-16
}

// brokenBodies sends every body that is not JSON to the first route that takes one, and to each of
// the others every fourth: they share the code that reads bodies.
func brokenBodies() (cases []hostile) {
	for i, to := range targets {
		fill := strings.NewReplacer("GOOD", to.good, "OPEN", strings.TrimSuffix(to.good, "}"))
		for j, body := range notJSON {
			if i > 0 && (i+j)%4 > 0 {
				continue
			}
			body = fill.Replace(body)
			cases = append(cases, hostile{name: fmt.Sprintf("body %.60q", body), method: to.method, path: to.path, as: to.as,
				header: []string{asJSON}, body: body, want: 400})
		}
		cases = append(cases, hostile{name: "no body", method: to.method, path: to.path, as: to.as, header: []string{asJSON}, want: 400})
	}
	return cases
}

// wrongTypes sends good bodies that do not say that they are JSON, or that they are something else too.
func wrongTypes() (cases []hostile) {
	for _, to := range targets {
		for _, header := range []string{
			"X-No-Type: 1", "Content-Type:", "Content-Type: text/plain", "Content-Type: text/json",
			"Content-Type: application/x-www-form-urlencoded",
			"Content-Type: multipart/form-data; boundary=x", "Content-Type: application/jsonp", "Content-Type: application/ld+json",
			"Content-Type: json",
			"Content-Type: */*", "Content-Type: application/json,text/plain", "Content-Type: text/plain; application/json",
			`Content-Type: "application/json"`, "Content-Type: application/\xc3\xa9json",
			asJSON + "\r\nContent-Encoding: gzip", asJSON + "\r\nContent-Encoding: br", asJSON + "\r\nContent-Encoding: identity, gzip", asJSON +
				"\r\nContent-Encoding: \xff",
		} {
			cases = append(cases, hostile{name: fmt.Sprintf("type %q", header), method: to.method, path: to.path, as: to.as,
				header: []string{header}, body: to.good, want: 400})
		}
	}
	return cases
}

// largeBodies sends bodies of more than 1 MiB, announced or not, and bodies whose end never comes.
func largeBodies() (cases []hostile) {
	const chunked = "Transfer-Encoding: chunked"
	for i, to := range targets {
		add := func(name string, want int, body string, header ...string) {
			cases = append(cases, hostile{name: name, method: to.method, path: to.path, as: to.as, header: append(header, asJSON), body: body,
				want: want,
				cut:  len(body) < 1<<20})
		}
		add("announced too large", 413, to.good, "Content-Length: 1048577")
		add("announced far too large", 413, to.good, "Content-Length: 9223372036854775807")
		add("shorter than announced", 400, to.good, fmt.Sprint("Content-Length: ", len(to.good)+1))
		add("chunks without an end", 400, fmt.Sprintf("%x\r\n%s\r\n", len(to.good), to.good), chunked)
		add("a chunk without its size", 400, to.good, chunked)
		add("a chunk of a bad size", 400, "zz\r\n"+to.good+"\r\n0\r\n\r\n", chunked)
		add("a chunk of a huge size", 400, "ffffffffffffffff\r\n"+to.good, chunked)
		add("nothing in chunks", 400, "0\r\n\r\n", chunked)
		if i%8 != 0 { // a megabyte each
			continue
		}
		blanks := strings.Repeat(" ", 1<<20-len(to.good))
		add("too large", 413, blanks+to.good+" ")
		add("too large after its end", 413, to.good+" "+blanks)
		add("too large in chunks", 413, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 1<<20+1, blanks+to.good+" "), chunked)
		add("too large in many chunks", 413, strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", 1025)+"0\r\n\r\n", chunked)
		add("as large as may be, but broken", 400, blanks+to.good[:len(to.good)-1]+" ")
	}
	return cases
}

// otherMethods asks every path of the document for the methods that it does not have.
func otherMethods(t *testing.T) (cases []hostile) {
	has := map[string]bool{}
	paths := map[string]bool{}
	for _, o := range parleytest.Operations(t) {
		path := strings.NewReplacer("{number}", "6281234567890", "{code}", "demo", "{id}", "tok_1", "{file}", "style.css").Replace(o.Path)
		paths[path] = true
		has[o.Method+" "+path] = true
		if o.Method == "GET" {
			has["HEAD "+path] = true
		}
	}
	for path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "QUERY",
			"get", "Post", "X", "M-SEARCH", strings.Repeat("A", 2000)} {
			if has[method+" "+path] {
				continue
			}
			as := ""
			switch {
			case strings.HasPrefix(path, "/api/manage"):
				as = "admin"
			case path == "/api/send-message/pool", path == "/api/otp/link/global", path == "/api/otp/code/global":
				as = "global"
			}
			cases = append(cases, hostile{name: "method", method: method, path: path, as: as, want: http.StatusMethodNotAllowed})
		}
	}
	return cases
}

// oddPaths asks for paths that are not there, however they are spelled.
func oddPaths() (cases []hostile) {
	for _, path := range []string{
		"//", "/./", "/../", "/..", "/.", "/api", "/api/", "/api//", "//api/chat", "/api//chat", "/api/./chat", "/api/../api/chat",
		"/api/chat/..", "/api/chat/.", "/api/groups/",
		"/api/%2e%2e/etc/passwd", "/api/%2e/chat", "/api/chat%2fdetail", "/api%2fchat", "/%61pi%2Fchat", "/api/chat%00", "/api/chat%0a",
		"/api/chat%0d%0aX:1", "/api/chat%20", "/api/chat%09", "/api/%00", "/%00",
		"/API/chat", "/Api/Chat", "/api/Chat", "/api/chat;x=1", "/api/chat%3flimit=1", "/api/chat%23", "/api/chat.json", "/api/chat,",
		"/api/chat~", "/api/send-message", "/api/send-message/", "/api/send-message/texts", "/api/send-message/text/text",
		"/api/v1/chat", "/api/%ff", "/api/%c0%ae%c0%ae/x", "/api/\xc3\xa9", "/%ff%fe", "/api/" + strings.Repeat("a", 8000), "/api/" +
			strings.Repeat("a/", 4000) + "a", "/" + strings.Repeat("%2e%2e/", 1000) + "x", "/" + strings.Repeat("../", 1000),
		"/etc/passwd", "/.git/config", "/.env", "/dev.env", "/parley.db", "/docs/../dev.env", "/docs/..%2fdev.env", "/docs/%2e%2e%2fparley.db",
		"/docs/..", "/docs/%2e%2e", "/docs/style.css/", "/docs/a/b",
		"/metrics/", "/livez/x", "/readyz/", "/.well-known/", "/.well-known/jwks.json/", "/openapi.json/", "/openapi.json%00", "/wp-login.php",
		"/index.php?x=1", "/favicon.ico/", "/debug/pprof/", "/debug/vars", "/server-status", "/actuator/env",
		"/api/manage", "/api/manage/", "/api/manage/channels/", "/api/manage/channels//start", "/api/manage/channels/demo/",
		"/api/manage/channels/demo/explode", "/api/manage/channels/demo/start/", "/api/manage/tokens/", "/api/manage/tokens/a/b",
		"/api/sandbox/phones/", "/api/sandbox/phones//messages", "/api/sandbox/phones/6281234567890", "/api/sandbox/phones/6281234567890/",
		"/api/sandbox/phones/6281234567890/messages/", "/api/sandbox/phones/62812/34567890/messages",
	} {
		want := http.StatusNotFound
		if path == "/api/sandbox/phones/6281234567890" { // there, for PATCH
			want = http.StatusMethodNotAllowed
		}
		cases = append(cases, hostile{name: "path", method: "GET", path: path, want: want}, hostile{name: "path", method: "DELETE", path: path,
			want: want})
	}
	for _, code := range []string{"nope", "DEMO", "%00", "%ff", "demo%20", "..%2fdemo", "%27%20OR%201=1", strings.Repeat("a", 5000),
		"%F0%9F%92%A9", "%25s%25n", "*", "demo%00", "demo%0a"} {
		for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/start"} {
			cases = append(cases, hostile{name: "no such channel", method: method, path: "/api/manage/channels/" + code + path, as: "admin",
				want: 404})
		}
		for _, path := range []string{"/stop", "/pair", "/logout"} {
			cases = append(cases, hostile{name: "no such channel", method: "POST", path: "/api/manage/channels/" + code + path, as: "admin",
				want: 404})
		}
		cases = append(cases,
			hostile{name: "no such channel", method: "PATCH", path: "/api/manage/channels/" + code, as: "admin", header: []string{asJSON},
				body: `{"name":"x"}`, want: 404},
			hostile{name: "no such token", method: "DELETE", path: "/api/manage/tokens/" + code, as: "admin", want: 404},
			hostile{name: "no number", method: "GET", path: "/api/sandbox/phones/" + code + "/messages"},
			hostile{name: "no number", method: "POST", path: "/api/sandbox/phones/" + code + "/read"},
			hostile{name: "no number", method: "PATCH", path: "/api/sandbox/phones/" + code, header: []string{asJSON}, body: `{"name":"x"}`},
			hostile{name: "no number", method: "POST", path: "/api/sandbox/phones/" + code + "/send", header: []string{asJSON},
				body: `{"type":"text","message":"x"}`},
			hostile{name: "no number", method: "POST", path: "/api/sandbox/phones/" + code + "/open", header: []string{asJSON},
				body: `{"link":"https://wa.me/1?text=x"}`})
	}
	return cases
}

// badHeaders sends good bodies under headers that must not be followed.
func badHeaders() (cases []hostile) {
	text := hostile{method: "POST", path: "/api/send-message/text", body: targets[0].good}
	add := func(h hostile, want int, field string, lines ...string) {
		h.name, h.want, h.field = fmt.Sprintf("header %.60q", lines), want, field
		h.header = append([]string{asJSON}, lines...)
		cases = append(cases, h)
	}
	for _, to := range targets {
		h := hostile{method: to.method, path: to.path, as: to.as, body: to.good}
		for _, key := range []string{"", strings.Repeat("k", 256), strings.Repeat("k", 5000), "caf\xc3\xa9", "a\tb", "\xff",
			"a\r\nIdempotency-Key: b", "a\r\nIdempotency-Key: a"} {
			add(h, 422, "Idempotency-Key", "Idempotency-Key: "+key)
		}
	}
	for _, code := range []string{"nope", "DEMO", "demo,demo", "demo;", "*global", "../demo", "' OR 1=1 --", "d\xc3\xa9mo", "\xff\xfe",
		strings.Repeat("a", 9000), "%64emo", "demo\tdemo"} {
		add(text, 403, "", "X-Channel: "+code)
		global := text
		global.as = "global"
		add(global, 400, "", "X-Channel: "+code)
	}
	wrong := text
	wrong.body = `{"contact_id":"x","message":"never sent"}`
	for _, line := range []string{
		"Prefer: wait=-1", "Prefer: wait=x", "Prefer: wait=99999999999999999999", "Prefer: wait=1e9", "Prefer: wait", "Prefer: ,,,;;;===",
		"Prefer: wait=\"", "Prefer: \xff", "Prefer: " + strings.Repeat("wait=30,", 1000),
		"X-Request-Id: " + strings.Repeat("x", 129), "X-Request-Id: " + strings.Repeat("x", 9000), "X-Request-Id: a b",
		"X-Request-Id: \xc3\xa9", "X-Request-Id: \xff", "X-Request-Id:", "X-Request-Id: a\r\nX-Request-Id: b", "X-Request-Id: <script>",
		"X-Request-Id: ${jndi:ldap://x}",
		"Accept: \xff", "Accept: " + strings.Repeat("a/b,", 2000), "Accept-Encoding: x;q=NaN", "Range: bytes=0-0,-1", "If-None-Match: *",
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: websocket",
		"X-Forwarded-For: 1.2.3.4, \xff", "Forwarded: for=\"_x\"", "X-Http-Method-Override: GET", "Origin: null", "Cookie: " +
			strings.Repeat("a=b; ", 1000), "Content-Language: \xff", "Trailer: Authorization", "Expect: 100-continue",
	} {
		add(wrong, 422, "contact_id", line)
	}
	for _, line := range []string{"X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-Ip: 127.0.0.1"} {
		cases = append(cases, hostile{name: "metrics for others", method: "GET", path: "/metrics", as: "nobody", header: []string{line},
			want: 403})
	}
	return cases
}

// badQueries asks for lists and records with parameters that make no sense.
func badQueries() (cases []hostile) {
	const contact = "contact_id=6281234567890@c.us"
	lists := map[string]string{"/api/chat": "x=1", "/api/chat/detail": contact, "/api/chat/details": contact, "/api/contact": "x=1",
		"/api/groups": "x=1", "/api/sandbox/phones/6281234567890/messages": "x=1"}
	for path, rest := range lists {
		for _, limit := range []string{"0", "-1", "101", "1e1", "0x10", "", "abc", "NaN", "99999999999999999999", "-99999999999999999999",
			"5.0", "%2B5", "%205", "5%20", "5%00", "%D9%A5", "5;offset=1", "5&limit=5", "true", "null", "[5]", strings.Repeat("1", 5000)} {
			want := 422
			if strings.Contains(limit, "%00") {
				want = 400
			}
			cases = append(cases, hostile{name: "limit", method: "GET", path: path + "?" + rest + "&limit=" + limit, want: want})
		}
		if path != "/api/sandbox/phones/6281234567890/messages" {
			for _, offset := range []string{"-1", "1.5", "", "x", "1e3", "-99999999999999999999", "%2B1", "1&offset=1"} {
				cases = append(cases, hostile{name: "offset", method: "GET", path: path + "?" + rest + "&offset=" + offset, want: 422, field: "offset"})
			}
		}
		for _, broken := range []string{"%zz", "%", "%4", "x=%00", "%00=x", "x=%ff", "x=%c0%80", "%ff=1", strings.Repeat("&x=1", 200)} {
			cases = append(cases, hostile{name: "query", method: "GET", path: path + "?" + rest + "&" + broken, want: 400})
		}
	}
	for _, path := range []string{"/api/chat/detail", "/api/chat/details", "/api/contact/info", "/api/contact/picture"} {
		for _, id := range []string{"", "x", "6281234567890", "6281234567890@g.us", "6281234567890@c.us@c.us", "+6281234567890@c.us",
			"%2B6281234567890@c.us", "6281234567890@c.us%0a", "%206281234567890@c.us", "1@c.us", strings.Repeat("1", 60) + "@c.us",
			"6281234567890@C.US", "6281234567890@cxus", "%D9%A6%D9%A2%D9%A8%D9%A1%D9%A2%D9%A3%D9%A4%D9%A5@c.us", "6281234567890@c.us&" + contact,
			"*", "%25", "'%20OR%201=1--@c.us", "true"} {
			cases = append(cases, hostile{name: "contact", method: "GET", path: path + "?contact_id=" + id, want: 422, field: "contact_id"})
		}
		cases = append(cases, hostile{name: "contact", method: "GET", path: path, want: 422, field: "contact_id"}, hostile{name: "contact",
			method: "GET", path: path + "?Contact_Id=6281234567890@c.us", want: 422, field: "contact_id"})
	}
	for path, field := range map[string]string{
		"/api/groups/participants": "group_id", "/api/groups/participants?group_id=": "group_id",
		"/api/groups/participants?group_id=x": "group_id", "/api/groups/participants?group_id=1@g.us": "group_id",
		"/api/groups/participants?group_id=6281234567890@c.us": "group_id", "/api/groups/participants?group_id=" + strings.Repeat("1", 100) +
			"@g.us": "group_id", "/api/groups/participants?group_id=1@g.us&group_id=2@g.us": "group_id",
		"/api/channel/check-phone-number": "phone", "/api/channel/check-phone-number?phone=": "phone",
		"/api/channel/check-phone-number?phone=abc": "phone", "/api/channel/check-phone-number?phone=" + strings.Repeat("1", 5000): "phone",
		"/api/sandbox/phones/6281234567890/messages?wait=31": "wait", "/api/sandbox/phones/6281234567890/messages?wait=-1": "wait",
		"/api/sandbox/phones/6281234567890/messages?wait=1.5": "wait", "/api/sandbox/phones/6281234567890/messages?type=": "type",
		"/api/sandbox/phones/6281234567890/messages?type=reaction": "type", "/api/sandbox/phones/6281234567890/messages?type=TEXT": "type",
		"/api/sandbox/phones/6281234567890/messages?after=x": "after", "/api/sandbox/phones/6281234567890/messages?after=-1": "after",
		"/api/sandbox/phones/6281234567890/messages?after=" + strings.Repeat("9", 101):     "after",
		"/api/sandbox/phones/6281234567890/messages?after=" + strings.Repeat("9", 50):      "after",
		"/api/sandbox/phones/6281234567890/messages?contains=" + strings.Repeat("x", 4097): "contains",
	} {
		cases = append(cases, hostile{name: "query", method: "GET", path: path, want: 422, field: field})
	}
	for _, id := range []string{"", "x_y", "true_", "true_6281234567890@c.us_", "true_6281234567890@c.us_3EB0",
		"false_6281234567890@c.us_3EB0", "maybe_6281234567890@c.us_3EB0", "true_x_3EB0", "%2A", "3EB0&message_id=3EB1", strings.Repeat("A",
			101), "'%20OR%201=1", "true_6281234567890@g.us_3EB0", "3EB0%0a", "%F0%9F%92%A9"} {
		cases = append(cases, hostile{name: "message", method: "DELETE", path: "/api/send-message/delete?message_id=" + id, want: 422,
			field: "message_id"})
	}
	return append(cases, hostile{name: "message", method: "DELETE", path: "/api/send-message/delete", want: 422, field: "message_id"},
		hostile{name: "message", method: "DELETE", path: "/api/send-message/delete", header: []string{asJSON}, body: `{"message_id":1}`,
			want: 422, field: "message_id"},
		hostile{name: "message", method: "DELETE", path: "/api/send-message/delete", header: []string{asJSON}, body: `{"message_id":`, want: 400})
}

// hostileBytes is what is no request, or one that HTTP itself forbids.
func hostileBytes(token string) []string {
	head := "Host: x\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\nConnection: close\r\n"
	good := targets[0].good
	post := "POST /api/send-message/text HTTP/1.1\r\n" + head
	length := fmt.Sprintf("Content-Length: %d\r\n", len(good))
	texts := []string{
		"", "\r\n", "\r\n\r\n\r\n", "\x00", "GARBAGE\r\n\r\n", "GET\r\n\r\n", "GET /livez\r\n\r\n", "GET /livez HTTP/9.9\r\n\r\n",
		"GET /livez HTTP/1.1 x\r\n\r\n", "GET /livez http/1.1\r\nHost: x\r\n\r\n", "GET /livez HTTP/1.1\r\n\r\n",
		"GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: x y\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("b", 40<<10) + "\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 10_000) + "\r\n", "GET /" + strings.Repeat("a", 40<<10) +
			" HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET %00 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n", "GET * HTTP/1.1\r\n" + head + "\r\n", "OPTIONS * HTTP/1.1\r\n" + head + "\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\n" + head + "\r\n", "G\x00T /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "SSH-2.0-x\r\n", "EHLO x\r\n",
		"*1\r\n$4\r\nPING\r\n", "GET /livez HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n",
		post + "Content-Length: -1\r\n\r\n" + good, post + "Content-Length: 1e3\r\n\r\n" + good, post +
			"Content-Length: 99999999999999999999\r\n\r\n" + good, post + length + "Content-Length: 1\r\n\r\n" + good, post +
			"Content-Length: 5, 6\r\n\r\n" + good, post + "Content-Length: +5\r\n\r\n" + good,
		post + length + "Transfer-Encoding: gzip\r\n\r\n" + good, post + "Transfer-Encoding: identity\r\n\r\n" + good, post +
			"Transfer-Encoding: chunked, chunked\r\n\r\n" + good, post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" +
			good, post + "Transfer-Encoding: xchunked\r\n\r\n" + good, post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 10_000) + "\r\nhello\r\n0\r\n\r\n", post +
			"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + good, post + "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n", post +
			"X: y\n z\r\n" + "Idempotency-Key: \x01\r\n" + length + "\r\n" + good,
	}
	return texts
}
