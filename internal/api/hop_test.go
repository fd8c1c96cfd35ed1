package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"parley"
	"parley/internal/cluster"
	"parley/internal/doctor"
	"parley/internal/token"
)

// nodeSeven is the membership of a node.
type nodeSeven struct{ cluster.Single }

func (nodeSeven) ID() int64 { return 7 }

// forwarded is a request that another node forwarded, as it arrives.
func forwarded(e *env, h hop) *http.Request {
	hr := httptest.NewRequest("POST", "/api/send-message/text", strings.NewReader(hopBody))
	hr.Header = http.Header{"X-Channel": {"main"}, "Idempotency-Key": {"one"}, "Prefer": {"wait=1"}}
	(&hopSigner{keys: e.config.Keyring.Derive("requests between nodes")}).sign(hr, h)
	return hr
}

const hopBody = `{"contact_id":"6281234567890@c.us"}`

func validHop() hop {
	return hop{To: 7, Nonce: []byte("0123456789abcdef"), Sent: time.Now().Unix(), Body: bodyHash([]byte(hopBody)), From: "192.0.2.7",
		Token: "tok_1"}
}

// TestForwardedRequests checks what the node listener accepts: what another node signed for this one, whole and once.
func TestForwardedRequests(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.Cluster = nodeSeven{} })
	with := func(change func(*hop)) *http.Request {
		h := validHop()
		change(&h)
		return forwarded(e, h)
	}
	changed := func(change func(*http.Request)) *http.Request {
		hr := forwarded(e, validHop())
		change(hr)
		return hr
	}
	replaced := func(body string) *http.Request {
		return changed(func(hr *http.Request) { hr.Body = io.NopCloser(strings.NewReader(body)) })
	}
	refused := map[string]*http.Request{
		"no hop": changed(func(hr *http.Request) { hr.Header.Del(hopHeader) }),
		"no signature": changed(func(hr *http.Request) {
			hr.Header[hopHeader][0], _, _ = strings.Cut(hr.Header[hopHeader][0], ".")
		}),
		"another body":              replaced(strings.Replace(hopBody, "7890", "7891", 1)),
		"no body":                   replaced(""),
		"a larger body":             replaced(hopBody + strings.Repeat(" ", maxCall)),
		"another path":              changed(func(hr *http.Request) { hr.RequestURI = "/api/send-message/image" }),
		"another method":            changed(func(hr *http.Request) { hr.Method = "PUT" }),
		"another channel":           changed(func(hr *http.Request) { hr.Header.Set("X-Channel", "other") }),
		"a second channel":          changed(func(hr *http.Request) { hr.Header.Add("X-Channel", "other") }),
		"no key":                    changed(func(hr *http.Request) { hr.Header.Del("Idempotency-Key") }),
		"another type":              changed(func(hr *http.Request) { hr.Header.Set("Content-Type", "text/plain") }),
		"an event to continue from": changed(func(hr *http.Request) { hr.Header.Set("Last-Event-ID", "evt_1") }),
		"another hop": changed(func(hr *http.Request) {
			other := with(func(h *hop) { h.Token = "local_admin" }).Header.Get(hopHeader)
			_, signature, _ := strings.Cut(hr.Header.Get(hopHeader), ".")
			hop, _, _ := strings.Cut(other, ".")
			hr.Header.Set(hopHeader, hop+"."+signature)
		}),
		"for another node": with(func(h *hop) { h.To = 8 }),
		"too old":          with(func(h *hop) { h.Sent -= int64((hopLife + time.Minute).Seconds()) }),
		"of the future":    with(func(h *hop) { h.Sent += int64((hopLife + time.Minute).Seconds()) }),
		"a short nonce":    with(func(h *hop) { h.Nonce = h.Nonce[:8] }),
	}
	served := 0
	handler := e.handler.(*API).FromNodes(http.HandlerFunc(func(_ http.ResponseWriter, hr *http.Request) {
		served++
		text, _ := io.ReadAll(hr.Body)
		want := http.Header{"X-Channel": {"main"}, "Idempotency-Key": {"one"}, "Prefer": {"wait=1"}}
		if string(text) != hopBody || hr.RemoteAddr != "192.0.2.7:0" || len(hr.Header) != len(want) || hr.Header.Get("X-Channel") != "main" {
			t.Errorf("%s from %s with %v", text, hr.RemoteAddr, hr.Header)
		}
	}))
	call := func(hr *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, hr)
		return w
	}
	for name, hr := range refused {
		t.Run(name, func(t *testing.T) {
			if w := call(hr); w.Code != http.StatusForbidden || w.Header().Get(doctor.NodeHeader) != "7" {
				t.Errorf("status %d of node %s, want 403 of 7", w.Code, w.Header().Get(doctor.NodeHeader))
			}
		})
	}
	if served > 0 {
		t.Fatalf("%d requests were served", served)
	}
	hr := forwarded(e, validHop())
	// What is not signed does not arrive.
	hr.Header.Set("Cookie", "parley=secret")
	hr.Header.Set("Authorization", "Bearer other")
	hr.Header.Set("X-Forwarded-For", "127.0.0.1")
	if w := call(hr); w.Code != http.StatusOK || served != 1 {
		t.Errorf("status %d", w.Code)
	}
	if w := call(forwarded(e, validHop())); w.Code != http.StatusForbidden || served != 1 {
		t.Errorf("the same request again: status %d", w.Code)
	}
}

// TestHopsWhileKeysChange signs and verifies hops with different lines of secret.key.
func TestHopsWhileKeysChange(t *testing.T) {
	old, new, foreign := []byte("old"), []byte("new"), []byte("foreign")
	for _, c := range []struct {
		one, other [][]byte
		accepted   bool
	}{
		{[][]byte{new, old}, [][]byte{old}, true},
		{[][]byte{old}, [][]byte{new, old}, true},
		{[][]byte{new, old}, [][]byte{new}, true},
		{[][]byte{new}, [][]byte{new, old}, true},
		{[][]byte{new}, [][]byte{old}, false},
		{[][]byte{new, old}, [][]byte{foreign}, false},
	} {
		hr := httptest.NewRequest("POST", "/api/send-message/text", strings.NewReader(hopBody))
		(&hopSigner{keys: c.one}).sign(hr, validHop())
		if _, _, err := (&hopSigner{keys: c.other}).receive(hr, 7, time.Now()); (err == nil) != c.accepted {
			t.Errorf("signed with %s, verified with %s: %v", c.one, c.other, err)
		}
	}
}

// TestNonces remembers nonces for longer than a hop is valid, and a bounded number of them.
func TestNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n nonces
		next := byte(0)
		for range 20 {
			next++
			nonce := [nonceSize]byte{next}
			if !n.add(nonce) {
				t.Fatal("a new nonce is refused")
			}
			for range 5 {
				if n.add(nonce) {
					t.Fatal("a nonce is accepted again while its hop is valid")
				}
				time.Sleep(2 * hopLife / 5)
			}
		}
		if len(n.newer)+len(n.older) > 6 {
			t.Errorf("%d nonces are still remembered", len(n.newer)+len(n.older))
		}
		time.Sleep(5 * hopLife)
		for i := range maxNonces {
			if !n.add([nonceSize]byte{1, byte(i), byte(i >> 8), byte(i >> 16)}) {
				t.Fatalf("nonce %d is refused", i)
			}
		}
		if n.add([nonceSize]byte{2}) {
			t.Error("more nonces are remembered than may be")
		}
	})
}

// TestIdentityOfForwardedRequests asks as the token that another node verified, until it is revoked. A hop never makes a console
// session of a token, nor a token of a session.
func TestIdentityOfForwardedRequests(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.Cluster = nodeSeven{} })
	tokens, err := e.config.Store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tokens, func(t parley.Token) bool { return t.Kind == parley.GlobalToken })
	global := tokens[i].ID
	handler := e.handler.(*API).FromNodes(e.handler)
	n := byte(0)
	ask := func(path string, id parley.TokenID) int {
		n++
		hr := httptest.NewRequest("GET", path, nil)
		hr.Header.Set("X-Channel", "main")
		nonce := make([]byte, nonceSize)
		nonce[0] = n
		(&hopSigner{keys: e.config.Keyring.Derive("requests between nodes")}).sign(hr,
			hop{To: 7, Nonce: nonce, Sent: time.Now().Unix(), Body: bodyHash(nil), Token: id})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, hr)
		return w.Code
	}
	check := func(want int, path string, id parley.TokenID) {
		t.Helper()
		if got := ask(path, id); got != want {
			t.Errorf("%s as %q: %d, want %d", path, id, got, want)
		}
	}
	check(200, "/api/channel/health", global)
	check(200, "/api/channel/health", global) // known by now
	check(403, "/api/manage/channels", global)
	check(200, "/api/manage/channels", token.LocalToken(parley.AdminToken).ID)
	check(401, "/api/channel/health", "")
	check(401, "/api/channel/health", "tok_unknown")
	if err := e.config.Tokens.Revoke(t.Context(), global); err != nil {
		t.Fatal(err)
	}
	check(401, "/api/channel/health", global)
}

// TestNoTokenTravels looks at what another node gets of a request, and replays it there.
func TestNoTokenTravels(t *testing.T) {
	var e *env
	var got []*http.Request
	other := &otherOwner{}
	receiver := &hopSigner{}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		got = append(got, hr.Clone(hr.Context()))
		if _, _, err := receiver.receive(hr, 9, time.Now()); err != nil {
			t.Error(err)
		}
		if _, _, err := receiver.receive(hr, 9, time.Now()); err == nil {
			t.Error("the request is accepted again")
		}
	}))
	defer node.Close()
	other.node = cluster.Node{ID: 9, URL: node.URL}
	e = newEnv(t, func(c *Config) { c.Cluster = other })
	receiver.keys = e.config.Keyring.Derive("requests between nodes")
	resp := e.call("GET", "/api/channel/health", e.global, nil, "X-Channel", "main", "Cookie", "parley=secret", "Accept", "text/plain",
		"X-Forwarded-For", "192.0.2.1", "User-Agent", "", "X-Other", "other")
	if resp.StatusCode != http.StatusOK || len(got) != 1 {
		t.Fatalf("status %d, %d requests", resp.StatusCode, len(got))
	}
	for name := range got[0].Header {
		if name != hopHeader && name != "Accept-Encoding" && !slices.Contains(forwardedHeaders, name) {
			t.Errorf("%s is passed on", name)
		}
	}
	if got[0].Header.Get("Accept") != "text/plain" || got[0].Header.Get("X-Channel") != "main" {
		t.Errorf("the other node gets %v", got[0].Header)
	}
}

// TestForwardedHeaders has every header that the API documents read by the node that serves the channel.
func TestForwardedHeaders(t *testing.T) {
	doc := loadOpenAPI(t)
	check := func(parameters openapi3.Parameters) {
		for _, p := range parameters {
			if name := http.CanonicalHeaderKey(p.Value.Name); p.Value.In == "header" && !slices.Contains(forwardedHeaders, name) {
				t.Errorf("%s is not passed on", name)
			}
		}
	}
	for _, path := range doc.Paths.Map() {
		check(path.Parameters)
		for _, operation := range path.Operations() {
			check(operation.Parameters)
		}
	}
	if !slices.IsSorted(forwardedHeaders) {
		t.Error("the headers are signed in alphabetical order")
	}
}

// TestRefusedHop forwards to a node that does not accept it. The caller is not forbidden anything: the request is tried again.
func TestRefusedHop(t *testing.T) {
	other := &otherOwner{}
	e := newEnv(t, func(c *Config) { c.Cluster = other })
	node := httptest.NewServer(e.handler.(*API).FromNodes(e.handler)) // it is not node 9
	defer node.Close()
	other.node = cluster.Node{ID: 9, URL: node.URL}
	got := e.call("GET", "/api/channel/health", e.main, nil)
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", got.StatusCode, got.Header.Get("Retry-After"))
	}
	if !strings.Contains(e.logs.String(), "it does not accept the request") {
		t.Error("the log does not say why")
	}
}
