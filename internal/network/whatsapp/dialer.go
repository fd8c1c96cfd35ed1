package whatsapp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"go.mau.fi/whatsmeow"

	"parley/internal/safehttp"
)

// Trust makes this process accept a local server as the network. The real network is then out of reach for the whole
// process.
type Trust struct {
	Root [32]byte // public key that signs the server's Noise certificates
	CA   []byte   // PEM of the authority behind its TLS certificate; empty: no server is trusted
}

// ReadTrust reads a file with the JSON of a Trust, as the server that it is of wrote it.
func ReadTrust(path string) (*Trust, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var t Trust
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("%s does not say what to trust: %w", path, err)
	}
	if t.Root == [32]byte{} {
		return nil, fmt.Errorf("%s names no root", path)
	}
	return &t, nil
}

// checkEndpoint rejects addresses of other machines: keys of accounts would go there.
func checkEndpoint(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("endpoint %s is not a loopback address: only a server on this machine may replace WhatsApp", address)
	}
	return nil
}

// installing guards whatsmeow's root key, which is a variable of the whole process.
var installing sync.Mutex

// install makes this process trust a root instead of WhatsApp's.
func (t *Trust) install() error {
	installing.Lock()
	defer installing.Unlock()
	if whatsmeow.WACertPubKey == t.Root {
		return nil
	}
	if installed {
		return errors.New("this process trusts another server's root already")
	}
	whatsmeow.WACertPubKey, installed = t.Root, true
	return nil
}

var installed bool

// dialer makes the HTTP clients of one driver.
type dialer struct {
	endpoint string
	roots    *x509.CertPool
	proxies  safehttp.Policy // where proxies of channels may be
}

func newDialer(endpoint string, trust *Trust, proxies safehttp.Policy) (*dialer, error) {
	if endpoint == "" {
		return &dialer{proxies: proxies}, nil
	}
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	if trust == nil {
		return nil, errors.New("an endpoint needs what to trust it by")
	}
	if err := trust.install(); err != nil {
		return nil, err
	}
	d := &dialer{endpoint: endpoint, roots: x509.NewCertPool(), proxies: proxies}
	if len(trust.CA) > 0 && !d.roots.AppendCertsFromPEM(trust.CA) {
		return nil, errors.New("the endpoint's authority is not a certificate")
	}
	return d, nil
}

// dial connects to an address, through the proxy if there is one.
func (d *dialer) dial(ctx context.Context, find findProxy, address string) (net.Conn, error) {
	if d.endpoint != "" {
		address = d.endpoint
	}
	if find == nil {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	}
	via, err := find(ctx)
	if err != nil {
		return nil, err
	}
	return d.dialThrough(ctx, via, address)
}

// client returns an HTTP client, which uses the proxy if there is one. A non-nil observer sees its connections inside and outside of
// TLS: a connection can end in either layer.
func (d *dialer) client(find findProxy, observer *connObserver) *http.Client {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		c, err := d.dial(ctx, find, address)
		return observer.wrap(c), err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext, transport.TLSClientConfig = dial, &tls.Config{}
	if find != nil {
		transport.Proxy = nil // of the whole server
	}
	if d.endpoint != "" {
		transport.Proxy, transport.ForceAttemptHTTP2 = nil, false
		transport.TLSClientConfig = &tls.Config{RootCAs: d.roots, MinVersion: tls.VersionTLS13}
	}
	if observer != nil {
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return observer.handshake(ctx, c, address, transport.TLSClientConfig)
		}
	}
	return &http.Client{Transport: transport}
}

func (e *connObserver) handshake(ctx context.Context, c net.Conn, address string, config *tls.Config) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	config = config.Clone()
	config.ServerName = host
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return e.wrap(secure), nil
}

type connObserver struct {
	onRead func() // something came
	onLost func() // nothing will come any more
}

func (e *connObserver) wrap(c net.Conn) net.Conn {
	if e == nil || c == nil {
		return c
	}
	return &observedConn{c, e}
}

type observedConn struct {
	net.Conn
	observer *connObserver
}

func (c *observedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.observer.onRead()
	}
	if err != nil {
		c.observer.onLost()
	}
	return n, err
}

const host = "web.whatsapp.com"

// reachTimeout bounds a look at whether the network can be reached.
const reachTimeout = 5 * time.Second

// CheckReachable reports whether the network, or the test server at endpoint, can be reached from this machine. The
// error is a sentence that says why not and what to check.
func CheckReachable(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if endpoint != "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", endpoint)
		if err != nil {
			return errors.New(unreachableMessage(err))
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+host, http.NoBody)
	if err != nil {
		return err
	}
	d := new(dialer)
	client := d.client(nil, nil)
	defer client.CloseIdleConnections()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	if err != nil {
		return errors.New(unreachableMessage(err))
	}
	return answer.Body.Close()
}

// unreachableMessage says why the network cannot be reached and what to check. It repeats only the host name from the
// error.
func unreachableMessage(err error) string {
	return "WhatsApp cannot be reached: " + unreachableReason(err) + "."
}

func unreachableReason(err error) string {
	if failed, ok := errors.AsType[*proxyError](err); ok {
		return "the proxy of this channel " + failed.why
	}
	if proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: host}}); proxy != nil {
		return fmt.Sprintf("the proxy in HTTPS_PROXY does not answer, or does not connect to %s:443", host)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fmt.Sprintf("the name %s is not found. Look at the DNS settings of this machine", host)
		}
		return fmt.Sprintf("DNS does not answer when it is asked for %s. Look at the network and the DNS settings of this machine", host)
	}
	if isCertificate(err) {
		return fmt.Sprintf("the certificate of %s is not trusted. Check for a proxy or firewall that intercepts it, "+
			"and check the clock and the root certificates of this machine", host)
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "this machine has no route to it. Look at its network"
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connections to %s:443 are refused. Look at the firewall, or set HTTPS_PROXY", host)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("connections to %s:443 are cut. Look at the firewall, or set HTTPS_PROXY", host)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.Canceled):
		return fmt.Sprintf("%s:443 does not answer. Look at the firewall, or set HTTPS_PROXY", host)
	}
	return fmt.Sprintf("no connection to %s:443. Look at the network and the firewall of this machine", host)
}

func isCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || unknown || name || invalid
}
