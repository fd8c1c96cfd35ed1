package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

const nodesPath = "/api/manage/nodes"

// TestNodesOfAFile asks a server whose database is a file: it is alone.
func TestNodesOfAFile(t *testing.T) {
	t.Parallel()
	if postgrestest.Running() {
		t.Skip("it is about a database that is a file")
	}
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	if list := e.Get(nodesPath, admin).Expect(http.StatusOK); !strings.Contains(string(list.Body), `"data":[]`) {
		t.Errorf("the list is %s", list.Body)
	}
	wantValue(t, e.Get("/api/manage/server", admin), "data.cluster", false)
	for _, id := range []string{"1", "x", "0"} {
		e.Post(nodesPath+"/"+id+"/drain", "", admin).ExpectError(http.StatusBadRequest, "its database is a file")
	}
	for _, token := range []string{e.Token, e.Global} {
		e.Get(nodesPath, parleytest.As(token)).Expect(http.StatusForbidden)
		e.Post(nodesPath+"/1/drain", "", parleytest.As(token)).Expect(http.StatusForbidden)
	}
}

// node is a change that makes a gateway a node on a database, with the key of the first one.
func node(t *testing.T, address string, first *parleytest.Env) func(*app.Config) {
	return func(c *app.Config) {
		c.Database = address
		if first == nil {
			return
		}
		key, err := os.ReadFile(first.Data.Key())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(string(c.DataDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.DataDir.Key(), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// nodeList is what a node says of all.
type nodeList []struct {
	ID     string
	Self   bool
	Shards int
}

func listNodes(e *parleytest.Env) nodeList {
	e.T.Helper()
	var list struct{ Data nodeList }
	if err := json.Unmarshal(e.Get(nodesPath, parleytest.As(e.Admin)).Expect(http.StatusOK).Body, &list); err != nil {
		e.T.Fatal(err)
	}
	return list.Data
}

func (l nodeList) self() (id string) {
	for _, n := range l {
		if n.Self {
			id = n.ID
		}
	}
	return id
}

func (l nodeList) shards(id string) int {
	for _, n := range l {
		if n.ID == id {
			return n.Shards
		}
	}
	return -1
}

// TestNodesOfACluster lists two nodes and drains one, asked of the other.
func TestNodesOfACluster(t *testing.T) {
	if postgrestest.Running() {
		t.Skip("it has a database for two nodes of its own")
	}
	address := postgrestest.Start(t).Schema(t)
	first := parleytest.Start(t, node(t, address, nil))
	admin := parleytest.As(first.Admin)
	wantValue(t, first.Get("/api/manage/server", admin), "data.cluster", true)
	own := listNodes(first).self()
	first.Post(nodesPath+"/"+own+"/drain", "", admin).ExpectError(http.StatusBadRequest, "No other node serves channels")
	if found := string(first.Get("/api/manage/doctor", admin).Body); !strings.Contains(found, "No other node serves channels") ||
		!strings.Contains(found, "none is synchronous") || !strings.Contains(found, "database clock") {
		t.Errorf("the doctor of the only node: %s", found)
	}
	first.Post("/api/manage/backup", "", admin).ExpectError(http.StatusBadRequest, "pg_dump")
	first.Get("/api/manage/backup/now", admin).ExpectError(http.StatusBadRequest, "pg_dump")

	second := parleytest.Start(t, node(t, address, first))
	first.Eventually("both have half of the shards", func() bool {
		list := listNodes(first)
		return len(list) == 2 && list[0].Shards == 64 && list[1].Shards == 64 && list.self() == own
	})
	other := listNodes(second).self()
	found := string(first.Get("/api/manage/doctor", admin).Body)
	if !strings.Contains(found, fmt.Sprintf("2 nodes, this is node %s with 64 shards", own)) ||
		strings.Contains(found, "cannot reach") || strings.Contains(found, "cannot be reached") {
		t.Errorf("the doctor of two nodes: %s", found)
	}
	first.Post(nodesPath+"/999/drain", "", admin).Expect(http.StatusNotFound)
	for range 2 {
		drained := first.Post(nodesPath+"/"+other+"/drain", "", admin).Expect(http.StatusOK)
		wantValue(t, drained, "data.state", "draining")
		wantValue(t, drained, "data.id", other)
	}
	first.Eventually("the drained node has no shards", func() bool {
		list := listNodes(first)
		return list.shards(other) == 0 && list.shards(own) == 128
	})
	if found := string(second.Get("/api/manage/doctor", parleytest.As(second.Admin)).Body); !strings.Contains(found, "It is draining") {
		t.Errorf("the doctor of a drained node: %s", found)
	}
	first.Post(nodesPath+"/"+own+"/drain", "", admin).ExpectError(http.StatusBadRequest, "No other node serves channels")
	second.Get("/readyz", parleytest.As("")).Expect(http.StatusServiceUnavailable)
}
