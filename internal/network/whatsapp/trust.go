package whatsapp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"go.mau.fi/whatsmeow"
)

// Trust is what makes a server on this machine pass for the network. It takes the real network out of
// reach of the whole process.
type Trust struct {
	Root [32]byte // public key that signs the server's Noise certificates
	CA   []byte   // PEM of the authority behind its TLS certificate; empty: it speaks plain TCP
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

// checkEndpoint refuses every address that is not on this machine: keys of accounts would go there.
func checkEndpoint(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("endpoint %s is not a loopback address: only a server on this machine may stand in for WhatsApp", address)
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
	plain    bool
}

func newDialer(endpoint string, trust *Trust) (*dialer, error) {
	if endpoint == "" {
		return &dialer{}, nil
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
	d := &dialer{endpoint: endpoint, plain: len(trust.CA) == 0}
	if !d.plain {
		d.roots = x509.NewCertPool()
		if !d.roots.AppendCertsFromPEM(trust.CA) {
			return nil, errors.New("the endpoint's authority is not a certificate")
		}
	}
	return d, nil
}

// client makes an HTTP client. Where ear is not nil, it listens to the client's connections, inside and
// outside of TLS: a connection can end in either place.
func (d *dialer) client(ear *ear) *http.Client {
	base := net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.endpoint != "" {
			address = d.endpoint
		}
		c, err := base.DialContext(ctx, network, address)
		return ear.on(c), err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext, transport.TLSClientConfig = dial, &tls.Config{}
	if d.endpoint != "" {
		transport.Proxy, transport.ForceAttemptHTTP2 = nil, false
		transport.TLSClientConfig = &tls.Config{RootCAs: d.roots, MinVersion: tls.VersionTLS13}
	}
	switch {
	case d.plain:
		transport.DialTLSContext = dial // net/http takes what this returns as past its handshake
	case ear != nil:
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return ear.handshake(ctx, c, address, transport.TLSClientConfig)
		}
	}
	return &http.Client{Transport: transport}
}

// handshake puts TLS on a connection.
func (e *ear) handshake(ctx context.Context, c net.Conn, address string, config *tls.Config) (net.Conn, error) {
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
	return e.on(secure), nil
}

// ear is told what happens on connections.
type ear struct {
	heard func() // something came
	lost  func() // nothing will come any more
}

// on puts the ear on a connection, where there are both.
func (e *ear) on(c net.Conn) net.Conn {
	if e == nil || c == nil {
		return c
	}
	return &listening{c, e}
}

// listening is a connection with an ear.
type listening struct {
	net.Conn
	ear *ear
}

func (c *listening) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.ear.heard()
	}
	if err != nil {
		c.ear.lost()
	}
	return n, err
}
