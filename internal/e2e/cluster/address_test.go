package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/internal/postgrestest"
)

// TestNodesWithOneAddress starts a node with the address of another one, as a copied configuration does. It refuses. A node that
// was killed starts again with its own address.
func TestNodesWithOneAddress(t *testing.T) {
	server := postgrestest.Start(t)
	address := server.Schema(t)
	c := newNodes(t)
	taken := freeAddress(t)
	first := &node{address: address, addr: freeAddress(t), args: []string{"--node-listen", taken}}
	c.add(first)

	second := &node{address: address, addr: freeAddress(t), args: []string{"--node-listen", freeAddress(t), "--node-url", "https://" + taken}}
	second.c, second.data = c, c.dir+"/second"
	c.shareKey(second)
	second.run()
	if err := second.cmd.Wait(); err == nil {
		t.Error("a node with the address of another one ended without an error")
	}
	log, err := os.ReadFile(second.data + ".log")
	if want := "has the address https://" + taken + ", too"; err != nil || !strings.Contains(string(log), want) {
		t.Errorf("no %q in\n%s", want, log)
	}

	first.kill()
	first.start()

	// It happens anyway: an address may begin to lead elsewhere later.
	second.args = nil
	second.start()
	_, schema, _ := strings.Cut(address, "search_path=")
	if _, err := server.Query(fmt.Sprintf("UPDATE %s.node SET url = 'https://%s' RETURNING 1", schema, taken)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{first, second} {
		if out := n.output("doctor"); !strings.Contains(out, "cannot be reached: at its address, https://"+taken+", node ") {
			t.Errorf("the doctor does not find the address that two nodes have:\n%s", out)
		}
	}
}
