package cluster_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/postgrestest"
)

// wire is the network between nodes that do not use TLS: it records the requests that nodes forward to one of them.
type wire struct {
	node string // where requests go on
	mu   sync.Mutex
	seen []captured
}

type captured struct {
	header http.Header
	method string
	path   string
	body   []byte
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, hr *http.Request) {
	body, _ := io.ReadAll(hr.Body)
	hr.Body = io.NopCloser(bytes.NewReader(body))
	if hr.Header.Get("Parley-Hop") != "" {
		w.mu.Lock()
		w.seen = append(w.seen, captured{hr.Header.Clone(), hr.Method, hr.URL.RequestURI(), body})
		w.mu.Unlock()
	}
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.node}).ServeHTTP(rw, hr)
}

// find returns the request that was forwarded with a path.
func (w *wire) find(path string) (captured, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.seen {
		if c.path == path {
			return c, true
		}
	}
	return captured{}, false
}

// send sends a captured request to a node, with other values of its header.
func (c captured) send(t *testing.T, node string, change ...string) int {
	t.Helper()
	req, err := http.NewRequest(c.method, "http://"+node+c.path, bytes.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = c.header.Clone()
	for i := 0; i < len(change); i += 2 {
		req.Header.Set(change[i], change[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestCapturedNodeRequests is at the network between two nodes without TLS. It finds no token there, and cannot send a request again:
// not as it was, not for another channel, not to another node.
func TestCapturedNodeRequests(t *testing.T) {
	t.Parallel()
	address := postgrestest.Start(t).Schema(t)
	c := newNodes(t)
	wires := []*wire{{node: freeAddress(t)}, {node: freeAddress(t)}}
	for _, w := range wires {
		between := httptest.NewServer(w)
		defer between.Close()
		c.add(&node{address: address, addr: freeAddress(t), args: []string{"--node-listen", w.node, "--node-url", between.URL}})
	}
	c.tokens()
	c.createChannels("one", "two")
	c.balanced()

	const send, number = "/api/send-message/text", "6281234567890"
	var sent captured
	var owner int
	c.eventually("a node forwards a message to the other", func() bool {
		for _, at := range c.all {
			body := `{"contact_id":"` + number + `@c.us","message":"halo"}`
			status, _, _, err := c.call(at, http.MethodPost, send, c.global, "one", body, "the-same-key")
			if err != nil || status != http.StatusOK {
				return false
			}
		}
		for i, w := range wires {
			if found, ok := w.find(send); ok {
				sent, owner = found, i
				return true
			}
		}
		return false
	})
	for i, node := range c.all { // the token of the command line, for a person at the other node
		node.command("channel", "set", "one", "--name", "Shop "+string(rune('1'+i)))
	}
	for _, w := range wires {
		w.mu.Lock()
		all := slices.Clone(w.seen)
		w.mu.Unlock()
		for _, seen := range all {
			for name, values := range seen.header {
				if text := strings.Join(values, " "); name == "Authorization" || name == "Cookie" || strings.Contains(text, c.global) ||
					strings.Contains(text, "local_") {
					t.Errorf("%s is on the network: %s", name, text)
				}
			}
		}
	}
	for what, status := range map[string]int{
		"as it was":           sent.send(t, wires[owner].node),
		"for another channel": sent.send(t, wires[owner].node, "X-Channel", "two"),
		"with another key":    sent.send(t, wires[owner].node, "Idempotency-Key", "another"),
		"to another node":     sent.send(t, wires[1-owner].node),
	} {
		if status != http.StatusForbidden {
			t.Errorf("the request %s: status %d, want 403", what, status)
		}
	}
	for _, channel := range []string{"one", "two"} {
		var list struct{ Data []struct{ Body string } }
		c.get("/api/sandbox/phones/"+number+"/messages", channel, &list)
		if want := map[string]int{"one": 1, "two": 0}[channel]; len(list.Data) != want {
			t.Errorf("the phone got %d messages of channel %s, want %d", len(list.Data), channel, want)
		}
	}
}
