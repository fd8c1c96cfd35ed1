package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/internal/cluster"
)

// nodes is a membership of a cluster with some nodes, the first of which is this one.
type nodes struct {
	cluster.Membership
	all []cluster.Node
}

func (n *nodes) Nodes(context.Context) ([]cluster.Node, error) { return n.all, nil }

func (n *nodes) Drain(_ context.Context, id int64) (bool, error) {
	for i := range n.all {
		if n.all[i].ID == id {
			n.all[i].Draining = true
			return true, nil
		}
	}
	return false, nil
}

func TestManageNodes(t *testing.T) {
	joined := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	of := &nodes{Membership: cluster.Single{}, all: []cluster.Node{
		{ID: 7, URL: "http://10.0.0.11:7276", Version: "1.0.0", Self: true, Shards: 64, StartedAt: joined, ExpiresAt: joined.Add(time.Minute)},
		{ID: 9, URL: "http://10.0.0.12:7276", Version: "1.0.0", Shards: 64, StartedAt: joined, ExpiresAt: joined.Add(time.Minute)},
	}}
	e := newEnv(t, func(c *Config) { c.Cluster = of })
	list := e.call("GET", "/api/manage/nodes", e.admin, nil)
	list.want(t, 200)
	const first = `{"id":"7","url":"http://10.0.0.11:7276","version":"1.0.0","state":"serving","self":true,"shards":64,` +
		`"started_at":"2026-11-16T09:00:00.000Z","renewed_at":"2026-11-16T09:00:54.000Z","expires_at":"2026-11-16T09:01:00.000Z"}`
	if !strings.Contains(list.text, first) {
		t.Errorf("list: %s", list.text)
	}
	for _, id := range []string{"8", "07", "x", "-7", "99999999999999999999"} {
		e.call("POST", "/api/manage/nodes/"+id+"/drain", e.admin, nil).want(t, 404)
	}
	for range 2 {
		if got := e.call("POST", "/api/manage/nodes/9/drain", e.admin, nil).want(t, 200); got["state"] != "draining" || got["self"] != false {
			t.Errorf("drained: %v", got)
		}
	}
	if last := e.call("POST", "/api/manage/nodes/7/drain", e.admin, nil); last.StatusCode != 400 || of.all[0].Draining {
		t.Errorf("the last node: %d %s", last.StatusCode, last.text)
	}
	e.call("POST", "/api/manage/nodes/7/drain", e.global, nil).want(t, 403)
	e.call("GET", "/api/manage/nodes", e.main, nil).want(t, 403)
}

func TestManageNodesOfAFile(t *testing.T) {
	e := newEnv(t)
	if list := e.call("GET", "/api/manage/nodes", e.admin, nil); list.StatusCode != 200 || !strings.Contains(list.text, `"data":[]`) {
		t.Errorf("list: %d %s", list.StatusCode, list.text)
	}
	got := e.call("POST", "/api/manage/nodes/1/drain", e.admin, nil)
	if got.StatusCode != 400 || !strings.Contains(got.text, "its database is a file") {
		t.Errorf("drain: %d %s", got.StatusCode, got.text)
	}
}
