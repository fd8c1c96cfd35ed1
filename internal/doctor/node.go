package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Postgres is the database of a cluster.
type Postgres struct {
	Address          string // without its password
	Version          string
	Size             int64
	Commit, Standbys string // synchronous_commit, synchronous_standby_names
	// Ahead is how far the clock of this machine is ahead of the database's.
	Ahead time.Duration
	// Plain: on the way to the database, others can read and change everything. Unverified: others can answer in its place.
	Plain, Unverified bool
}

// Look reports the database, its standby and its clock.
func (p Postgres) Look() []Finding {
	about := fmt.Sprintf("PostgreSQL %s at %s, %s, synchronous_commit=%s", p.Version, p.Address, Size(p.Size), p.Commit)
	findings := []Finding{{Check: "data", Level: Fine, Found: about}}
	if p.Standbys == "" { // a hint: a provider may replicate the disk instead
		findings = append(findings, Finding{Check: "standby", Level: Fine,
			Found:  "none is synchronous: if the database's disk is lost, so are its newest messages",
			Remedy: "set synchronous_standby_names, unless your provider replicates the disk"})
	}
	if f, exposed := p.LookAtConnection(); exposed {
		findings = append(findings, f)
	}
	return append(findings, databaseClock(p.Ahead))
}

// LookAtConnection reports a connection to another machine that others on the network can use.
func (p Postgres) LookAtConnection() (f Finding, exposed bool) {
	f = Finding{Check: "database connection", Level: Warning, Remedy: "add sslmode=verify-full to --database, and sslrootcert if the " +
		"certificate of the database is from an authority of your own"}
	switch {
	case p.Plain:
		f.Found = "is not encrypted, or need not be: others on the network could read messages and keys, and change them"
	case p.Unverified:
		f.Found = "is encrypted, but the certificate of the database is not checked: others on the network could answer in its place"
	}
	return f, p.Plain || p.Unverified
}

// MaxNodeClock is how far the clock of a node may be from the database's.
const MaxNodeClock = 30 * time.Second

func databaseClock(ahead time.Duration) Finding {
	f := compareClocks(ahead, "the database's")
	f.Check = "database clock"
	if f.Level == Fine {
		f.Found = "agrees with this machine's"
		return f
	}
	f.Remedy = "set both clocks by network time (NTP)"
	if ahead.Abs() > MaxNodeClock {
		f.Level = Problem
		f.Found += " The node is not ready because of it."
	}
	return f
}

// Node is a node of the cluster.
type Node struct {
	ID             int64
	URL            string
	Draining, Self bool
	Shards         int
	Unreachable    error // why it cannot be reached from here; nil: it can
	AnsweredBy     int64 // the other node that answers at its address; 0: none
}

// Nodes reports the nodes. Without a running node, none of them is this one.
func Nodes(nodes []Node, running bool) []Finding {
	findings := Addresses(nodes)
	if !running {
		return append(findings, Finding{Check: "nodes", Level: Fine, Found: Count(len(nodes), "node") + " in the database"})
	}
	own := slices.IndexFunc(nodes, func(n Node) bool { return n.Self })
	if own < 0 {
		return append(findings, Finding{Check: "nodes", Level: Problem,
			Found:  "this node is not a member of the cluster now: it could not renew its membership",
			Remedy: "read its log; check the connection to the database"})
	}
	return append(findings, nodes[own].look(nodes))
}

// Addresses reports the addresses of nodes that cannot be used.
func Addresses(nodes []Node) (findings []Finding) {
	for _, n := range nodes {
		if n.Unreachable != nil {
			findings = append(findings, unreachable(n))
		}
		if n.AnsweredBy != 0 {
			findings = append(findings, Finding{Check: "nodes", Level: Problem, Remedy: "give each node a --node-listen and --node-url of its own",
				Found: fmt.Sprintf("node %d cannot be reached: at its address, %s, node %d answers", n.ID, n.URL, n.AnsweredBy)})
		}
		if f, alone := onlyHere(n, nodes); n.Self && alone {
			findings = append(findings, f)
		}
	}
	return findings
}

// NotShared reports nodes whose files are not in the storage of this one.
func NotShared(nodes []string) Finding {
	return Finding{Check: "media", Level: Problem, Found: "files of messages are not shared with node " + strings.Join(nodes, ", "),
		Remedy: "give all nodes the same directory or bucket with --media"}
}

// look reports this node among all.
func (n Node) look(nodes []Node) Finding {
	serving := countNodes(nodes, func(n Node) bool { return !n.Draining })
	f := Finding{Check: "nodes", Level: Fine}
	f.Found = fmt.Sprintf("%s, this is node %d with %s", Count(len(nodes), "node"), n.ID, Count(n.Shards, "shard"))
	switch {
	case n.Draining && serving == 0:
		f.Level, f.Found, f.Remedy = Problem, "this node is draining, and no other node serves channels", "start it again, or start another node"
	case n.Draining:
		f.Level, f.Remedy = Warning, "start it again to serve channels"
		f.Found += ". It is draining: it hands its channels over and gets no others"
	case serving == 1:
		f.Level, f.Remedy = Warning, "start another node with the same --database and secret.key"
		f.Found += ". No other node serves channels: if this one stops, nothing is sent"
	}
	return f
}

func countNodes(nodes []Node, is func(Node) bool) (n int) {
	for _, one := range nodes {
		if is(one) {
			n++
		}
	}
	return n
}

func unreachable(n Node) Finding {
	if n.Self {
		return Finding{Check: "nodes", Level: Problem,
			Found:  fmt.Sprintf("other nodes cannot reach this node: %s does not work from here either: %v", n.URL, n.Unreachable),
			Remedy: "correct --node-url and --node-listen of this node"}
	}
	return Finding{Check: "nodes", Level: Problem, Found: fmt.Sprintf("node %d cannot be reached at %s: %v", n.ID, n.URL, n.Unreachable),
		Remedy: "check that node's --node-url and --node-listen, and firewalls between the machines"}
}

// onlyHere reports an address of this node that other machines cannot use.
func onlyHere(own Node, nodes []Node) (Finding, bool) {
	elsewhere := countNodes(nodes, func(n Node) bool { return !n.Self && !isOnLoopback(n.URL) })
	if elsewhere == 0 || !isOnLoopback(own.URL) {
		return Finding{}, false
	}
	return Finding{Check: "nodes", Level: Problem,
		Found:  fmt.Sprintf("nodes on other machines cannot reach this node: %s is an address of this machine only", own.URL),
		Remedy: "set --node-listen and --node-url"}, true
}

func isOnLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && IsLoopback(u.Hostname())
}

// reachLimit is how long a node may take to respond.
const reachLimit = 2 * time.Second

// NodeHeader names the node that refuses a request which no other node signed.
const NodeHeader = "Parley-Node"

// ReachNode tries the address of a node, and returns the id of the node that answers; 0: it is not a member now. A node refuses a
// request that no other node signed: that is the expected response.
func ReachNode(ctx context.Context, transport http.RoundTripper, address string) (id int64, err error) {
	if address == "" {
		return 0, errors.New("it has no --node-url")
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/livez", nil)
	if err != nil {
		return 0, err
	}
	resp, err := transport.RoundTrip(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("no response within %s", reachLimit)
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	id, err = strconv.ParseInt(resp.Header.Get(NodeHeader), 10, 64)
	if resp.StatusCode != http.StatusForbidden || kind != "application/json" || err != nil {
		return 0, fmt.Errorf("the response is %s, so this is not the address for other nodes", resp.Status)
	}
	return id, nil
}
