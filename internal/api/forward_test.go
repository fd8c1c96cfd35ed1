package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/cluster"
)

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

// dyingOwner is a membership in which another node owns every channel until it dies, then this one.
type dyingOwner struct{ otherOwner }

func (o *dyingOwner) Owner(ctx context.Context, key string) (cluster.Node, bool) {
	if o.gone.Load() {
		return cluster.Node{Self: true}, true
	}
	return o.otherOwner.Owner(ctx, key)
}

// TestValidationOfADyingNode validates a code on a node that dies between the commit and the response. The caller, who sent no key,
// gets the result nevertheless, and the code is used once.
func TestValidationOfADyingNode(t *testing.T) {
	membership := &dyingOwner{}
	membership.gone.Store(true)
	e := newEnv(t, func(c *Config) { c.Cluster = membership })
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		membership.gone.Store(true)
		hr.Header.Del(hopHeader)
		hr.Header.Set("Authorization", "Bearer "+e.main)
		done := httptest.NewRecorder()
		e.handler.ServeHTTP(done, hr)
		if !strings.Contains(done.Body.String(), "APPROVED") {
			t.Errorf("the other node answered %s", done.Body)
		}
		panic(http.ErrAbortHandler)
	}))
	defer dying.Close()
	const contact = "6281234567890@c.us"
	e.call("POST", "/api/otp/code/request", e.main, m{"contact_id": contact}).want(t, 200)
	shown := e.call("GET", "/api/sandbox/phones/6281234567890/messages?wait=30", e.main, nil)
	shown.want(t, 200)
	code := shown.json["data"].([]any)[0].(m)["codes"].([]any)[0]
	membership.node = cluster.Node{ID: 9, URL: dying.URL}
	membership.gone.Store(false)
	body := m{"contact_id": contact, "code": code}
	for _, want := range []string{"APPROVED", "INVALID"} {
		got := e.call("POST", "/api/otp/code/validate", e.main, body)
		if got.StatusCode != http.StatusOK || !strings.Contains(got.text, want) {
			t.Errorf("status %d: %s, want %s", got.StatusCode, got.text, want)
		}
	}
}
