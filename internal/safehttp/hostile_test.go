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
// address's text, so that the check at dialling is tested alone too.
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

// A name whose first answer is allowed and whose second is not: every connection is checked again, so
// checking the name once and dialling it later would not do. 127.0.0.2 plays a public address,
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

// hostile lists addresses that lead, or might lead by some reading, to where no caller may send us.
// {p} is the port of the canary on loopback.
var hostile = []string{
	// Loopback, as it is written.
	"http://127.0.0.1:{p}/", "http://127.0.0.1:{p}", "HTTP://127.0.0.1:{p}/", "http://127.0.0.2:{p}/", "http://127.255.255.254:{p}/",
	"http://localhost:{p}/", "http://LOCALHOST:{p}/", "http://LocalHost:{p}/", "http://localhost.:{p}/", "http://127.0.0.1.:{p}/",
	"https://127.0.0.1:{p}/", "https://localhost:{p}/", "http://0.0.0.0:{p}/", "http://0.0.0.1:{p}/", "http://0.1.2.3:{p}/",
	// IPv4 in its old spellings, which some resolvers read.
	"http://127.1:{p}/", "http://127.0.1:{p}/", "http://2130706433:{p}/", "http://0x7f000001:{p}/", "http://0X7F000001:{p}/",
	"http://0x7f.1:{p}/", "http://0x7f.0x0.0x0.0x1:{p}/", "http://0177.0.0.1:{p}/", "http://0177.1:{p}/", "http://017700000001:{p}/",
	"http://0:{p}/", "http://0x0:{p}/", "http://00:{p}/", "http://0.0:{p}/", "http://0x7f.0.0.1:{p}/", "http://127.0x0.1:{p}/",
	"http://127.000.000.001:{p}/", "http://127.0.0.01:{p}/", "http://0x07f.0.0.1:{p}/", "http://2130706433.:{p}/",
	"http://127.1.:{p}/", "http://00000000000000000177.0.0.1:{p}/", "http://0x00000000000000007f000001:{p}/", "http://0xa9fea9fe/",
	"http://2852039166/",
	"http://0251.0376.0251.0376/", "http://025177524776/", "http://0xa9.0xfe.0xa9.0xfe/", "http://169.16689662/", "http://169.254.43518/",
	"http://169.254.0xa9fe/",
	// Digits and dots of other scripts.
	"http://①②⑦.⓪.⓪.①:{p}/", "http://１２７.０.０.１:{p}/", "http://127。0。0。1:{p}/", "http://127．0．0．1:{p}/", "http://127｡0｡0｡1:{p}/",
	"http://𝟏𝟐𝟕.𝟎.𝟎.𝟏:{p}/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{p}/", "http://ｌｏｃａｌｈｏｓｔ:{p}/", "http://𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽:{p}/", "http://①②⑦.①:{p}/",
	"http://loc\u00adalhost:{p}/", "http://local\u200bhost:{p}/", "http://LOCALHO\u017fT:{p}/", "http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/",
	"http://⑩.⓪.⓪.①/",
	// IPv6.
	"http://[::1]:{p}/", "http://[0:0:0:0:0:0:0:1]:{p}/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/", "http://[::0001]:{p}/",
	"http://[::]:{p}/",
	"http://[::ffff:127.0.0.1]:{p}/", "http://[::ffff:7f00:1]:{p}/", "http://[::FFFF:127.0.0.1]:{p}/",
	"http://[0:0:0:0:0:ffff:127.0.0.1]:{p}/", "http://[::ffff:0.0.0.0]:{p}/",
	"http://[::127.0.0.1]:{p}/", "http://[::7f00:1]:{p}/", "http://[::ffff:0:127.0.0.1]:{p}/", "http://[64:ff9b::127.0.0.1]:{p}/",
	"http://[64:ff9b::7f00:1]:{p}/",
	"http://[64:ff9b:1::7f00:1]:{p}/", "http://[2002:7f00:1::]:{p}/", "http://[2002:7f00:0001::1]:{p}/", "http://[2001:0:7f00:1::]:{p}/",
	"http://[2001::1]:{p}/",
	"http://[::1%25lo]:{p}/", "http://[::1%lo]:{p}/", "http://[fe80::1%25lo]:{p}/", "http://[fe80::1%25eth0]/",
	"http://[::ffff:127.0.0.1%25lo]:{p}/", "http://[fe80::1]/",
	"http://[fc00::1]/", "http://[fd00::1]/", "http://[fd00:ec2::254]/", "http://[fd00:ec2:0::254]/latest/", "http://[fd20:ce::254]/",
	"http://[fd00:42::42]/",
	"http://[ff02::1]/", "http://[fec0::1]/", "http://[100::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
	"http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/",
	"http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/", "http://[::ffff:10.0.0.1]/", "http://[5f00::1]/", "http://[4000::1]/",
	// Private and reserved IPv4.
	"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/",
	"http://192.168.255.255/",
	"http://100.64.0.1/", "http://100.127.255.255/", "http://100.100.100.200/", "http://169.254.0.1/",
	"http://169.254.169.254/latest/meta-data/", "http://169.254.169.254:80/", "https://169.254.169.254/",
	"http://169.254.170.2/", "http://169.254.42.42/", "http://168.63.129.16/", "http://192.0.0.1/", "http://192.0.0.192/",
	"http://192.0.2.1/", "http://192.88.99.1/",
	"http://198.18.0.1/", "http://198.19.255.255/", "http://198.51.100.1/", "http://203.0.113.1/", "http://224.0.0.1/",
	"http://239.255.255.250:1900/", "http://240.0.0.1/", "http://255.255.255.255/",
	// Tricks on human readers.
	"http://example.com@127.0.0.1:{p}/", "http://127.0.0.1:{p}@example.com@127.0.0.1:{p}/", "http://user:pass@127.0.0.1:{p}/",
	"http://@127.0.0.1:{p}/", "http://:@127.0.0.1:{p}/",
	"http://127.0.0.1:{p}#@example.com/", "http://127.0.0.1:{p}?@example.com/", `http://127.0.0.1:{p}\@example.com/`,
	`http://example.com\@127.0.0.1:{p}/`,
	`http:\\127.0.0.1:{p}\`, `http:/\127.0.0.1:{p}/`, "http:///127.0.0.1:{p}/", "http:/127.0.0.1:{p}/", "http:127.0.0.1:{p}/",
	"//127.0.0.1:{p}/", "127.0.0.1:{p}/",
	"http://127.0.0.1:{p}%20.example.com/", "http://127.0.0.1%00.example.com:{p}/", "http://127.0.0.1%2eexample.com:{p}/",
	"http://127.0.0.1%09:{p}/", "http://%31%32%37.0.0.1:{p}/", "http://127%2e0%2e0%2e1:{p}/",
	"http://127.0.0.1\t:{p}/", "http://127.0.0.1\n:{p}/", "http://127.0.0.1\r\nHost: x:{p}/", "http://127.0.0.1\x00:{p}/",
	" http://127.0.0.1:{p}/", "http://127.0.0.1 :{p}/", "http://127.0.0.1:{p} /",
	"http://127.0.0.1:{p}:80/", "http://127.0.0.1:0{p}/", "http://127.0.0.1:+{p}/", "http://127.0.0.1:99999/",
	"http://127.0.0.1:0/", "http://127.0.0.1:-1/", "http://127.0.0.1:x/", "http://127.0.0.1:/",
	"http://[127.0.0.1]:{p}/", "http://[::1/", "http://::1:{p}/", "http://[::1]{p}/", "http://[[::1]]:{p}/",
	"http://{127.0.0.1}:{p}/", "http://(127.0.0.1):{p}/", "http://127.0.0.1,example.com:{p}/", "http://127..0.0.1:{p}/",
	"http://.127.0.0.1:{p}/",
	// Other schemes.
	"gopher://127.0.0.1:{p}/_GET", "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1:{p}/",
	"dict://127.0.0.1:{p}/", "ldap://127.0.0.1:{p}/", "tftp://127.0.0.1:{p}/",
	"ws://127.0.0.1:{p}/", "unix:///var/run/docker.sock", "data:text/html,hello", "javascript:alert(1)",
	"jar:http://127.0.0.1:{p}!/", "view-source:http://127.0.0.1:{p}/", "netdoc:///etc/passwd", "",
}

// hostileNames resolve to where no caller may send us. The test's own name server answers them.
var hostileNames = map[string][]string{
	"loop.test.":      {"127.0.0.1"},
	"six.test.":       {"::1"},
	"mapped.test.":    {"::ffff:127.0.0.1"},
	"both.test.":      {"127.0.0.1", "::1"},
	"zero.test.":      {"0.0.0.0"},
	"ten.test.":       {"10.0.0.1"},
	"metadata.test.":  {"169.254.169.254"},
	"azure.test.":     {"168.63.129.16"},
	"ula.test.":       {"fd00:ec2::254"},
	"nat64.test.":     {"64:ff9b::7f00:1"},
	"many.test.":      {"10.0.0.1", "127.0.0.1", "192.168.1.1", "::1"},
	"xn--caf-dma.de.": {"127.0.0.1"},
}
