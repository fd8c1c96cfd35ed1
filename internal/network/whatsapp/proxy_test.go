package whatsapp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
)

// testProxy is a proxy on this machine that connects to one address, whatever it is asked for.
type testProxy struct {
	net.Listener
	t       testing.TB
	target  string
	user    string // "user:password"
	tunnels atomic.Int32

	mu    sync.Mutex
	conns []net.Conn
}

func newTestProxy(t testing.TB, scheme, target, user string, certificate *tls.Config) *testProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if scheme == "https" {
		l = tls.NewListener(l, certificate)
	}
	p := &testProxy{Listener: l, t: t, target: target, user: user}
	serve := p.connect
	if scheme == "socks5" {
		serve = p.socks
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() { p.stop(); running.Wait() })
	return p
}

// stop ends the proxy with all its connections.
func (p *testProxy) stop() {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func (p *testProxy) connect(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	given := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	if user, password, _ := given.BasicAuth(); user+":"+password != p.user {
		io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		return
	}
	p.tunnel(c, "HTTP/1.1 200 Connection established\r\n\r\n")
}

// socks speaks as much of RFC 1928 and 1929 as the driver does.
func (p *testProxy) socks(c net.Conn) {
	defer c.Close()
	read := func(n int) string {
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			return strings.Repeat("\x00", n)
		}
		return string(b)
	}
	read(int(read(2)[1]))
	io.WriteString(c, "\x05\x02") // with a password
	user := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	if user+":"+password != p.user {
		io.WriteString(c, "\x01\x01")
		return
	}
	io.WriteString(c, "\x01\x00")
	if read(4)[3] == 3 {
		read(int(read(1)[0]) + 2)
	} else {
		read(4 + 2)
	}
	p.tunnel(c, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
}

func (p *testProxy) tunnel(c net.Conn, done string) {
	to, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer to.Close()
	p.mu.Lock()
	p.conns = append(p.conns, c, to)
	p.mu.Unlock()
	p.tunnels.Add(1)
	io.WriteString(c, done)
	var back sync.WaitGroup
	back.Go(func() { io.Copy(c, to); c.Close() })
	io.Copy(to, c)
	to.Close()
	back.Wait()
}

// oneProxy is the stored credentials of every channel.
type oneProxy struct{ current []byte }

func (p *oneProxy) Credentials(context.Context, parley.Channel) (current, old []byte, err error) {
	return p.current, nil, nil
}
func (p *oneProxy) SetCredentials(context.Context, parley.Channel, []byte) error { return nil }

// through gives the channel of a world a proxy. Without the proxy the driver finds nobody at the network's address.
func (w *world) through(scheme, user string) *testProxy {
	cert := httptest.NewTLSServer(nil)
	w.t.Cleanup(cert.Close)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Certificate())
	p := newTestProxy(w.t, scheme, w.Endpoint(), "user:pass word", &tls.Config{Certificates: cert.TLS.Certificates})
	stored, err := json.Marshal(network.Proxy{Key: "K1", URL: scheme + "://" + user + "@" + p.Addr().String()})
	must(w.t, err)
	w.settings = parley.ChannelSettings{Proxy: scheme + "://***@" + p.Addr().String(), ProxyKey: "K1"}
	w.driver.config.Credentials = &oneProxy{stored}
	w.driver.dialer.endpoint = "127.0.0.1:1"
	w.driver.dialer.proxies = safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: roots}
	return p
}

// TestProxy pairs, sends and receives through a proxy, files too. Nothing goes around it, and when it ends nothing is sent.
func TestProxy(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			w := newWorld(t)
			p := w.through(scheme, "user:pass%20word")
			s, in := w.paired()
			file := w.keepFile(t, []byte("%PDF-1.4"), parley.Media{MIME: "application/pdf", Filename: "a.pdf"})
			w.sent(s, w.outgoing(friendID, parley.File{Media: file}))
			if n := p.tunnels.Load(); n < 2 {
				t.Errorf("%d connections through the proxy", n)
			}
			channel := parley.Channel{Code: code, Network: parley.WhatsApp, Settings: w.settings}
			must(t, w.driver.CheckProxy(t.Context(), channel))

			p.stop()
			expect(in, 0, func(e network.State) bool {
				return e.Status == parley.ChannelReconnecting && strings.Contains(e.Reason, "the proxy of this channel does not answer")
			})
			if err := send(s, w.text(friendID, "lost")); network.ToClass(err) != network.Disconnected {
				t.Errorf("without the proxy: %v", err)
			}
			if err := w.driver.CheckProxy(t.Context(), channel); err == nil || !strings.Contains(err.Error(), "does not answer") {
				t.Errorf("the check says %v", err)
			}
		})
	}
}

// TestProxyRefuses checks what a channel says of a proxy that does not help. The credentials are in none of it.
func TestProxyRefuses(t *testing.T) {
	w := newWorld(t)
	check := func(what, want string) {
		t.Helper()
		err := w.driver.CheckProxy(t.Context(), parley.Channel{Code: code, Network: parley.WhatsApp, Settings: w.settings})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	for _, scheme := range []string{"http", "https", "socks5"} {
		w.through(scheme, "user:wrong")
		check(scheme, "does not accept its credentials")
	}
	w.driver.dialer.proxies = safehttp.Policy{}
	check("a private address", "has a private address. Allow its range with --allow-private")
	w.settings.ProxyKey = "K2"
	check("another key", "is not stored any more")
}
