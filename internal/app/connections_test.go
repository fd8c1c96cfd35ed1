package app

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// peer is one connection to a server.
type peer struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, r *running, secure *tls.Config) *peer {
	t.Helper()
	address := r.url[strings.Index(r.url, "//")+2:]
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute)) // only a connection that is kept out waits so long
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	return &peer{conn, bufio.NewReader(conn)}
}

// get makes a request on the connection and returns the status and the body.
func (c *peer) get(path, token string) (int, string, error) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

var closedSome = regexp.MustCompile(`(?m)^parley_connections_closed_total [1-9]`)

// TestStrangersKeepNobodyOut holds more connections without a token than there is room for. Somebody with a token is
// answered, and a connection that carried a token goes on.
func TestStrangersKeepNobodyOut(t *testing.T) {
	const most = 20
	cert, key, pool := selfSigned(t, t.TempDir())
	holds := map[string]func(*peer){
		"idle after a request": func(c *peer) {
			if status, _, err := c.get("/livez", ""); status != http.StatusOK {
				t.Errorf("a stranger: %d, %v", status, err)
			}
		},
		"idle after a bad token": func(c *peer) {
			if status, _, err := c.get("/api/channel/health", "guess"); status != 401 && status != 429 {
				t.Errorf("a stranger: %d, %v", status, err)
			}
		},
		"silent":         func(*peer) {},
		"half a header":  func(c *peer) { io.WriteString(c, "GET /livez HTTP/1.1\r\nHost:") },
		"half a request": func(c *peer) { io.WriteString(c, "POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{") },
	}
	for name, hold := range holds {
		for _, secure := range []*tls.Config{nil, {RootCAs: pool, ServerName: "127.0.0.1"}} {
			t.Run(fmt.Sprintf("%s, TLS %v", name, secure != nil), func(t *testing.T) {
				cfg := Config{DataDir: Dir(t.TempDir()), Dev: true, MaxConnections: most}
				if secure != nil {
					cfg.TLSCert, cfg.TLSKey = cert, key
				}
				r := start(t, cfg)
				kept := dial(t, r, secure)
				if status, body, err := kept.get("/api/channel/health", r.env[EnvToken]); status != http.StatusOK {
					t.Fatalf("with a token: %d %s %v", status, body, err)
				}
				for range 3 * most {
					hold(dial(t, r, secure))
				}
				if status, body, err := dial(t, r, secure).get("/api/channel/health", r.env[EnvToken]); status != http.StatusOK {
					t.Errorf("a new connection with a token: %d %s %v", status, body, err)
				}
				if status, body, err := kept.get("/api/channel/health", r.env[EnvToken]); status != http.StatusOK {
					t.Errorf("the connection that carried a token: %d %s %v", status, body, err)
				}
				_, metrics, err := kept.get("/metrics", r.env[EnvAdminToken])
				if err != nil || !closedSome.MatchString(metrics) {
					t.Errorf("no connection was counted as closed (%v)", err)
				}
			})
		}
	}
}

// TestKeptConnectionsAreNotClosed fills the server with connections that carried a token. A new one waits for one of them to end.
func TestKeptConnectionsAreNotClosed(t *testing.T) {
	const most = 5
	r := start(t, Config{DataDir: Dir(t.TempDir()), Dev: true, MaxConnections: most})
	var kept []*peer
	for range most {
		c := dial(t, r, nil)
		if status, body, err := c.get("/api/channel/health", r.env[EnvToken]); status != http.StatusOK {
			t.Fatalf("with a token: %d %s %v", status, body, err)
		}
		kept = append(kept, c)
	}
	waiting := dial(t, r, nil)
	for _, c := range kept {
		if status, body, err := c.get("/api/channel/health", r.env[EnvToken]); status != http.StatusOK {
			t.Errorf("while another waits: %d %s %v", status, body, err)
		}
	}
	kept[0].Close()
	if status, body, err := waiting.get("/livez", ""); status != http.StatusOK {
		t.Errorf("after one ended: %d %s %v", status, body, err)
	}
}
