package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/cluster"
	"parley/internal/postgrestest"
)

// lab is a network on this machine: PostgreSQL and three nodes in network namespaces of their own, joined by a bridge. The test
// itself is at the bridge, so clients and the webhook reach every node.
type lab struct {
	t      *testing.T
	id     int
	server *postgrestest.Server
	schema string
	*nodes
}

// labs is how many there were: each has names and addresses of its own.
var labs atomic.Int32

// place is a namespace of a lab. Nodes have the numbers from 0.
type place int

const database place = -1

func (l *lab) bridge() string                { return fmt.Sprintf("plb%d", l.id) }
func (l *lab) namespace(p place) string      { return fmt.Sprintf("parley-%d-%d", l.id, p+1) }
func (l *lab) port(p place) string           { return fmt.Sprintf("plv%d-%d", l.id, p+1) }
func (l *lab) host(p place) string           { return fmt.Sprintf("10.231.%d.%d", l.id%250, 11+p) }
func (l *lab) outside() string               { return fmt.Sprintf("10.231.%d.1", l.id%250) }
func (l *lab) network() string               { return l.outside() + "/24" }
func (l *lab) addressOf(p place) string      { return "https://" + l.host(p) + ":7276" }
func (l *lab) links(p, other place) []string { return []string{l.port(p), l.port(other)} }

// newLab makes the namespaces and starts PostgreSQL and the nodes in them. The test is skipped where that is not possible.
func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv("PARLEY_POSTGRES") == "" {
		t.Skip("PARLEY_POSTGRES is not set")
	}
	l := &lab{t: t, id: (os.Getpid() + 100*int(labs.Add(1))) % 100_000}
	if os.Getuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	t.Cleanup(l.remove)
	if err := l.make(); err != nil {
		t.Skipf("network namespaces cannot be made here: %v", err)
	}
	l.server = postgrestest.StartWith(t, postgrestest.Options{Host: l.host(database), Port: "5432", Namespace: l.namespace(database)})
	address := l.server.Schema(t)
	_, l.schema, _ = strings.Cut(address, "search_path=")
	l.nodes = newNodes(t)
	l.nodes.host = l.outside()
	for i := range place(3) {
		l.nodes.add(&node{address: address, addr: l.host(i) + ":7275", namespace: l.namespace(i), args: []string{
			"--node-listen", l.host(i) + ":7276", "--behind-proxy", "--public-url", "https://chat.example.com", "--allow-private", l.network()}})
	}
	l.nodes.tokens()
	return l
}

func (l *lab) make() error {
	err := run("ip", "link", "add", l.bridge(), "type", "bridge")
	err = errors.Join(err, run("ip", "addr", "add", l.network(), "dev", l.bridge()), run("ip", "link", "set", l.bridge(), "up"))
	for p := database; p < 3 && err == nil; p++ {
		err = errors.Join(
			run("ip", "netns", "add", l.namespace(p)),
			run("ip", "link", "add", l.port(p), "type", "veth", "peer", "name", "eth0", "netns", l.namespace(p)),
			run("ip", "link", "set", l.port(p), "master", l.bridge(), "up"),
			run("ip", "-n", l.namespace(p), "addr", "add", l.host(p)+"/24", "dev", "eth0"),
			run("ip", "-n", l.namespace(p), "link", "set", "lo", "up"),
			run("ip", "-n", l.namespace(p), "link", "set", "eth0", "up"),
			run("bridge", "link", "set", "dev", l.port(p), "isolated", "off"))
	}
	return err
}

func (l *lab) remove() {
	for p := database; p < 3; p++ {
		run("ip", "link", "del", l.port(p))
		run("ip", "netns", "del", l.namespace(p))
	}
	run("ip", "link", "del", l.bridge())
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// cut drops all packets between two places. The bridge passes nothing between ports that are both isolated; the others reach
// both. No connection ends by it.
func (l *lab) cut(p, other place) { l.isolate("on", p, other) }

// join undoes cut.
func (l *lab) join(p, other place) { l.isolate("off", p, other) }

func (l *lab) isolate(state string, p, other place) {
	l.t.Helper()
	for _, port := range l.links(p, other) {
		if err := run("bridge", "link", "set", "dev", port, "isolated", state); err != nil {
			l.t.Fatal(err)
		}
	}
}

// owned returns a channel of the load that a node serves.
func (l *lab) owned(by place) string {
	l.t.Helper()
	for i := range loadChannels {
		code := channelCode(i)
		owner, err := l.server.Query(fmt.Sprintf("SELECT url FROM %[1]s.node JOIN %[1]s.shard ON shard.node = node.id WHERE shard.id = %[2]d",
			l.schema, cluster.ToShard(code)))
		if err != nil {
			l.t.Fatal(err)
		}
		if owner == l.addressOf(by) {
			return code
		}
	}
	l.t.Fatalf("node %d serves no channel", by)
	return ""
}

// owners lists who serves what.
func (l *lab) owners() string {
	l.t.Helper()
	list, err := l.server.Query(fmt.Sprintf("SELECT string_agg(id || ' ' || coalesce(node, 0), ',' ORDER BY id) FROM %s.shard", l.schema))
	if err != nil {
		l.t.Fatal(err)
	}
	return list
}

// TestNodePartitionedFromDatabase drops all packets between a node and PostgreSQL under load, for longer than its membership
// lasts. PARLEY_NODE_PARTITIONS is how often.
func TestNodePartitionedFromDatabase(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	l := startLoad(t, lab.nodes)
	l.progress()
	for i := range l.times("PARLEY_NODE_PARTITIONS") {
		cut := place(i % 3)
		before := lab.all[cut].memberships(t)
		lab.cut(cut, database)
		l.progress() // also of its channels: the others took over
		lab.eventually("the node without a database is not ready", func() bool {
			resp, err := lab.client.Get("http://" + lab.all[cut].addr + "/readyz")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusServiceUnavailable
		})
		lab.join(cut, database)
		lab.eventually("it joins again", func() bool { return lab.all[cut].memberships(t) > before })
		l.progress()
	}
	l.judge()
}

// TestNodesPartitionedFromEachOther drops all packets between two nodes under load. Channels do not move. Requests that one must
// forward to the other get 503 with Retry-After; all others work. PARLEY_NODE_PARTITIONS is how often.
func TestNodesPartitionedFromEachOther(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	lab.balanced()
	if out := lab.all[0].output("doctor"); !strings.Contains(out, "! database connection") {
		t.Errorf("the doctor does not find that the database is on another machine, without TLS:\n%s", out)
	}
	l := startLoad(t, lab.nodes)
	l.progress()
	for i := range l.times("PARLEY_NODE_PARTITIONS") {
		one, other := place(i%3), place((i+1)%3)
		before := lab.owners()
		lab.cut(one, other)
		for _, way := range [][2]place{{one, other}, {other, one}} {
			code, began := lab.owned(way[1]), time.Now()
			status, answer, retryAfter, err := lab.call(lab.all[way[0]], "GET", "/api/channel/health", lab.global, code, "", "")
			if err != nil || status != http.StatusServiceUnavailable || retryAfter == "" {
				t.Errorf("node %d cannot reach node %d and answered %d %s, Retry-After %q, %v", way[0], way[1], status, answer, retryAfter, err)
			}
			t.Logf("503 after %s", time.Since(began).Round(time.Millisecond))
			code = lab.owned(way[0])
			if status, answer, _, err := lab.call(lab.all[way[0]], "GET", "/api/channel/health", lab.global, code, "", ""); status != http.StatusOK {
				t.Errorf("node %d answered %d %s %v for its own channel", way[0], status, answer, err)
			}
		}
		l.progress() // by way of nodes that reach the owner
		if after := lab.owners(); after != before {
			t.Errorf("channels moved:\n%s\n%s", before, after)
		}
		lab.join(one, other)
		lab.eventually("the nodes reach each other again", func() bool {
			status, _, _, err := lab.call(lab.all[one], "GET", "/api/channel/health", lab.global, lab.owned(other), "", "")
			return err == nil && status == http.StatusOK
		})
		l.progress()
	}
	l.judge()
}
