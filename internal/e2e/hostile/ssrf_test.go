package hostile_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
)

const ayu = "6281234567890@c.us" // a phone to write to

// forbidden are addresses that lead, by one reading or another, to where a caller must not send us.
// PORT is that of the canary, which listens on loopback. Those that could leave the machine have
// addresses at which nothing can answer in time to matter.
var forbidden = []string{
	"http://127.0.0.1:PORT", "http://127.1.2.3:PORT", "http://localhost:PORT", "http://LOCALHOST:PORT", "http://localhost.:PORT",
	"https://127.0.0.1:PORT", "http://0.0.0.0:PORT",
	"http://127.1:PORT", "http://2130706433:PORT", "http://0x7f000001:PORT", "http://0x7f.1:PORT", "http://0177.0.0.1:PORT",
	"http://017700000001:PORT", "http://0:PORT", "http://127.0.0.01:PORT",
	"http://①②⑦.⓪.⓪.①:PORT", "http://１２７.０.０.１:PORT", "http://127。0。0。1:PORT",
	"http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT",
	"http://[::1]:PORT", "http://[::]:PORT", "http://[0:0:0:0:0:0:0:1]:PORT", "http://[::ffff:127.0.0.1]:PORT",
	"http://[::ffff:7f00:1]:PORT", "http://[::127.0.0.1]:PORT", "http://[64:ff9b::127.0.0.1]:PORT", "http://[2002:7f00:1::]:PORT",
	"http://[::1%25lo]:PORT",
	"http://10.0.0.1", "http://172.16.0.1", "http://192.168.1.1", "http://100.64.0.1", "http://169.254.169.254/latest/meta-data",
	"http://169.254.170.2", "http://100.100.100.200", "http://168.63.129.16", "http://192.0.0.192",
	"http://198.18.0.1", "http://224.0.0.1", "http://255.255.255.255", "http://[fe80::1]", "http://[fc00::1]", "http://[fd00:ec2::254]",
	"http://[::ffff:169.254.169.254]", "http://[64:ff9b::a9fe:a9fe]",
	"http://user:pass@127.0.0.1:PORT", "http://parley.test@127.0.0.1:PORT", "http://127.0.0.1:PORT\\@parley.test",
	"http://%31%32%37.0.0.1:PORT", "http://127.0.0.1%00.parley.test:PORT", "http:127.0.0.1:PORT", "//127.0.0.1:PORT",
	"gopher://127.0.0.1:PORT", "file:///etc/passwd", "ftp://127.0.0.1:PORT", "ws://127.0.0.1:PORT", "unix:///run/x.sock",
}

// canary is a server that nobody may reach, and that counts who does.
type canary struct {
	*httptest.Server
	hits atomic.Int64
}

func newCanary(t *testing.T) *canary {
	c := &canary{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "secret of the inside", http.StatusTeapot)
	}))
	c.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.hits.Add(1)
		}
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func (c *canary) port() string { return c.URL[strings.LastIndex(c.URL, ":")+1:] }

// TestNoAddressLeadsInside gives every endpoint that fetches something addresses of the inside.
func TestNoAddressLeadsInside(t *testing.T) {
	e := parleytest.Start(t, parleytest.Serve)
	e.Eventually("the channel works", func() bool { return e.Get("/api/channel/health").Text("data.status") == "WORKING" })
	c := newCanary(t)
	tries := 0
	for i, address := range forbidden {
		address = strings.ReplaceAll(address, "PORT", c.port()) + "/x.ogg"
		field, path, body := fetching(i, address)
		options := []parleytest.Option{parleytest.As(e.Token)}
		if strings.HasSuffix(path, "/pool") {
			options = []parleytest.Option{parleytest.As(e.Global)}
		}
		a := e.Post(path, body, options...).ExpectFields(field)
		sentence := a.Text("message")
		if len(sentence) < 20 || !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, "secret") || strings.Contains(sentence,
			"dial") || strings.Contains(sentence, "refused") {
			t.Errorf("%s: %q is no sentence for a caller", address, sentence)
		}
		tries++
	}
	for _, address := range forbidden { // a text is sent all the same, without a preview
		address = strings.ReplaceAll(address, "PORT", c.port())
		e.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"6281290004711@c.us","message":%q}`, "See "+address+"/x"),
			parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
		tries++
	}
	if hits := c.hits.Load(); hits != 0 {
		t.Errorf("the inside was reached %d times", hits)
	}
	if total := e.Get("/api/chat/detail?contact_id=" + ayu).Number("meta.total"); total != 0 {
		t.Errorf("%d messages were sent", total)
	}
	t.Logf("%d addresses tried", tries)
}

// fetching is a request that fetches an address, of each kind in turn, and the field of the address.
func fetching(i int, address string) (field, path, body string) {
	requests := []struct{ field, path, body string }{
		{"file.url", "/api/send-message/image", `{"contact_id":"AYU","file":{"url":%q}}`},
		{"audioUrl", "/api/send-message/voice", `{"contact_id":"AYU","audioUrl":%q}`},
		{"file.url", "/api/send-message/file", `{"contact_id":"AYU","file":{"url":%q}}`},
		{"videoUrl", "/api/send-message/video", `{"contact_id":"AYU","videoUrl":%q}`},
		{"pools.0.data.0", "/api/send-message/pool", `{"contact_id":"AYU","pools":[{"type":"image","data":[%q]}]}`},
		{"file.url", "/api/sandbox/phones/6281234567890/send", `{"type":"file","file":{"url":%q}}`},
	}
	r := requests[i%len(requests)]
	return r.field, r.path, strings.ReplaceAll(fmt.Sprintf(r.body, address), "AYU", ayu)
}

// TestRedirectsLeadNowhereInside allows one address, from which redirects lead to others.
func TestRedirectsLeadNowhereInside(t *testing.T) {
	c := newCanary(t)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer outside.Close()
	allow := netip.MustParsePrefix("127.0.0.1/32")
	e := parleytest.Start(t, parleytest.Serve, func(c *app.Config) { c.AllowPrivateCallers = []netip.Prefix{allow} })
	e.Eventually("the channel works", func() bool { return e.Get("/api/channel/health").Text("data.status") == "WORKING" })
	for i, to := range []string{"http://127.0.0.2:PORT/", "http://[::1]:PORT/", "http://169.254.169.254/latest/", "http://10.0.0.1/",
		"file:///etc/passwd", "http://u:p@127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/", "http://0x7f000002:PORT/", "//127.0.0.3:PORT/",
		"http://[::ffff:127.0.0.9]:PORT/"} {
		to = strings.ReplaceAll(to, "PORT", c.port())
		field, path, body := fetching(i%4, outside.URL+"/r?to="+url.QueryEscape(to)+"&as=x.ogg")
		e.Post(path, body).ExpectFields(field)
		e.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"6281290004711@c.us","message":%q}`,
			outside.URL+"/r?to="+url.QueryEscape(to)), parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
	}
	loop := outside.URL + "/r?to=" + url.QueryEscape("/r?to=/r")
	e.Post("/api/send-message/image", fmt.Sprintf(`{"contact_id":%q,"file":{"url":%q}}`, ayu, loop)).ExpectFields("file.url")
	if hits := c.hits.Load(); hits != 0 {
		t.Errorf("the inside was reached %d times", hits)
	}
	if total := e.Get("/api/chat/detail?contact_id=" + ayu).Number("meta.total"); total != 0 {
		t.Errorf("%d messages were sent", total)
	}
}

// TestAllowedAddresses checks that an operator can open a range, and that this opens nothing else: not
// the gateway itself, and not what hands out the machine's credentials.
func TestAllowedAddresses(t *testing.T) {
	files := parleytest.Files(t)
	e := parleytest.Start(t, parleytest.Serve, func(c *app.Config) {
		c.AllowPrivateCallers = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.0.0.0/8")}
	})
	e.Eventually("the channel works", func() bool { return e.Get("/api/channel/health").Text("data.status") == "WORKING" })
	e.Post("/api/send-message/image", fmt.Sprintf(`{"contact_id":%q,"file":{"url":%q}}`, ayu, files+"/dot.png")).Expect(http.StatusOK)
	e.Post("/api/send-message/voice", fmt.Sprintf(`{"contact_id":%q,"audioUrl":%q}`, ayu, files+"/hello.ogg")).Expect(http.StatusOK)
	for _, address := range []string{e.URL + "/livez", strings.Replace(e.URL, "127.0.0.1", "localhost", 1) + "/metrics",
		"http://169.254.169.254/latest/meta-data", "http://192.168.0.1/"} {
		e.Post("/api/send-message/file", fmt.Sprintf(`{"contact_id":%q,"file":{"url":%q}}`, ayu, address)).ExpectFields("file.url")
	}
	if got := e.Phone("6281234567890").Messages(); len(got) != 2 {
		t.Errorf("the phone got %+v", got)
	}
}

// TestRangesOfOperators allows this machine for webhooks, and for webhooks only: what any token may name does not reach it.
// The other way round, a range for callers is no range for webhooks.
func TestRangesOfOperators(t *testing.T) {
	machine := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c := newCanary(t)
	operators := parleytest.Start(t, parleytest.Serve, func(c *app.Config) { c.AllowPrivate = machine })
	operators.Eventually("the channel works", func() bool {
		return operators.Get("/api/channel/health").Text("data.status") == "WORKING"
	})
	for i := range 6 {
		field, path, body := fetching(i, c.URL+"/x.ogg")
		options := []parleytest.Option{parleytest.As(operators.Token)}
		if strings.HasSuffix(path, "/pool") {
			options = []parleytest.Option{parleytest.As(operators.Global)}
		}
		operators.Post(path, body, options...).ExpectFields(field)
	}
	operators.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":%q,"message":%q}`, ayu, "See "+c.URL)).Expect(http.StatusOK)
	calledBack(operators, c.URL, "blocked_address")
	if hits := c.hits.Load(); hits != 0 {
		t.Errorf("callers reached the inside %d times", hits)
	}
	if code := testedWebhook(operators, c.URL); code != http.StatusTeapot {
		t.Errorf("a webhook in the range got status %v", code)
	}

	callers := parleytest.Start(t, parleytest.Serve, func(c *app.Config) { c.AllowPrivateCallers = machine })
	callers.Eventually("the channel works", func() bool { return callers.Get("/api/channel/health").Text("data.status") == "WORKING" })
	reached := c.hits.Load()
	if code := testedWebhook(callers, c.URL); code != 0 || c.hits.Load() != reached {
		t.Errorf("a webhook in the range of callers got status %v", code)
	}
	calledBack(callers, c.URL, "http_status")
}

// calledBack makes a login link that calls an address, lets its contact approve it, and waits for the given problem of the call.
func calledBack(e *parleytest.Env, address, problem string) {
	e.T.Helper()
	link := e.Post("/api/otp/link/request", fmt.Sprintf(`{"contact_id":%q,"expires":300,"callback":{"success":%q,"failed":%[2]q}}`,
		ayu, address)).Expect(http.StatusOK)
	e.Post("/api/sandbox/phones/6281234567890/open", `{"id":"`+link.Text("data.id")+`"}`).Expect(http.StatusOK)
	e.Eventually("the call ends with "+problem, func() bool {
		deliveries := e.Get("/api/manage/deliveries", parleytest.As(e.Admin)).Expect(http.StatusOK)
		return strings.HasPrefix(deliveries.Text("data.0.problem"), problem)
	})
}

// testedWebhook is the status that a webhook answered a test with; zero: none.
func testedWebhook(e *parleytest.Env, address string) int {
	e.T.Helper()
	admin := parleytest.As(e.Admin)
	id := e.Post("/api/manage/webhooks", fmt.Sprintf(`{"url":%q}`, address), admin).Expect(http.StatusCreated).Text("data.id")
	tested := e.Post("/api/manage/webhooks/"+id+"/test", "", admin).Expect(http.StatusOK)
	e.Delete("/api/manage/webhooks/"+id, admin).Expect(http.StatusOK)
	if tested.Value("data.code") == nil {
		return 0
	}
	return tested.Number("data.code")
}
