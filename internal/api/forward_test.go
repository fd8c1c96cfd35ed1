package api

import (
	"context"
	"net/http"
	"net/http/httptest"
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
