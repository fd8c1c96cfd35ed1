package cluster_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/internal/cluster"
	"parley/internal/postgrestest"
)

// nodes is a cluster of processes.
type nodes struct {
	t      *testing.T
	dir    string
	host   string // where the nodes reach this process
	all    []*node
	global string // a token
	admin  string
	client *http.Client
}

// node is one process.
type node struct {
	c         *nodes
	address   string   // of the database
	namespace string   // the network namespace that it runs in; empty: that of the test
	args      []string // more than every node gets
	program   string   // empty: the one built for all tests
	env       string   // a variable; empty: none
	data      string
	addr      string
	cmd       *exec.Cmd
}

// startNodes starts three nodes on a new database.
func startNodes(t *testing.T, args ...string) *nodes {
	t.Helper()
	return startNodesOn(t, postgrestest.Start(t).Schema(t), args...)
}

func startNodesOn(t *testing.T, address string, args ...string) *nodes {
	t.Helper()
	c := newNodes(t)
	for range 3 {
		c.add(&node{address: address, addr: freeAddress(t), args: args})
	}
	c.tokens()
	return c
}

func newNodes(t *testing.T) *nodes {
	return &nodes{t: t, dir: t.TempDir(), host: "127.0.0.1", client: &http.Client{Timeout: 40 * time.Second}}
}

// add starts a node with the key of the first.
func (c *nodes) add(n *node) {
	c.t.Helper()
	n.c, n.data = c, filepath.Join(c.dir, string(rune('a'+len(c.all))))
	c.all = append(c.all, n)
	if len(c.all) > 1 {
		c.shareKey(n)
	}
	n.start()
}

// tokens makes the tokens of the clients.
func (c *nodes) tokens() {
	c.t.Helper()
	c.global = c.all[0].command("token", "create", "--kind", "global", "--quiet")
	c.admin = c.all[0].command("token", "create", "--kind", "admin", "--role", "owner", "--quiet")
}

// shareKey copies secret.key of the first node to another.
func (c *nodes) shareKey(n *node) {
	c.t.Helper()
	key, err := os.ReadFile(filepath.Join(c.all[0].data, "secret.key"))
	if err == nil {
		err = os.MkdirAll(n.data, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(n.data, "secret.key"), key, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// freeAddress returns an address that stays free until a node listens on it: no other test gets it, and it is below the ports that
// the system gives to connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, count = 15000, 15000
	for range count {
		address := fmt.Sprintf("127.0.0.1:%d", first+(os.Getpid()*50+int(ports.Add(1)))%count)
		if ln, err := net.Listen("tcp", address); err == nil {
			ln.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

var ports atomic.Int32

// start starts the node and waits until it is ready.
func (n *node) start() {
	n.c.t.Helper()
	n.run()
	n.c.eventually("a node is ready", func() bool {
		resp, err := n.c.client.Get("http://" + n.addr + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (n *node) run() {
	n.c.t.Helper()
	args := append([]string{cmp.Or(n.program, program), "serve", "--data", n.data, "--listen", n.addr, "--database", n.address,
		"--media", filepath.Join(n.c.dir, "media"), "--allow-private", "127.0.0.0/8"}, n.args...)
	if n.namespace != "" {
		args = append([]string{"nsenter", "--net=/run/netns/" + n.namespace}, args...) // it replaces itself with the program
	}
	n.cmd = exec.Command(args[0], args[1:]...)
	if n.env != "" {
		n.cmd.Env = append(os.Environ(), n.env)
	}
	log, err := os.OpenFile(n.data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.c.t.Fatal(err)
	}
	defer log.Close()
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		n.c.t.Fatal(err)
	}
	started := n.cmd
	n.c.t.Cleanup(func() {
		started.Process.Kill()
		started.Wait()
		if n.c.t.Failed() {
			text, _ := os.ReadFile(n.data + ".log")
			n.c.t.Logf("%s:\n%s", n.data, text[max(0, len(text)-4_000):])
		}
	})
}

func (n *node) signal(s syscall.Signal) {
	n.c.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.c.t.Fatal(err)
	}
}

func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	n.cmd.Wait()
}

// terminate stops a node as a supervisor does.
func (n *node) terminate() {
	n.signal(syscall.SIGTERM)
	if err := n.cmd.Wait(); err != nil {
		n.c.t.Errorf("a node that was asked to stop: %v", err)
	}
}

func (n *node) command(args ...string) string {
	n.c.t.Helper()
	cmd := exec.Command(program, append(args, "--data", n.data)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		n.c.t.Fatalf("parley %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// output is what a command prints, whether it fails or not.
func (n *node) output(args ...string) string {
	out, _ := exec.Command(program, append(args, "--data", n.data, "--database", n.address)...).Output()
	return string(out)
}

// memberships is how often the node joined the cluster.
func (n *node) memberships(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(n.data + ".log")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte(`"joined the cluster"`))
}

// eventually waits for a condition.
func (c *nodes) eventually(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("never: %s", what)
		}
	}
}

// call makes a request at a node.
func (c *nodes) call(n *node, method, path, token, channel, body, key string) (status int, answer []byte, retryAfter string, err error) {
	req, err := http.NewRequest(method, "http://"+n.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for name, value := range map[string]string{"X-Channel": channel, "Idempotency-Key": key} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, resp.Header.Get("Retry-After"), err
}

// get reads the data of a response, from any node that answers.
func (c *nodes) get(path, channel string, into any) (found bool) {
	c.t.Helper()
	token := c.global
	if strings.HasPrefix(path, "/api/manage/") {
		token = c.admin
	}
	for i := 0; ; i++ {
		status, answer, _, err := c.call(c.all[i%len(c.all)], "GET", path, token, channel, "", "")
		switch {
		case err == nil && status == http.StatusOK:
			if err := json.Unmarshal(answer, into); err != nil {
				c.t.Fatal(err)
			}
			return true
		case err == nil && status == http.StatusNotFound:
			return false
		case err == nil && status != http.StatusServiceUnavailable:
			c.t.Fatalf("%s: %d %s", path, status, answer)
		case i > 3000:
			c.t.Fatalf("%s: nobody answers: %d %s %v", path, status, answer, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// balanced waits until the nodes share the shards equally: none moves any more.
func (c *nodes) balanced() {
	c.t.Helper()
	c.eventually("the shards are shared equally", func() bool {
		var list struct{ Data []struct{ Shards int } }
		if !c.get("/api/manage/nodes", "", &list) || len(list.Data) != len(c.all) {
			return false
		}
		total := 0
		for _, n := range list.Data {
			if n.Shards > cluster.Shards/len(c.all)+1 {
				return false
			}
			total += n.Shards
		}
		return total == cluster.Shards
	})
}

// createChannels makes channels that work.
func (c *nodes) createChannels(codes ...string) {
	c.t.Helper()
	for i, code := range codes {
		c.all[i%len(c.all)].command("channel", "create", code)
	}
	for _, code := range codes {
		c.eventually("channel "+code+" works", func() bool {
			var health struct{ Data struct{ Status string } }
			return c.get("/api/channel/health", code, &health) && health.Data.Status == "WORKING"
		})
	}
}
