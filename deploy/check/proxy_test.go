package check

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// proxy starts Caddy with our configuration in front of nodes, without TLS, and returns its address.
func proxy(t *testing.T, nodes ...string) string {
	t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	proxyAt(t, url, nodes...)
	return url
}

func proxyAt(t *testing.T, url string, nodes ...string) {
	t.Helper()
	cmd := exec.Command(need(t, "caddy", "caddy"), "run", "--adapter", "caddyfile", "--config", filepath.Join(deploy, "Caddyfile"))
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home,
		"PARLEY_HOST="+url, "PARLEY_NODES="+strings.Join(nodes, " "))
	start(t, cmd)
	eventually(t, "the proxy has a node", func() error {
		_, err := get(url + "/livez")
		return err
	})
}

// get returns a body, and an error unless the status is 200.
func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// node is a server that says its name, and whether it is ready.
type node struct {
	*httptest.Server
	unready atomic.Bool
	seen    atomic.Pointer[http.Request]
}

func newNode(t *testing.T, name string) *node {
	t.Helper()
	n := &node{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && n.unready.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if r.URL.Path != "/readyz" {
			n.seen.Store(r)
		}
		io.WriteString(w, name)
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *node) address() string { return n.Listener.Addr().String() }

// TestProxyFindsReadyNodes takes one node out by its readiness and one by its end: no request may fail.
func TestProxyFindsReadyNodes(t *testing.T) {
	t.Parallel()
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	url := proxy(t, a.address(), b.address(), c.address())
	seen := map[string]bool{}
	eventually(t, "all nodes have requests", func() error {
		name, err := get(url)
		if err != nil {
			t.Fatal(err)
		}
		if seen[name] = true; len(seen) < 3 {
			return fmt.Errorf("only %v", seen)
		}
		return nil
	})
	onlyOthers := func(gone string) {
		t.Helper()
		others := 0
		eventually(t, "nothing goes to "+gone, func() error {
			name, err := get(url)
			if err != nil {
				t.Fatal(err) // never, also not until the proxy notices
			}
			if others++; name == gone {
				others = 0
			}
			if others < 30 {
				return fmt.Errorf("%d requests in a row went elsewhere", others)
			}
			return nil
		})
	}
	a.unready.Store(true)
	onlyOthers("a")
	b.CloseClientConnections()
	b.Close()
	onlyOthers("b")
	a.unready.Store(false)
	eventually(t, "the first one is back", func() error {
		if name, err := get(url); err != nil || name != "a" {
			return fmt.Errorf("%q, %w", name, err)
		}
		return nil
	})
}

// TestProxyHeaders wants the address of the client, not the one that it claims to have, and bodies as large as Parley accepts.
func TestProxyHeaders(t *testing.T) {
	t.Parallel()
	n := newNode(t, "a")
	url := proxy(t, n.address())
	req, err := http.NewRequest(http.MethodPost, url+"/api/send-message/text", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "203.0.113.7")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a body of 1 MiB: %s", resp.Status)
	}
	seen := n.seen.Load()
	if h := seen.Header; seen.Method != http.MethodPost || seen.Host != strings.TrimPrefix(url, "http://") ||
		h.Get("X-Forwarded-For") != "127.0.0.1" || h.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("the node sees %s, Host %s, %v", seen.Method, seen.Host, h)
	}
}

// nginx starts nginx with the configuration of docs/deploy.md in front of a node, without TLS, and returns its address.
func nginx(t *testing.T, node string) string {
	t.Helper()
	program := need(t, "nginx", "nginx-light")
	_, text, _ := strings.Cut(read(t, root, "docs/deploy.md"), "```nginx\n")
	text, _, _ = strings.Cut(text, "```")
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	text = strings.NewReplacer("listen 443 ssl;", "listen "+address+";", "127.0.0.1:7275", node).Replace(text)
	text = regexp.MustCompile(`(?m)^ *ssl_.*\n`).ReplaceAllString(text, "")
	dir := t.TempDir()
	text = fmt.Sprintf("daemon off; master_process off; pid %s/pid; error_log stderr; events {} http { access_log off;\n%s}", dir, text)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, exec.Command(program, "-p", dir, "-c", file))
	url := "http://" + address
	eventually(t, "nginx has a node", func() error {
		_, err := get(url + "/livez")
		return err
	})
	return url
}

// TestProxiesStream reads an event of a real server through each proxy while the stream is open.
func TestProxiesStream(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	start(t, exec.Command(parley(t), "dev", "--data", data, "--listen", listen, "--behind-proxy", "--no-open"))
	eventually(t, "the server is ready", func() error {
		_, err := get("http://" + listen + "/readyz")
		return err
	})
	token := ""
	for line := range strings.Lines(read(t, data, "dev.env")) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name == "PARLEY_TOKEN" {
			token = value
		}
	}
	t.Run("caddy", func(t *testing.T) { readStream(t, proxy(t, listen), token, data) })
	t.Run("nginx", func(t *testing.T) { readStream(t, nginx(t, listen), token, data) })
}

// readStream opens the stream, sends a message, and wants to read of it.
func readStream(t *testing.T, url, token, data string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" {
		t.Fatalf("%s, Content-Encoding %q", resp.Status, resp.Header.Get("Content-Encoding"))
	}
	send := exec.Command(parley(t), "send", "demo", "6281234567890", "halo", "--data", data, "--url", url)
	send.Env = append(os.Environ(), "PARLEY_TOKEN="+token) // dev.env is for the address of dev itself
	runCmd(t, send)
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: message.") {
			return
		}
	}
	t.Error("the stream ended without the event")
}
