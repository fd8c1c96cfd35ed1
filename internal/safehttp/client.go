package safehttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	dialTimeout   = 3 * time.Second  // a reachable server accepts within a round trip or two
	tlsTimeout    = 5 * time.Second  // slow machines need a second or two for the handshake
	headerTimeout = 10 * time.Second // default, until the response starts; the whole may take longer
	maxHeader     = 64 << 10         // a larger header is not honest
	userAgent     = "Parley"
)

type Options struct {
	// Timeout is for the whole request, until its body is read; zero: 30 seconds.
	Timeout time.Duration
	// HeaderTimeout is until the response starts; zero: 10 seconds.
	HeaderTimeout time.Duration
	// MaxRedirects is how many redirects are followed; zero: none, the redirect itself is the response.
	MaxRedirects int
	// MaxBody bounds a response body in bytes; zero: 1 MiB.
	MaxBody int64
	// Connections is how many idle connections to one host are kept for the next requests; zero: 4.
	Connections int
	// Grace is how long a body may be slower than 1 KiB/s; zero: 5 seconds.
	Grace time.Duration
}

// Client sends requests within its policy. It stores no cookies. It may be used by several goroutines.
type Client struct {
	http    http.Client
	options Options
}

func (p Policy) Client(o Options) *Client {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	c := &Client{options: o}
	c.http.Transport = p.transport(cmp.Or(o.HeaderTimeout, headerTimeout), cmp.Or(o.Connections, 4))
	c.http.CheckRedirect = c.checkRedirect
	return c
}

// Dialer connects within the policy.
func (p Policy) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: p.control, Resolver: p.Resolver}
}

// IsBlocked reports whether the policy refused an address.
func IsBlocked(err error) bool { return errors.Is(err, errBlocked) }

func (p Policy) transport(header time.Duration, idle int) *http.Transport {
	dialer := p.Dialer()
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // an HTTP_PROXY in the environment would dial past our check
		DialContext:            dialer.DialContext,
		DialTLSContext:         p.dialTLS(dialer),
		Protocols:              &http1,
		ResponseHeaderTimeout:  header,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // so that the limit on bodies counts all that we handle
		MaxIdleConns:           max(64, idle),
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        30 * time.Second,
	}
}

// dialTLS makes TLS connections itself, so that their errors can be distinguished.
func (p Policy) dialTLS(dialer *net.Dialer) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			raw.Close()
			return nil, fmt.Errorf("split %q: %w", address, err)
		}
		conn := tls.Client(raw, &tls.Config{ServerName: host, RootCAs: p.RootCAs, MinVersion: tls.VersionTLS12})
		ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, tlsError{err}
		}
		return conn, nil
	}
}

// Get fetches a URL. Every status but 2xx is a problem. The error is a *Problem or a *BadURL; without one the caller
// closes the body, whose errors are problems too.
func (c *Client) Get(ctx context.Context, address string) (*http.Response, error) {
	u, err := CheckURL(address)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx)
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		resp.Body.Close()
		return nil, &Problem{Code: HTTPStatus, Status: resp.StatusCode,
			Sentence: fmt.Sprintf("The server answered with status %d instead of 200.", resp.StatusCode)}
	}
	return resp, nil
}

// Do sends a request and returns the response with any status. The error is a *Problem or a *BadURL; without one the
// caller closes the body, whose errors are problems too.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	u, err := checkParsed(req.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	deadline := time.AfterFunc(c.options.Timeout, func() { cancel(context.DeadlineExceeded) })
	stop := func() { deadline.Stop(); cancel(nil) }

	req = req.Clone(ctx)
	req.URL, req.Host = u, ""
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		problem := toProblem(ctx, err)
		stop()
		return nil, problem
	}
	resp.Body = newBody(ctx, resp, c.options, cancel, stop)
	return resp, nil
}

func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// checkRedirect decides about a redirect; its address is checked when it is dialled.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case c.options.MaxRedirects == 0:
		return http.ErrUseLastResponse
	case len(via) > c.options.MaxRedirects:
		return redirectProblem(fmt.Sprintf("The server redirected more than %d times.", c.options.MaxRedirects))
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return redirectProblem("The server redirected from https to http, which is not followed.")
	}
	u, err := checkParsed(req.URL)
	if err != nil {
		return redirectProblem("The server redirected to an address that cannot be used.")
	}
	req.URL, req.Host = u, ""
	req.Header = http.Header{"User-Agent": {userAgent}} // nothing meant for one server reaches another
	return nil
}

// minRate is how many bytes a second a body must bring on average once its grace period is over: a
// server that drips would otherwise hold a connection for the whole time-out.
const minRate = 1 << 10

// body is a response body within the client's limits. Its errors are problems.
type body struct {
	ctx     context.Context
	from    io.ReadCloser
	limit   int64
	read    atomic.Int64
	err     error // the error of every further Read
	started time.Time
	watch   *time.Timer
	stop    func()
}

// newBody cancels the request when the body is too slow, and calls stop when the body is closed.
func newBody(ctx context.Context, resp *http.Response, o Options, cancel context.CancelCauseFunc, stop func()) *body {
	b := &body{ctx: ctx, from: resp.Body, limit: o.MaxBody, started: time.Now(), stop: stop}
	if resp.ContentLength > b.limit {
		b.err = tooLarge(b.limit)
	}
	ready := make(chan struct{})
	b.watch = time.AfterFunc(o.Grace, func() {
		<-ready // b.watch is set
		if b.read.Load() < int64(time.Since(b.started).Seconds()*minRate) {
			cancel(errSlow)
		}
		if ctx.Err() == nil {
			b.watch.Reset(time.Second)
		}
	})
	close(ready)
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	total := b.read.Add(int64(n))
	switch {
	case total > b.limit:
		n -= int(total - b.limit)
		b.err = tooLarge(b.limit)
	case err == io.EOF:
		b.err = io.EOF
	case err != nil:
		b.err = toProblem(b.ctx, err)
	}
	return n, b.err
}

// Close may be called twice.
func (b *body) Close() error {
	b.watch.Stop()
	err := b.from.Close()
	b.stop()
	return err
}

// ProblemCode says in one word why a request did not succeed. These are all there are.
type ProblemCode string

const (
	BlockedAddress ProblemCode = "blocked_address" // the host leads to an address that the policy refuses
	DNS            ProblemCode = "dns"             // the host's name could not be looked up
	Connect        ProblemCode = "connect"         // no connection, or it broke
	TLS            ProblemCode = "tls"             // no trusted TLS connection
	Timeout        ProblemCode = "timeout"         // too slow
	TooLarge       ProblemCode = "too_large"       // the body is over the limit
	BadType        ProblemCode = "bad_type"        // the body has an unexpected type
	HTTPStatus     ProblemCode = "http_status"     // a status that is not success
)

// Problem is why a request failed. Its text may be shown to the caller who provided the URL: it contains nothing from
// the other end but a status. The cause is for the log only.
type Problem struct {
	Code     ProblemCode
	Sentence string
	Status   int // the response status (HTTPStatus only; 0: a redirect was not followed)
	Cause    error
}

func (p *Problem) Error() string { return p.Sentence }

func (p *Problem) Unwrap() error { return p.Cause }

// errSlow is the cause with which a request is cancelled whose body comes too slowly.
var errSlow = errors.New("body too slow")

type tlsError struct{ error }

func (e tlsError) Unwrap() error { return e.error }

// toProblem classifies an error of net/http. Blocked wins: if some addresses of a name are blocked and the others fail,
// the caller must learn that.
func toProblem(ctx context.Context, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, errBlocked) {
		return &Problem{BlockedAddress,
			"The address leads to a private or reserved network, which this server does not reach. " +
				"Use a public address, or have the operator allow its range.", 0, err}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &Problem{DNS, "The host name could not be looked up. Check that it is spelled right.", 0, err}
	}
	if e, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && e.Timeout() {
		return &Problem{Timeout, "The server did not answer in time, or too slowly.", 0, errors.Join(err, context.Cause(ctx))}
	}
	if _, ok := errors.AsType[tlsError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return &Problem{TLS, "No trusted TLS connection could be made. " +
			"Check the server's certificate and that it speaks TLS 1.2 or newer.", 0, err}
	}
	return &Problem{Connect, "The server could not be reached, or broke the connection.", 0, err}
}

func redirectProblem(sentence string) *Problem {
	return &Problem{Code: HTTPStatus, Sentence: sentence}
}

func tooLarge(limit int64) *Problem {
	return &Problem{Code: TooLarge, Sentence: "The answer is larger than " + Size(limit) + "."}
}

// Size formats a number of bytes in full mebibytes, kibibytes or bytes.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
