package safehttp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// canary listens on loopback, IPv4 and IPv6, and counts who comes.
type canary struct {
	port string
	hits atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	v4, v6 := listenBoth(t)
	_, port, _ := net.SplitHostPort(v4.Addr().String())
	c := &canary{port: port}
	var serving sync.WaitGroup
	for _, l := range []net.Listener{v4, v6} {
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.hits.Add(1)
				http.ReadRequest(bufio.NewReader(conn)) // whatever it is
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret")
				conn.Close()
			}
		})
	}
	t.Cleanup(func() { v4.Close(); v6.Close(); serving.Wait() })
	return c
}

// listenBoth finds a port that is free on both loopback addresses.
func listenBoth(t *testing.T) (v4, v6 net.Listener) {
	t.Helper()
	var err error
	for range 20 {
		if v4, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(v4.Addr().String())
		if v6, err = net.Listen("tcp6", "[::1]:"+port); err == nil {
			return v4, v6
		}
		v4.Close()
	}
	t.Fatal(err)
	return nil, nil
}

func (c *canary) url(template string) string { return strings.ReplaceAll(template, "{p}", c.port) }

func TestHostileAddressesReachNothing(t *testing.T) {
	if len(hostile) < 120 {
		t.Fatalf("the corpus has only %d entries", len(hostile))
	}
	testCorpus(t, Policy{Resolver: noNames(t)}, hostile)
}

// testCorpus gives every hostile address to a client, by the front door and past the check of the
// address's text, so that the check at dialling stands alone too.
func testCorpus(t *testing.T, policy Policy, corpus []string) {
	canary := newCanary(t)
	client := policy.Client(Options{Timeout: 5 * time.Second, MaxRedirects: 3})
	t.Cleanup(client.CloseIdle)
	blocked := 0
	for _, template := range corpus {
		address := canary.url(template)
		resp, err := client.Get(t.Context(), address)
		if err == nil {
			resp.Body.Close()
		}
		checkRefusal(t, address, err)

		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			continue // no client could send it
		}
		resp, err = client.http.Do(req)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%q: the dialler let it through", address)
		} else if errors.Is(err, errBlocked) {
			blocked++
		}
	}
	if hits := canary.hits.Load(); hits != 0 {
		t.Errorf("the canary was reached %d times", hits)
	}
	if blocked < 90 {
		t.Errorf("only %d of %d were stopped at dialling: the corpus does not test what it should", blocked, len(corpus))
	}
}

// checkRefusal demands an error of the fixed vocabulary whose text tells nothing of our network.
func checkRefusal(t *testing.T, address string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%q: answered", address)
		return
	}
	if problem, ok := errors.AsType[*Problem](err); ok {
		if problem.Code != BlockedAddress && problem.Code != DNS {
			t.Errorf("%q: %s (%v), want blocked_address or dns", address, problem.Code, problem.Cause)
		}
	} else if _, ok := errors.AsType[*BadURL](err); !ok {
		t.Errorf("%q: %T (%v), want a *Problem or a *BadURL", address, err, err)
	}
	for _, leak := range []string{"127.0.0.1", "169.254", "::1]", "dial", "tcp", "lookup", "refused"} {
		if strings.Contains(err.Error(), leak) && !strings.Contains(err.Error(), "for example") {
			t.Errorf("%q: the text %q tells %q", address, err, leak)
		}
	}
}

func TestHostileNamesReachNothing(t *testing.T) {
	canary := newCanary(t)
	resolver := nameServer(t, func(name string) []string { return hostileNames[name] })
	client := Policy{Resolver: resolver}.Client(Options{Timeout: 5 * time.Second})
	for name := range hostileNames {
		address := canary.url("http://" + strings.TrimSuffix(name, ".") + ":{p}/")
		_, err := client.Get(t.Context(), address)
		if problem, ok := errors.AsType[*Problem](err); !ok || problem.Code != BlockedAddress {
			t.Errorf("%s: %v, want blocked_address", address, err)
		}
	}
	if hits := canary.hits.Load(); hits != 0 {
		t.Errorf("the canary was reached %d times", hits)
	}
}

// The canary must be there to be missed: with loopback allowed the same addresses reach it.
func TestAllowedLoopbackIsReached(t *testing.T) {
	canary := newCanary(t)
	resolver := nameServer(t, func(name string) []string { return hostileNames[name] })
	client := loopback(Policy{Resolver: resolver}).Client(Options{})
	t.Cleanup(client.CloseIdle)
	for i, template := range []string{
		"http://127.0.0.1:{p}/", "http://localhost:{p}/", "http://[::1]:{p}/", "http://①②⑦.⓪.⓪.①:{p}/", "http://[::ffff:7f00:1]:{p}/",
		"http://loop.test:{p}/", "http://café.de:{p}/", "http://127.0.0.1:{p}/a#fragment",
	} {
		resp, err := client.Get(t.Context(), canary.url(template))
		if err != nil {
			t.Errorf("%s: %v", template, errors.Join(err, errors.Unwrap(err)))
			continue
		}
		resp.Body.Close()
		if hits := canary.hits.Load(); hits != int64(i+1) {
			t.Errorf("%s: the canary counts %d, want %d", template, hits, i+1)
		}
	}
}

// loopback allows what a developer's own machine needs.
func loopback(p Policy) Policy {
	p.AllowPrivate = append(p.AllowPrivate, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	return p
}

// A name whose first answer is allowed and whose second is not: every connection is judged anew, so
// checking the name once and dialling it later would not do. 127.0.0.2 stands for a public address,
// to stay on this machine.
func TestRebindingReachesNothing(t *testing.T) {
	canary := newCanary(t)
	good, err := net.Listen("tcp", "127.0.0.2:"+canary.port)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	})}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(good) })
	t.Cleanup(func() { server.Close(); serving.Wait() })

	var rebound atomic.Bool // not by counting: a question may be asked again
	resolver := nameServer(t, func(name string) []string {
		if name == "twofaced.test." {
			return []string{"127.0.0.3", "127.0.0.1"} // the first is allowed, but nobody listens there
		}
		if rebound.Load() {
			return []string{"127.0.0.1"}
		}
		return []string{"127.0.0.2"}
	})
	client := Policy{Resolver: resolver, AllowPrivate: prefixes("127.0.0.2/31")}.Client(Options{})
	resp, err := client.Get(t.Context(), canary.url("http://rebind.test:{p}/"))
	if err != nil {
		t.Fatalf("first answer: %v", err)
	}
	resp.Body.Close()
	rebound.Store(true)
	for _, name := range []string{"rebind.test", "rebind.test", "twofaced.test"} {
		if _, err := client.Get(t.Context(), canary.url("http://"+name+":{p}/")); err == nil {
			t.Errorf("%s: answered", name)
		}
	}
	if hits := canary.hits.Load(); hits != 0 {
		t.Errorf("the canary was reached %d times", hits)
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, p := range texts {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

func TestProxyOfEnvironmentIsIgnored(t *testing.T) {
	if os.Getenv("PARLEY_TEST_CHILD") == "" {
		canary := newCanary(t)
		runAgain(t, "HTTP_PROXY=http://127.0.0.1:"+canary.port, "HTTPS_PROXY=http://127.0.0.1:"+canary.port)
		if hits := canary.hits.Load(); hits != 0 {
			t.Errorf("the proxy was asked %d times", hits)
		}
		return
	}
	target := newCanary(t)
	resolver := nameServer(t, func(string) []string { return []string{"127.0.0.1"} })
	client := loopback(Policy{Resolver: resolver}).Client(Options{})
	resp, err := client.Get(t.Context(), target.url("http://somewhere.test:{p}/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if hits := target.hits.Load(); hits != 1 {
		t.Errorf("the target was reached %d times, want once", hits)
	}
}

// runAgain runs the calling test in a process of its own with an environment that is read only once.
func runAgain(t *testing.T, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), "PARLEY_TEST_CHILD=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
}
