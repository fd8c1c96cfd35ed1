package safehttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fetchCode fetches an address to its end and says how it went: a problem's code, or "".
func fetchCode(t *testing.T, c *Client, address string) ProblemCode {
	t.Helper()
	resp, err := c.Get(t.Context(), address)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		return ""
	}
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		t.Fatalf("%s: %T (%v), want a *Problem", address, err, err)
	}
	if problem.Sentence == "" || strings.Contains(problem.Sentence, "127.0.0.1") {
		t.Errorf("%s: the sentence is %q", address, problem.Sentence)
	}
	return problem.Code
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestRedirects(t *testing.T) {
	var mux http.ServeMux
	s := httptest.NewServer(&mux)
	t.Cleanup(s.Close)
	secure := httptest.NewTLSServer(&mux)
	t.Cleanup(secure.Close)
	mux.HandleFunc("/end", func(w http.ResponseWriter, _ *http.Request) {})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/hops/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		if n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/hops/%d", n-1), http.StatusTemporaryRedirect)
		}
	})
	canary := newCanary(t)
	policy := Policy{AllowPrivate: prefixes("127.0.0.1/32"), RootCAs: newRoots(secure)}
	client := policy.Client(Options{MaxRedirects: 3})
	t.Cleanup(client.CloseIdle)
	for address, want := range map[string]ProblemCode{
		s.URL + "/to?u=/end":                                     "",
		s.URL + "/to?u=" + secure.URL + "/end":                   "",
		secure.URL + "/to?u=/end":                                "",
		secure.URL + "/to?u=" + s.URL + "/end":                   HTTPStatus,
		s.URL + "/hops/3":                                        "",
		s.URL + "/hops/4":                                        HTTPStatus,
		s.URL + "/loop":                                          HTTPStatus,
		s.URL + "/to?u=http://169.254.169.254/latest/meta-data/": BlockedAddress,
		s.URL + "/to?u=" + canary.url("http://[::1]:{p}/"):       BlockedAddress,
		s.URL + "/to?u=//10.0.0.1/":                              BlockedAddress,
		s.URL + "/to?u=file:///etc/passwd":                       HTTPStatus,
		s.URL + "/to?u=http://u:p@127.0.0.1/":                    HTTPStatus,
		s.URL + "/to?u=http://2130706433/":                       HTTPStatus,
	} {
		if got := fetchCode(t, client, address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if hits := canary.hits.Load(); hits != 0 {
		t.Errorf("the canary was reached %d times", hits)
	}

	resp, err := policy.Client(Options{}).Do(request(t, s.URL+"/to?u=/end"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("without redirects: %d, want the redirect itself", resp.StatusCode)
	}
}

func request(t *testing.T, address string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func newRoots(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

func TestRedirectCarriesNoHeaders(t *testing.T) {
	var seen []http.Header
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		if r.URL.Path == "/" {
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	})
	req := request(t, s.URL+"/?secret")
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("X-Custom", "secret")
	resp, err := loopback(Policy{}).Client(Options{MaxRedirects: 1}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if seen[0].Get("Authorization") == "" || seen[0].Get("X-Custom") == "" {
		t.Errorf("the request itself lost headers: %v", seen[0])
	}
	if len(seen) != 2 || len(seen[1]) != 1 || seen[1].Get("User-Agent") != "Parley" {
		t.Errorf("after the redirect: %v, want a User-Agent alone", seen[1:])
	}
}

func TestProblems(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			http.Error(w, "internal banner", http.StatusNotFound)
		case "/declared":
			w.Header().Set("Content-Length", "2000")
			w.Write(make([]byte, 2000))
		case "/short":
			w.Header().Set("Content-Length", "500")
			w.Write(make([]byte, 100))
		case "/limit":
			w.Write(make([]byte, 1000))
		case "/chunks":
			for range 20 {
				w.Write(make([]byte, 100))
				w.(http.Flusher).Flush()
			}
		case "/break":
			panic(http.ErrAbortHandler)
		case "/silent":
			<-r.Context().Done()
		}
	})
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	old := httptest.NewUnstartedServer(nil)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.Config.ErrorLog, secure.Config.ErrorLog = discardLog(), discardLog()
	old.StartTLS()
	t.Cleanup(old.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	policy := loopback(Policy{Resolver: noNames(t)})
	client, hasty := policy.Client(Options{MaxBody: 1000}), policy.Client(Options{Timeout: time.Second})
	t.Cleanup(client.CloseIdle)
	if got := fetchCode(t, hasty, s.URL+"/silent"); got != Timeout {
		t.Errorf("a silent server: %q, want timeout", got)
	}
	for address, want := range map[string]ProblemCode{
		s.URL + "/limit":                           "",
		s.URL + "/404":                             HTTPStatus,
		s.URL + "/declared":                        TooLarge,
		s.URL + "/chunks":                          TooLarge,
		s.URL + "/short":                           Connect,
		s.URL + "/break":                           Connect,
		"http://" + closed.Addr().String():         Connect,
		"http://nowhere.test/":                     DNS,
		secure.URL:                                 TLS, // its certificate is its own
		strings.Replace(s.URL, "http", "https", 1): TLS, // it speaks plain HTTP
	} {
		if got := fetchCode(t, client, address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	trusting := Policy{AllowPrivate: policy.AllowPrivate, RootCAs: newRoots(old)}.Client(Options{})
	if got := fetchCode(t, trusting, old.URL); got != TLS {
		t.Errorf("TLS 1.1: %q, want tls", got)
	}
	trusting = Policy{AllowPrivate: policy.AllowPrivate, RootCAs: newRoots(secure)}.Client(Options{})
	t.Cleanup(trusting.CloseIdle)
	if got := fetchCode(t, trusting, secure.URL); got != HTTPStatus { // 404 of an empty mux
		t.Errorf("trusted TLS: %q, want http_status", got)
	}
}

func TestEndedContextIsATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := loopback(Policy{}).Client(Options{}).Get(ctx, s.URL)
	if problem, ok := errors.AsType[*Problem](err); !ok || problem.Code != Timeout || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a time-out caused by the caller", err)
	}
}

func TestStalledBodyEnds(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("a little"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	client := loopback(Policy{}).Client(Options{Grace: 50 * time.Millisecond, Timeout: time.Hour})
	if got := fetchCode(t, client, s.URL); got != Timeout {
		t.Errorf("%q, want timeout", got)
	}
}

// Nothing is inflated, so nothing can blow up: the bytes are what was sent.
func TestGzipIsNotInflated(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 10<<20))
	z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("Accept-Encoding: %s", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	})
	resp, err := loopback(Policy{}).Client(Options{}).Get(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, bomb.Bytes()) {
		t.Errorf("%d bytes, %v, want the %d that were sent", len(got), err, bomb.Len())
	}
}

func TestBigHeadersAreRefused(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1<<10))
		}
	})
	if got := fetchCode(t, loopback(Policy{}).Client(Options{}), s.URL); got != Connect {
		t.Errorf("%q, want connect", got)
	}
}

// The time of a rejection must not reveal whether a port of our network is open: a
// blocked address is answered as fast as a port that nobody listens on, and not after a time-out.
func TestBlockedTakesNoLongerThanRefused(t *testing.T) {
	canary := newCanary(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	blocked, allowed := Policy{}.Client(Options{}), loopback(Policy{}).Client(Options{})
	// The quickest of many says what a busy machine adds nothing to.
	quickest := func(c *Client, address string) time.Duration {
		best := time.Hour
		for range 51 {
			began := time.Now()
			fetchCode(t, c, address)
			best = min(best, time.Since(began))
		}
		return best
	}
	refused := quickest(allowed, "http://"+closed.Addr().String())
	for name, took := range map[string]time.Duration{
		"open":   quickest(blocked, canary.url("http://127.0.0.1:{p}/")),
		"closed": quickest(blocked, "http://"+closed.Addr().String()),
		"absent": quickest(blocked, "http://10.255.255.1/"),
	} {
		if took > 20*refused {
			t.Errorf("a blocked address (%s) takes %s, a refused one %s", name, took, refused)
		}
	}
}

func TestParallelUse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 10_000)) })
	client := loopback(Policy{}).Client(Options{})
	t.Cleanup(client.CloseIdle)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := fetchCode(t, client, s.URL); got != "" {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// drip is a body that brings a piece at each interval, until its request is cancelled.
type drip struct {
	ctx    context.Context
	piece  int
	every  time.Duration
	pieces int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.pieces == 0 {
		return 0, io.EOF
	}
	d.pieces--
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.every):
		return min(d.piece, len(p)), nil
	}
}

func (d *drip) Close() error { return nil }

func TestMinimumRate(t *testing.T) {
	tests := []struct {
		name    string
		piece   int
		every   time.Duration
		pieces  int
		want    ProblemCode
		noLater time.Duration
	}{
		{"a byte a second", 1, time.Second, 1000, Timeout, 5 * time.Second},
		{"nothing at all", 1, time.Hour, 1, Timeout, 5 * time.Second},
		{"slow, but done within the grace", 1, time.Second, 4, "", 4 * time.Second},
		{"just fast enough", 110, 100 * time.Millisecond, 200, "", 20 * time.Second},
		{"fast, then nothing", 1 << 10, time.Hour, 1, Timeout, 5 * time.Second},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			began := time.Now()
			resp := &http.Response{ContentLength: -1, Body: &drip{ctx, test.piece, test.every, test.pieces}}
			b := newBody(ctx, resp, Options{MaxBody: 1 << 20, Grace: 5 * time.Second}, cancel, func() { cancel(nil) })
			_, err := io.Copy(io.Discard, b)
			b.Close()
			b.Close()
			var got ProblemCode
			if problem, ok := errors.AsType[*Problem](err); ok {
				got = problem.Code
			} else if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			if got != test.want || time.Since(began) > test.noLater {
				t.Errorf("%s: %q after %s, want %q by %s", test.name, got, time.Since(began), test.want, test.noLater)
			}
		})
	}
}
