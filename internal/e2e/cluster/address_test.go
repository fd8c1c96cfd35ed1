package cluster_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"parley/internal/postgrestest"
)

// TestNodesWithOneAddress starts a node with the address of another one, as a copied configuration does. It refuses. A node that
// was killed starts again with its own address.
func TestNodesWithOneAddress(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Schema(t)
	c := newNodes(t)
	taken := freeAddress(t)
	first := &node{address: address, addr: freeAddress(t), args: []string{"--node-listen", taken}}
	c.add(first)

	second := &node{address: address, addr: freeAddress(t)}
	second.c, second.data = c, c.dir+"/second"
	c.shareKey(second)
	own := freeAddress(t)
	for _, url := range []string{taken, balance(t, own, taken)} {
		second.args = []string{"--node-listen", own, "--node-url", "https://" + url}
		second.run()
		if err := second.cmd.Wait(); err == nil {
			t.Error("a node with the address of another one ended without an error")
		}
		log, err := os.ReadFile(second.data + ".log")
		if want := "has the address https://" + url + ", too"; err != nil || !strings.Contains(string(log), want) {
			t.Errorf("no %q in\n%s", want, log)
		}
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

// balance passes connections on to several addresses, one after the other, as a load balancer does.
func balance(t *testing.T, to ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to[i%len(to)])
			if err != nil {
				in.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					io.Copy(ends[0], ends[1])
					ends[0].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}
