package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/network"
)

// caller is a driver whose network calls us. Its signature is the header Signed, and each line of a body is a call of the channel that
// the line begins with.
type caller struct {
	network.Driver
	verify func() // nil: nothing happens

	mu       sync.Mutex
	verified int
	received []string
}

func (d *caller) Info() network.Info { return network.Info{Title: "Calls", Kinds: parley.Kinds} }

func (d *caller) Open(context.Context, parley.Channel, network.Sink) (network.Session, error) {
	return &silentSession{}, nil
}

type silentSession struct{ network.Session }

func (*silentSession) Close() error { return nil }

func (d *caller) Challenge(_ context.Context, c parley.Channel, query url.Values) (string, error) {
	if query.Get("token") != "right" {
		return "", parley.Errorf(parley.Forbidden, "The token is wrong.")
	}
	return query.Get("echo"), nil
}

func (d *caller) Verify(_ context.Context, c parley.Channel, header http.Header, body []byte) (calls []network.Call, err error) {
	d.mu.Lock()
	d.verified++
	d.mu.Unlock()
	if d.verify != nil {
		d.verify()
	}
	if header.Get("Signed") != "right" {
		return nil, parley.Errorf(parley.Forbidden, "The signature is wrong.")
	}
	for line := range strings.Lines(string(body)) {
		code, _, _ := strings.Cut(line, " ")
		calls = append(calls, network.Call{Channel: parley.ChannelCode(code), Body: []byte(strings.TrimSpace(line))})
	}
	return calls, nil
}

func (d *caller) Receive(_ context.Context, call network.Call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes.Contains(call.Body, []byte("broken")) {
		return errors.New("the disk is full")
	}
	d.received = append(d.received, string(call.Body))
	return nil
}

func (d *caller) takeReceived() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.received = nil }()
	return strings.Join(d.received, ", ")
}

// newCaller makes an API with the channels toko and warung on a network that calls us.
func newCaller(t *testing.T, change ...func(*Config)) (*env, *caller) {
	driver := &caller{}
	e := newEnv(t, append(change, func(c *Config) { c.Gateway.Drivers["caller"] = driver })...)
	for _, code := range []parley.ChannelCode{"toko", "warung"} {
		must(e.config.Gateway.CreateChannel(t.Context(), parley.Channel{Code: code, Name: "Calls", Network: "caller"}))(t)
	}
	return e, driver
}

func TestCallsOfANetwork(t *testing.T) {
	e, driver := newCaller(t)
	for _, c := range []struct {
		name, method, path, signed, body string
		status                           int
		response, received               string
	}{
		{"a challenge", "GET", "/network/caller/toko?token=right&echo=<b>42", "", "", 200, "<b>42", ""},
		{"a wrong challenge", "GET", "/network/caller/toko?token=wrong", "", "", 403, "The token is wrong.", ""},
		{"an unknown network", "POST", "/network/none/toko", "right", "toko hi", 404, "No network calls", ""},
		{"a network that does not call", "POST", "/network/sandbox/main", "right", "main hi", 404, "No network calls", ""},
		{"an unknown channel", "POST", "/network/caller/none", "right", "none hi", 404, "No network calls", ""},
		{"a channel of another network", "POST", "/network/caller/main", "right", "main hi", 404, "No network calls", ""},
		{"another method", "PUT", "/network/caller/toko", "right", "toko hi", 405, "", ""},
		{"a wrong signature", "POST", "/network/caller/toko", "wrong", "toko hi", 403, "The signature is wrong.", ""},
		{"one call", "POST", "/network/caller/toko", "right", "toko hi", 200, "OK", "toko hi"},
		{"two channels", "POST", "/network/caller/toko", "right", "toko a\nwarung b", 200, "OK", "toko a, warung b"},
		{"one is not stored", "POST", "/network/caller/toko", "right", "toko broken\nwarung b", 503, "Send it again", "warung b"},
		{"one channel is gone", "POST", "/network/caller/toko", "right", "gone a\nwarung b", 503, "Send it again", "warung b"},
		{"the largest", "POST", "/network/caller/toko", "right", "toko" + strings.Repeat(" ", maxCall-5) + "\n", 200, "OK", "toko"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := e.call(c.method, c.path, "", c.body, "Signed", c.signed)
			if got := driver.takeReceived(); r.StatusCode != c.status || !strings.Contains(r.text, c.response) || got != c.received {
				t.Errorf("status %d %q, received %q", r.StatusCode, r.text, got)
			}
			if kind := r.Header.Get("Content-Type"); r.StatusCode == 200 && kind != typePlain[0] {
				t.Errorf("a browser could show %s", kind)
			}
		})
	}
	verified := driver.verified
	for name, body := range map[string]io.Reader{"of known length": bytes.NewReader(make([]byte, maxCall+1)),
		"of unknown length": io.MultiReader(bytes.NewReader(make([]byte, maxCall+1)))} {
		hr := httptest.NewRequest("POST", "/network/caller/toko", body)
		w := httptest.NewRecorder()
		e.handler.ServeHTTP(w, hr)
		if w.Code != http.StatusRequestEntityTooLarge || driver.verified != verified {
			t.Errorf("a body that is too large, %s: status %d", name, w.Code)
		}
	}
	if logs := e.logs.String(); strings.Contains(logs, "warung b") || strings.Contains(logs, "toko hi") {
		t.Error("the log has a body")
	}
}

// TestStrangersCallANetworksAddress has somebody guess, and hold large bodies.
func TestStrangersCallANetworksAddress(t *testing.T) {
	e, driver := newCaller(t, func(c *Config) { c.AuthFailures = 3 })
	for i, want := range []int{403, 404, 403, 429, 429} {
		path := map[bool]string{true: "/network/caller/guess", false: "/network/caller/toko"}[want == 404]
		if r := e.call("POST", path, "", "toko hi", "Signed", "guess"); r.StatusCode != want {
			t.Errorf("guess %d: status %d, want %d", i, r.StatusCode, want)
		}
	}
	if r := e.call("POST", "/network/caller/toko", "", "toko hi", "Signed", "right"); r.StatusCode != 200 {
		t.Errorf("the network itself, from the same address: status %d", r.StatusCode)
	}
	reading, finish := make(chan struct{}), make(chan struct{})
	driver.verify = func() {
		reading <- struct{}{}
		<-finish
	}
	var held sync.WaitGroup
	large := "toko" + strings.Repeat(" ", smallCall)
	for range maxLargeCalls {
		held.Go(func() { e.call("POST", "/network/caller/toko", "", large, "Signed", "right") })
		<-reading
	}
	if r := e.call("POST", "/network/caller/toko", "", large, "Signed", "right"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one large body more: status %d", r.StatusCode)
	}
	held.Go(func() {
		if r := e.call("POST", "/network/caller/toko", "", "toko small", "Signed", "right"); r.StatusCode != 200 {
			t.Errorf("a small body meanwhile: status %d", r.StatusCode)
		}
	})
	<-reading
	close(finish)
	held.Wait()
	driver.verify = nil
	if r := e.call("POST", "/network/caller/toko", "", large, "Signed", "right"); r.StatusCode != 200 {
		t.Errorf("a large body afterwards: status %d", r.StatusCode)
	}
}

// TestCallsOfChannelsOnOtherNodes forwards a call to the node that serves its channel, signed for it.
func TestCallsOfChannelsOnOtherNodes(t *testing.T) {
	other := &otherOwner{}
	e, driver := newCaller(t, func(c *Config) { c.Cluster = other })
	status := http.StatusOK
	var got []string
	owner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		signer := &hopSigner{keys: e.config.Keyring.Derive("requests between nodes")}
		h, body, err := signer.receive(hr, 9, time.Now())
		if err != nil || h.Token != "" || hr.Header.Get("Signed") != "" {
			t.Errorf("the other node got %+v, %v", h, err)
		}
		got = append(got, hr.Method+" "+hr.URL.Path+" "+string(body))
		w.WriteHeader(status)
	}))
	defer owner.Close()
	other.node = cluster.Node{ID: 9, URL: owner.URL}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		if status = want; e.call("POST", "/network/caller/toko", "", "warung a", "Signed", "right").StatusCode != want {
			t.Errorf("the other node responds %d, and this one does not", want)
		}
	}
	if want := "POST /network/caller/warung warung a"; len(got) != 2 || got[0] != want {
		t.Errorf("the other node got %q", got)
	}
	if e.call("POST", "/network/caller/toko", "", "warung a", "Signed", "wrong"); len(got) != 2 {
		t.Error("a stranger's request was forwarded")
	}
	owner.Close()
	if r := e.call("POST", "/network/caller/toko", "", "warung a", "Signed", "right"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without the other node: status %d", r.StatusCode)
	}
	if driver.takeReceived() != "" {
		t.Error("it was received here")
	}
}

// TestForwardedCalls has another node forward a verified call: the hop replaces the signature.
func TestForwardedCalls(t *testing.T) {
	e, driver := newCaller(t, func(c *Config) { c.Cluster = nodeSeven{} })
	handler := e.handler.(*API).FromNodes(e.handler)
	call := func(path string, sign bool) int {
		const body = "toko hi"
		hr := httptest.NewRequest("POST", path, strings.NewReader(body))
		if h := validHop(); sign {
			h.Token, h.Body = "", bodyHash([]byte(body))
			(&hopSigner{keys: e.config.Keyring.Derive("requests between nodes")}).sign(hr, h)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, hr)
		return w.Code
	}
	if status := call("/network/caller/toko", true); status != 200 || driver.takeReceived() != "toko hi" || driver.verified > 0 {
		t.Errorf("status %d", status)
	}
	if status := call("/network/caller/warung", false); status != 403 || driver.takeReceived() != "" {
		t.Errorf("without a hop: status %d", status)
	}
}
