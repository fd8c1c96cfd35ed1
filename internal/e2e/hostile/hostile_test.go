// Package hostile_test attacks a whole gateway: broken and hostile requests, addresses that lead inside, slow callers, and
// a search for private texts where none may be.
package hostile_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

// hostile is a request that must be refused. It is written to the connection unchanged, because
// no HTTP client would send most of them.
type hostile struct {
	name   string
	method string
	path   string
	as     string   // whose token: "" of the channel, "global", "admin", "nobody"
	header []string // lines
	body   string
	want   int    // the status; 0: any of 400 to 499
	field  string // that the answer must complain of; "": any
	cut    bool   // the caller hangs up after it, so that the server does not wait for more
}

// TestHostileRequests sends what only an attacker or a broken client sends. Each must get an error in
// the form that all errors have, and none may leave anything behind.
func TestHostileRequests(t *testing.T) {
	e := parleytest.Start(t)
	e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Hello"}`).Expect(http.StatusOK)
	e.Phone("6281234567890").Types("Hello yourself")
	e.Phone("6281234567890").Received("Hello yourself")
	a := &attacker{Env: e, t: t, validator: parleytest.NewValidator(t)}
	before := a.state()
	for name, cases := range map[string][]hostile{
		"bodies": brokenBodies(), "types": wrongTypes(), "sizes": largeBodies(), "methods": otherMethods(t), "paths": oddPaths(),
		"headers": badHeaders(), "queries": badQueries(), "fields": badFields(),
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			for _, h := range cases {
				a.refused(h)
			}
		})
	}
	a.t = t
	t.Logf("%d hostile requests", a.sent)
	if a.sent < 400 {
		t.Errorf("only %d hostile requests were sent", a.sent)
	}
	if after := a.state(); after != before {
		t.Errorf("the requests left something behind\nbefore: %s\nafter:  %s", before, after)
	}
	a.logIsClean()
}

// TestHostileBytes sends what is no HTTP request at all, or none that a server must understand. The
// HTTP server below us answers most of it, in words of its own.
func TestHostileBytes(t *testing.T) {
	e := parleytest.Start(t)
	a := &attacker{Env: e, t: t}
	before := a.state()
	for _, text := range hostileBytes(e.Token) {
		resp, body, err := a.exchange("GET", text, true)
		switch {
		case err != nil: // closed without a word
		case resp.StatusCode == http.StatusNotImplemented && strings.Contains(text, "Transfer-Encoding"):
		case resp.StatusCode == http.StatusHTTPVersionNotSupported:
		case resp.StatusCode >= 500 || resp.StatusCode < 400:
			t.Errorf("%.80q answered %d: %s", text, resp.StatusCode, body)
		}
	}
	if after := a.state(); after != before {
		t.Errorf("the requests left something behind\nbefore: %s\nafter:  %s", before, after)
	}
	a.logIsClean()
}

// TestHostileTokens tries to get in without a good token, and to guess one.
func TestHostileTokens(t *testing.T) {
	e := parleytest.Start(t)
	a := &attacker{Env: e, t: t, validator: parleytest.NewValidator(t)}
	head, rest, _ := strings.Cut(e.Token, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	tries := []string{
		"", "Authorization:", "Authorization: Bearer", "Authorization: Bearer ", "Authorization: " + e.Token, "Authorization: Basic " + e.Token,
		"Authorization: bearer:" + e.Token, "Authorization: Bearer null", "Authorization: Bearer undefined", "Authorization: Bearer ..",
		"Authorization: Bearer " + head + "." + claims + ".", "Authorization: Bearer " + head + "." + claims, "Authorization: Bearer " + head +
			".." + signature,
		"Authorization: Bearer " + e.Token + "x", "Authorization: Bearer " + e.Token + "=", "Authorization: Bearer " + e.Token + " " + e.Token,
		"Authorization: Bearer " + strings.ToUpper(e.Token), "Authorization: Bearer \"" + e.Token + "\"", "Authorization: Bearer é",
		"Authorization: Bearer \xff\xfe",
		"Authorization: Bearer eyJhbGciOiJub25lIn0." + claims + ".", "Authorization: Bearer " + strings.Repeat(".", 8000),
		"Authorization: Bearer " + e.Token + "\r\nAuthorization: Bearer " + e.Token, "Cookie: token=" + e.Token, "X-Api-Key: " + e.Token,
	}
	for _, header := range tries {
		a.refused(hostile{name: "token", method: "GET", path: "/api/chat", as: "nobody", header: []string{header}, want: http.StatusUnauthorized})
	}
	a.refused(hostile{name: "token in the query", method: "GET", path: "/api/chat?access_token=" + e.Token + "&token=" + e.Token,
		as: "nobody", want: http.StatusUnauthorized})
	e.Get("/api/chat").Expect(http.StatusOK)

	// Then somebody guesses on, from one address: it has to wait.
	var last *parleytest.Response
	for range 40 {
		last = e.Get("/api/chat", parleytest.As("guess"))
	}
	if last.Expect(http.StatusTooManyRequests).Header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	a.logIsClean()
}

// attacker sends hostile requests to a gateway.
type attacker struct {
	*parleytest.Env
	t         *testing.T
	validator *parleytest.Validator
	sent      int
}

// refused sends a request and checks everything that must hold of its answer.
func (a *attacker) refused(h hostile) {
	a.t.Helper()
	a.sent++
	resp, body, err := a.exchange(h.method, a.text(h), h.cut)
	if err != nil {
		a.t.Errorf("%s: %s %.80s: no answer: %v", h.name, h.method, h.path, err)
		return
	}
	complain := func(format string, args ...any) {
		a.t.Helper()
		a.t.Errorf("%s: %s %.80s: %s\nanswer %d: %.300s", h.name, h.method, h.path, fmt.Sprintf(format, args...), resp.StatusCode, body)
	}
	if h.want != 0 && resp.StatusCode != h.want || resp.StatusCode < 400 || resp.StatusCode >= 500 {
		complain("want status %d (0: any refusal)", h.want)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Content-Type": "application/json", "Server": "",
	} {
		if got := resp.Header.Get(name); got != want {
			complain("header %s is %q, want %q", name, got, want)
		}
	}
	if id := resp.Header.Get("X-Request-Id"); id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' ||
			r > '~'
	}) {
		complain("X-Request-Id is %q", id)
	}
	if h.method == "HEAD" {
		return
	}
	var shape struct {
		Message string
		Errors  map[string][]string
	}
	if err := json.Unmarshal(body, &shape); err != nil || shape.Message == "" {
		complain("the body is no error")
	}
	if h.field != "" && len(shape.Errors[h.field]) == 0 {
		complain("no error on %s", h.field)
	}
	if (resp.StatusCode == http.StatusUnprocessableEntity) != (shape.Errors != nil) {
		complain("422 and errors go together")
	}
	if u, err := url.ParseRequestURI(h.path); err == nil && path.Clean(u.Path) == u.Path { // else it is not what the document describes
		r := &http.Request{Method: h.method, URL: u, Header: http.Header{}}
		a.validator.Check(r, resp.StatusCode, resp.Header, body)
	}
}

// text writes a request as bytes.
func (a *attacker) text(h hostile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n", h.method, h.path)
	if token := map[string]string{"": a.Token, "global": a.Global, "admin": a.Admin}[h.as]; token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	lines := strings.Join(h.header, "\r\n")
	if lines != "" {
		b.WriteString(lines + "\r\n")
	}
	if h.body != "" && !strings.Contains(lines, "Transfer-Encoding") && !strings.Contains(lines, "Content-Length") {
		b.WriteString("Content-Length: " + strconv.Itoa(len(h.body)) + "\r\n")
	}
	return b.String() + "\r\n" + h.body
}

// exchange writes bytes to a connection and reads an answer. The writing may fail: a server may
// answer and hang up before it has read everything.
func (a *attacker) exchange(method, text string, cut bool) (*http.Response, []byte, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(parleytest.WaitLimit)); err != nil {
		return nil, nil, err
	}
	written := make(chan struct{})
	defer func() { conn.Close(); <-written }()
	go func() {
		defer close(written)
		io.WriteString(conn, text)
		if cut {
			conn.(*net.TCPConn).CloseWrite()
		}
	}()
	reader := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode == http.StatusContinue {
			continue
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, body, err
	}
}

// state is everything that a request could leave behind: messages, what reached phones, groups,
// channels, tokens, files.
func (a *attacker) state() string {
	a.t.Helper()
	var b strings.Builder
	for _, path := range []string{"/api/chat?limit=100", "/api/chat/detail?contact_id=6281234567890@c.us", "/api/sandbox/cursor",
		"/api/sandbox/phones",
		"/api/sandbox/phones/6281234567890/messages", "/api/contact", "/api/groups"} {
		answer := a.Get(path).Expect(http.StatusOK)
		if path == "/api/contact" { // says when a phone was last seen
			fmt.Fprintln(&b, answer.Count("data"))
			continue
		}
		fmt.Fprintf(&b, "%s\n", answer.Body)
	}
	channels := a.Get("/api/manage/channels", parleytest.As(a.Admin)).Expect(http.StatusOK)
	tokens := a.Get("/api/manage/tokens", parleytest.As(a.Admin)).Expect(http.StatusOK)
	fmt.Fprintf(&b, "%s\n%d tokens\n", channels.Body, tokens.Count("data"))
	files := []string{}
	err := filepath.WalkDir(a.Data.Media(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		a.t.Error(err)
	}
	return b.String() + strings.Join(files, " ")
}

// logIsClean checks that no request was our own failure.
func (a *attacker) logIsClean() {
	a.t.Helper()
	lines := strings.Split(a.Log.String(), "\n")
	bad := slices.DeleteFunc(lines, func(line string) bool {
		if strings.Contains(line, "an untrusted proxy") { // some carry X-Forwarded-For; it is said once
			return true
		}
		return !strings.Contains(line, "level=ERROR") && !strings.Contains(line, "level=WARN") && !strings.Contains(line, "panic")
	})
	if len(bad) > 0 {
		a.t.Errorf("%d lines in the log, for example: %.2000s", len(bad), bad[0])
	}
}
