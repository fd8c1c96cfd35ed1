package doctor

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// said joins what findings say, with their levels.
func said(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(string(f.Level) + " " + f.Check + ": " + f.Found + "\n")
	}
	return b.String()
}

func TestPostgres(t *testing.T) {
	p := Postgres{Address: "postgres://parley@db/parley", Version: "15.3", Size: 2_000_000, Commit: "on", Standbys: "two"}
	for _, c := range []struct {
		ahead    time.Duration
		standbys string
		want     []string
		not      string
	}{
		{0, "two", []string{"ok data: PostgreSQL 15.3 at postgres://parley@db/parley, 2.0 MB, synchronous_commit=on",
			"ok database clock: agrees"}, "standby"},
		{0, "", []string{"ok standby: none is synchronous"}, "warning"},
		{10 * time.Second, "two", []string{"warning database clock: The clock of this machine is 10 s ahead of the database's."}, "not ready"},
		{-time.Hour, "two", []string{"problem database clock: The clock of this machine is 1 h behind the database's. " +
			"The node is not ready"}, "ahead"},
	} {
		p.Ahead, p.Standbys = c.ahead, c.standbys
		got := said(p.Look())
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s off: no %q in\n%s", c.ahead, want, got)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s off: %q in\n%s", c.ahead, c.not, got)
		}
	}
}

func TestExposedDatabase(t *testing.T) {
	for want, p := range map[string]Postgres{
		"warning database connection: is not encrypted": {Plain: true, Unverified: true},
		"is encrypted, but the certificate":             {Unverified: true},
	} {
		if got := said(p.Look()); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := said(Postgres{}.Look()); strings.Contains(got, "connection") {
		t.Error(got)
	}
}

func TestNodes(t *testing.T) {
	own := Node{ID: 5, URL: "http://10.0.0.5:7276", Self: true, Shards: 64}
	other := Node{ID: 6, URL: "http://10.0.0.6:7276", Shards: 64}
	with := func(n Node, change func(*Node)) Node { change(&n); return n }
	for name, c := range map[string]struct {
		nodes   []Node
		running bool
		want    string
	}{
		"two":     {[]Node{own, other}, true, "ok nodes: 2 nodes, this is node 5 with 64 shards\n"},
		"one":     {[]Node{own}, true, "warning nodes: 1 node, this is node 5 with 64 shards. No other node serves channels"},
		"removed": {[]Node{other}, true, "problem nodes: this node is not a member"},
		"draining": {[]Node{with(own, func(n *Node) { n.Draining = true }), other}, true,
			"warning nodes: 2 nodes, this is node 5 with 64 shards. It is draining"},
		"all draining": {[]Node{with(own, func(n *Node) { n.Draining = true })}, true, "problem nodes: this node is draining, and no other"},
		"unreachable": {[]Node{own, with(other, func(n *Node) { n.Unreachable = errors.New("refused") })}, true,
			"problem nodes: node 6 cannot be reached at http://10.0.0.6:7276: refused\n"},
		"own address": {[]Node{with(own, func(n *Node) { n.Unreachable = errors.New("refused") }), other}, true,
			"problem nodes: other nodes cannot reach this node: http://10.0.0.5:7276 does not work from here either: refused\n"},
		"loopback": {[]Node{with(own, func(n *Node) { n.URL = "http://127.0.0.1:4711" }), other}, true,
			"problem nodes: nodes on other machines cannot reach this node: http://127.0.0.1:4711 is an address of this machine only\n"},
		"one address": {[]Node{own, with(other, func(n *Node) { n.URL, n.AnsweredBy = own.URL, 5 })}, true,
			"problem nodes: node 6 cannot be reached: at its address, http://10.0.0.5:7276, node 5 answers\n"},
		"no server": {[]Node{other}, false, "ok nodes: 1 node in the database\n"},
	} {
		if got := said(Nodes(c.nodes, c.running)); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, got)
		}
	}
}

func TestReachNode(t *testing.T) {
	reply := func(status int, kind string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set(NodeHeader, "7")
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for address, want := range map[string]string{
		reply(403, "application/json"): "",
		reply(200, "application/json"): "the response is 200 OK, so this is not the address for other nodes",
		reply(403, "text/html"):        "the response is 403 Forbidden, so this is not",
		closed.URL:                     "refused",
		"":                             "no --node-url",
	} {
		id, err := ReachNode(t.Context(), http.DefaultTransport, address)
		if (id == 7) != (want == "") {
			t.Errorf("%s: node %d answers", address, id)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
