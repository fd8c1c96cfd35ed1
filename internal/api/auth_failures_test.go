package api

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
)

// from sends a request for a channel's health, from an address, without the network. Headers are pairs.
func (e *env) from(remote, token string, headers ...string) *httptest.ResponseRecorder {
	return e.getFrom(remote, "/api/channel/health", token, headers...)
}

// getFrom sends a GET request from an address, without the network. Headers are pairs.
func (e *env) getFrom(remote, address, token string, headers ...string) *httptest.ResponseRecorder {
	hr := httptest.NewRequest("GET", address, nil)
	hr.RemoteAddr = remote
	if token != "" {
		hr.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		hr.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, hr)
	return w
}

// TestValidTokenPassesBesideFailures interleaves thousands of requests of one address. No valid one is refused, a
// token that we signed is 401 however often it comes, and only guesses become 429.
func TestValidTokenPassesBesideFailures(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.AuthFailures = 0 })
	revoked, orphan := e.token(parley.Token{Kind: parley.GlobalToken}), e.second
	if err := e.config.Tokens.Revoke(t.Context(), must(e.config.Tokens.Verify(t.Context(), revoked))(t).ID); err != nil {
		t.Fatal(err)
	}
	if _, err := e.config.Gateway.DeleteChannel(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	forged := e.main[:strings.LastIndexByte(e.main, '.')+1] + strings.Repeat("A", 86)
	const remote = "192.0.2.1:1000"
	for i := range 1000 {
		for range 5 {
			if w := e.from(remote, e.main); w.Code != 200 {
				t.Fatalf("round %d: the valid token is refused: %d %s", i, w.Code, w.Body)
			}
		}
		for name, token := range map[string]string{"revoked": revoked, "of a deleted channel": orphan} {
			if w := e.from(remote, token); w.Code != 401 {
				t.Fatalf("round %d: the token %s: %d %s", i, name, w.Code, w.Body)
			}
		}
		want := 401
		if 3*i >= authFailures {
			want = 429
		}
		for name, token := range map[string]string{"a guess": "x", "a forged one": forged, "none": ""} {
			if w := e.from(remote, token); w.Code != want {
				t.Fatalf("round %d: %s: %d, want %d", i, name, w.Code, want)
			}
		}
	}
}

// TestUntrustedProxyIsNotCounted has many callers come through a proxy on this machine. While it is not trusted they
// all have one address, so nobody is counted; once it is, each pays for its own guesses.
func TestUntrustedProxyIsNotCounted(t *testing.T) {
	noted := 0
	e := newEnv(t, func(c *Config) { c.AuthFailures, c.OnUntrustedProxy = 0, func() { noted++ } })
	for i := range 3 * authFailures {
		for _, header := range []string{"X-Forwarded-For", "X-Real-Ip"} {
			if w := e.from("127.0.0.1:1000", "guess", header, fmt.Sprintf("203.0.113.%d", i)); w.Code != 401 {
				t.Fatalf("guess %d: %d", i, w.Code)
			}
		}
	}
	if noted != 1 || strings.Count(e.logs.String(), "--behind-proxy") != 1 {
		t.Errorf("noted %d times, log %s", noted, e.logs)
	}
	for i := range authFailures + 1 { // what comes from this machine itself is counted
		if w := e.from("127.0.0.1:1000", "guess"); (w.Code == 429) != (i == authFailures) {
			t.Fatalf("guess %d of this machine: %d", i+1, w.Code)
		}
	}
	for i := range authFailures + 1 { // as is another machine, whatever it says of itself
		if w := e.from("192.0.2.1:1000", "guess", "X-Forwarded-For", "127.0.0.1"); (w.Code == 429) != (i == authFailures) {
			t.Fatalf("guess %d of another machine: %d", i+1, w.Code)
		}
	}

	noted = 0
	e.config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	e.config.Metrics = prometheus.NewRegistry()
	e.handler = New(e.config)
	for i := range authFailures + 1 {
		if w := e.from("127.0.0.1:1000", "guess", "X-Forwarded-For", "203.0.113.9"); (w.Code == 429) != (i == authFailures) {
			t.Fatalf("guess %d through the trusted proxy: %d", i+1, w.Code)
		}
	}
	if w := e.from("127.0.0.1:1000", "guess", "X-Forwarded-For", "203.0.113.10"); w.Code != 401 || noted != 0 {
		t.Errorf("another caller behind the trusted proxy: %d, noted %d", w.Code, noted)
	}
}
