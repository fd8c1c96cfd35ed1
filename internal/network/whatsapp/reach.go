package whatsapp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// host is where the network is.
const host = "web.whatsapp.com"

// reachTimeout bounds a look at whether the network can be reached.
const reachTimeout = 5 * time.Second

// Reach looks whether the network can be reached from this machine, or the server at endpoint that stands in for it.
// The error is a sentence that says why not, and what to look at.
func Reach(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if endpoint != "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", endpoint)
		if err != nil {
			return errors.New(unreachable(err))
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+host, http.NoBody)
	if err != nil {
		return err
	}
	d := new(dialer)
	client := d.client(nil)
	defer client.CloseIdleConnections()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	if err != nil {
		return errors.New(unreachable(err))
	}
	return answer.Body.Close()
}

// unreachable says in a sentence why no connection could be made, and what to look at. Of the error it repeats only
// the name of the host.
func unreachable(err error) string {
	return "WhatsApp cannot be reached: " + whyUnreachable(err) + "."
}

func whyUnreachable(err error) string {
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
		return fmt.Sprintf("the certificate of %s is not trusted. Look for a proxy or firewall that answers in its place, and at the clock and the root certificates of this machine", host)
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

// isCertificate reports whether an error says that a certificate is not to be trusted.
func isCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || unknown || name || invalid
}
