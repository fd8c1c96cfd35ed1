package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/cluster"
)

// TestForwardedRequests checks what the node listener accepts.
func TestForwardedRequests(t *testing.T) {
	e := newEnv(t)
	f := newForwarder(e.config)
	const uri, body = "/api/send-message/text", `{"contact_id":"6281234567890@c.us"}`
	now := time.Now()
	said := hop{from: "192.0.2.7", sent: now, body: hashOf([]byte(body))}
	header := func(h hop) string { return h.String() + " " + f.sign(f.keys[0], "POST", uri, h.String()) }
	late, early := said, said
	late.sent, early.sent = now.Add(-signatureLife-time.Minute), now.Add(signatureLife+time.Minute)
	for name, c := range map[string]struct {
		method, uri, header, body string
		accepted                  bool
	}{
		"as signed":           {"POST", uri, header(said), body, true},
		"no header":           {"POST", uri, "", body, false},
		"another body":        {"POST", uri, header(said), strings.Replace(body, "7890", "7891", 1), false},
		"no body":             {"POST", uri, header(said), "", false},
		"a larger body":       {"POST", uri, header(said), body + strings.Repeat(" ", maxBody), false},
		"another path":        {"POST", "/api/send-message/image", header(said), body, false},
		"another method":      {"PUT", uri, header(said), body, false},
		"too old":             {"POST", uri, header(late), body, false},
		"of the future":       {"POST", uri, header(early), body, false},
		"another client":      {"POST", uri, strings.Replace(header(said), "192.0.2.7", "127.0.0.1", 1), body, false},
		"another token":       {"POST", uri, strings.Replace(header(said), " - ", " admin ", 1), body, false},
		"without a signature": {"POST", uri, said.String(), body, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got, from string
			handler := e.handler.(*API).FromNodes(http.HandlerFunc(func(_ http.ResponseWriter, hr *http.Request) {
				text, _ := io.ReadAll(hr.Body)
				got, from = string(text), hr.RemoteAddr
			}))
			hr := httptest.NewRequest(c.method, c.uri, strings.NewReader(c.body))
			hr.Header.Set(hopHeader, c.header)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, hr)
			if c.accepted && (w.Code != http.StatusOK || got != body || from != "192.0.2.7:0") {
				t.Errorf("%d, body %q from %s", w.Code, got, from)
			}
			if !c.accepted && w.Code != http.StatusForbidden {
				t.Errorf("status %d, want 403", w.Code)
			}
		})
	}
}

// otherOwner is a membership in which another node owns every channel.
type otherOwner struct {
	cluster.Single
	node cluster.Node
	gone atomic.Bool
}

func (o *otherOwner) Owner(context.Context, string) (cluster.Node, bool) { return o.node, true }

func (o *otherOwner) Nodes(context.Context) ([]cluster.Node, error) {
	if o.gone.Load() {
		return nil, nil
	}
	return []cluster.Node{o.node}, nil
}

// TestNodeThatDoesNotAnswer forwards to a node that never answers, until it is no longer a member.
func TestNodeThatDoesNotAnswer(t *testing.T) {
	asked, stop := make(chan struct{}), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, hr *http.Request) {
		close(asked)
		<-stop
	}))
	defer silent.Close()
	defer close(stop)
	other := &otherOwner{node: cluster.Node{ID: 9, URL: silent.URL}}
	e := newEnv(t, func(c *Config) { c.Cluster = other })
	go func() {
		<-asked
		other.gone.Store(true)
	}()
	got := e.call("GET", "/api/channel/health", e.main, nil)
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", got.StatusCode, got.Header.Get("Retry-After"))
	}
}

// expired is the membership of a node that could not renew it.
type expired struct{ cluster.Single }

func (expired) MaySend() bool { return false }

// TestErrorsOfAnExpiredNode asks a node that may no longer own a channel. Its errors may be wrong, so it says to try again.
func TestErrorsOfAnExpiredNode(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.Cluster = expired{} })
	got := e.call("POST", "/api/send-message/text", e.main, `{"contact_id":"nobody"}`)
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", got.StatusCode, got.Header.Get("Retry-After"))
	}
}
