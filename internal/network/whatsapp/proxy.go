package whatsapp

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
)

// A channel can have a proxy of its own. Everything that its session sends to WhatsApp then goes through it, files too, or fails: there
// is no way around it.

// findProxy returns the proxy of a channel.
type findProxy func(ctx context.Context) (*url.URL, error)

// findProxy is nil for a channel without a proxy.
func (d *Driver) findProxy(c parley.Channel) findProxy {
	if c.Settings.Proxy == "" {
		return nil
	}
	return func(ctx context.Context) (*url.URL, error) {
		var current, old []byte
		err := errors.New("this driver has no credentials")
		if d.config.Credentials != nil {
			current, old, err = d.config.Credentials.Credentials(ctx, c)
		}
		if err != nil {
			return nil, &proxyError{"cannot be read from the database", err}
		}
		for _, stored := range [][]byte{current, old} { // the settings may be a moment older than the credentials
			var p network.Proxy
			if json.Unmarshal(stored, &p) == nil && p.Key == c.Settings.ProxyKey {
				return url.Parse(p.URL)
			}
		}
		return nil, &proxyError{"is not stored any more. Set it again", nil}
	}
}

// proxyError is why a channel's proxy did not help. Its text contains nothing of the credentials.
type proxyError struct {
	why   string // follows "the proxy of this channel"
	cause error
}

func (e *proxyError) Error() string {
	if e.cause == nil {
		return "the proxy of this channel " + e.why
	}
	return fmt.Sprintf("the proxy of this channel %s: %v", e.why, e.cause)
}

func (e *proxyError) Unwrap() error { return e.cause }

var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

// dialThrough connects to an address through a proxy, which looks its name up.
func (d *dialer) dialThrough(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	at := via.Host
	if via.Port() == "" {
		at = net.JoinHostPort(via.Hostname(), proxyPorts[via.Scheme])
	}
	conn, err := d.proxies.Dialer().DialContext(ctx, "tcp", at)
	switch {
	case safehttp.IsBlocked(err):
		return nil, &proxyError{"has a private address. Allow its range with --allow-private", err}
	case err != nil:
		return nil, &proxyError{"does not answer", err}
	}
	unhook := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	through, err := d.negotiate(ctx, conn, via, address)
	if !unhook() && err == nil {
		err = &proxyError{"does not answer", ctx.Err()}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return through, nil
}

// negotiate asks a proxy for a connection to an address.
func (d *dialer) negotiate(ctx context.Context, conn net.Conn, via *url.URL, address string) (net.Conn, error) {
	password, _ := via.User.Password()
	if via.Scheme == "socks5" {
		var auth *proxy.Auth
		if via.User != nil {
			auth = &proxy.Auth{User: via.User.Username(), Password: password}
		}
		socks, err := proxy.SOCKS5("tcp", via.Host, auth, connected{conn})
		if err == nil {
			conn, err = socks.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
		}
		if err != nil {
			return nil, &proxyError{"does not connect to WhatsApp, or does not accept its credentials", err}
		}
		return conn, nil
	}
	if via.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), RootCAs: d.proxies.RootCAs})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, &proxyError{"has no trusted certificate", err}
		}
		conn = secure
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if via.User != nil {
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := ask.Write(conn); err != nil {
		return nil, &proxyError{"does not answer", err}
	}
	from := bufio.NewReaderSize(conn, 4096)
	answer, err := http.ReadResponse(from, ask)
	switch {
	case err != nil:
		return nil, &proxyError{"does not answer like a proxy", err}
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return nil, &proxyError{"does not accept its credentials", nil}
	case answer.StatusCode != http.StatusOK:
		return nil, &proxyError{fmt.Sprintf("does not connect to WhatsApp: it answers %d", answer.StatusCode), nil}
	case from.Buffered() > 0: // WhatsApp does not speak first
		return nil, &proxyError{"does not answer like a proxy", nil}
	}
	return conn, nil
}

// connected is a dialer that has its connection already.
type connected struct{ net.Conn }

func (c connected) Dial(string, string) (net.Conn, error) { return c.Conn, nil }

func (c connected) DialContext(context.Context, string, string) (net.Conn, error) { return c.Conn, nil }

var _ network.Proxied = (*Driver)(nil)

// CheckProxy reports whether a channel's proxy connects to WhatsApp. The error is a sentence.
func (d *Driver) CheckProxy(ctx context.Context, c parley.Channel) error {
	find := d.findProxy(c)
	if find == nil {
		return nil
	}
	conn, err := d.dialer.dial(ctx, find, net.JoinHostPort(host, "443"))
	if err != nil {
		return errors.New(unreachableMessage(err))
	}
	return conn.Close()
}
