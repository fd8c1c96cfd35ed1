package browsertest

import (
	"net/http"
	"os"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

// TestNoNodes opens a server whose database is a file: no page of nodes is offered, and the page says why.
func TestNoNodes(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/nodes")
	p.see("This server is not a node of a cluster.")
	p.accessible()
	if offered := eval[bool](p, `!!document.querySelector('nav a[href*="/nodes"]')`); offered {
		t.Error("the page is offered")
	}
}

// TestNodes drains one of two nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	address := postgrestest.Start(t).Schema(t)
	c := start(t, func(cfg *app.Config) { cfg.Database = address })
	second := parleytest.Start(t, func(cfg *app.Config) {
		cfg.Database = address
		key, err := os.ReadFile(c.Data.Key())
		if err == nil {
			err = os.MkdirAll(string(cfg.DataDir), 0o700)
		}
		if err == nil {
			err = os.WriteFile(cfg.DataDir.Key(), key, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	admin := parleytest.As(c.Admin)
	c.Eventually("there are two nodes", func() bool { return c.Get("/api/manage/nodes", admin).Count("data") == 2 })
	other := c.Get("/api/manage/nodes", admin).Text("data.1.id") // the list is by id

	p := c.blank()
	link := c.Post("/api/manage/sign-in-link", "", admin).Expect(http.StatusOK).Text("data.url")
	p.visit(link)
	p.live()
	p.click("link", "Nodes")
	p.see("2 nodes share this database.")
	p.see("this node")
	p.accessible()
	p.click("button", "Drain node "+other)
	p.see("hands its channels over to the other nodes")
	p.accessible()
	p.click("button", "Cancel")
	p.click("button", "Drain node "+other)
	p.click("button", "Drain")
	p.see("Node " + other + " hands its channels over.")
	p.see("draining")
	// The last node that serves cannot be drained.
	p.until("no node can be drained", `!document.querySelector('main table button[aria-label^=Drain]')`)
	c.Eventually("the other node is not ready", func() bool {
		return second.Get("/readyz", parleytest.As("")).Status == http.StatusServiceUnavailable
	})
	p.accessible()
	p.visit("/settings")
	p.see("Back it up with pg_dump")
}
