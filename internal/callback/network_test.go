package callback_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/safehttp"
	"parley/internal/store"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// onNetwork makes an environment whose engine uses the real client.
func onNetwork(t *testing.T, policy safehttp.Policy) *env {
	e := newEnv(t)
	t.Cleanup(e.close)
	client := policy.Client(safehttp.Options{MaxBody: callback.MaxResponse})
	t.Cleanup(client.CloseIdle)
	e.renew(client)
	return e
}

// try sends a test event to an address.
func (e *env) try(url string) callback.Attempt {
	e.Helper()
	w := parley.Webhook{ID: parley.NewWebhookID(), URL: url, CreatedAt: time.Now()}
	err := e.store.Tx(e.Context(), func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), w) })
	if err != nil {
		e.Fatal(err)
	}
	a, err := e.engine.SendTest(e.Context(), w)
	if err != nil {
		e.Fatal(err)
	}
	return a
}

// canary is a server that must not be reached.
func canary(t *testing.T) (url string, reached *atomic.Int64) {
	reached = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(server.Close)
	return server.URL, reached
}

func TestPrivateAddressesAreBlocked(t *testing.T) {
	e := onNetwork(t, safehttp.Policy{})
	url, reached := canary(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		url + "/hook", "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/",
		"http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://192.168.1.1/", "http://[fd00::1]/", "http://168.63.129.16/",
	} {
		a := e.try(address)
		if a.Code != 0 || !strings.HasPrefix(a.Problem, "blocked_address: ") || a.Response != "" {
			t.Errorf("%s: %+v", address, a)
		}
	}
	for _, address := range []string{"gopher://127.0.0.1/", "http://user:pass@127.0.0.1/", "http://2130706433/", "nothing"} {
		if a := e.try(address); !strings.HasPrefix(a.Problem, "bad_url: ") {
			t.Errorf("%s: %+v", address, a)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("the server was reached %d times", reached.Load())
	}
}

func TestCallbackToAPrivateAddressIsBlocked(t *testing.T) {
	e := onNetwork(t, safehttp.Policy{})
	url, reached := canary(t)
	e.start()
	d := e.calls(url+"/ok", parley.OTPApproved, "")
	for deadline := time.Now().Add(10 * time.Second); d.TriedAt.IsZero() && time.Now().Before(deadline); d = e.only() {
		time.Sleep(10 * time.Millisecond)
	}
	if d.State != parley.DeliveryWaiting || !strings.HasPrefix(d.Problem, "blocked_address: ") || reached.Load() != 0 {
		t.Errorf("%+v, reached %d times", d, reached.Load())
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	e := onNetwork(t, safehttp.Policy{AllowPrivate: loopback})
	url, reached := canary(t)
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(url, code))
		a := e.try(server.URL)
		server.Close()
		if a.Code != code || a.Succeeded() {
			t.Errorf("%d: %+v", code, a)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("redirects were followed %d times", reached.Load())
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	proxy, reached := canary(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy)
	}
	e := onNetwork(t, safehttp.Policy{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no names here")
	}}})
	for _, address := range []string{"http://crm.example/hook", "https://crm.example/hook"} {
		if a := e.try(address); !strings.HasPrefix(a.Problem, "dns: ") {
			t.Errorf("%s: %+v", address, a)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("the proxy was used %d times", reached.Load())
	}
}

func TestBadCertificatesAndClosedPorts(t *testing.T) {
	e := onNetwork(t, safehttp.Policy{AllowPrivate: loopback})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Config.ErrorLog = nil
	if a := e.try(server.URL); !strings.HasPrefix(a.Problem, "tls: ") {
		t.Errorf("self-signed: %+v", a)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if a := e.try("http://" + l.Addr().String()); !strings.HasPrefix(a.Problem, "connect: ") {
		t.Errorf("closed port: %+v", a)
	}
}

func TestResponsesOfAllSizes(t *testing.T) {
	e := onNetwork(t, safehttp.Policy{AllowPrivate: loopback})
	ended := make(chan struct{})
	huge := strings.Repeat("0123456789", 1<<20)
	mux := http.NewServeMux()
	mux.HandleFunc("/huge/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		io.WriteString(w, huge)
	})
	mux.HandleFunc("/drip/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		io.WriteString(w, "drip")
		w.(http.Flusher).Flush()
		select { // until the other side has enough
		case <-r.Context().Done():
		case <-ended:
		}
	})
	mux.HandleFunc("/odd", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		io.WriteString(w, "a\x00b\xffc")
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(ended)
	for path, want := range map[string]string{"/huge/200": "", "/drip/200": "", "/huge/500": huge[:1024], "/drip/500": "drip", "/odd": "abc"} {
		a := e.try(server.URL + path)
		if a.Succeeded() != strings.HasSuffix(path, "200") || a.Response != want || a.Took > 8*time.Second {
			t.Errorf("%s: worked %v after %v, kept %d bytes", path, a.Succeeded(), a.Took, len(a.Response))
		}
	}
}

func TestDeliveryOverTheNetwork(t *testing.T) {
	type got struct {
		request *http.Request
		body    []byte
	}
	requests := make(chan got, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- got{r, body}
	}))
	defer server.Close()
	e := onNetwork(t, safehttp.Policy{AllowPrivate: loopback})
	w := e.webhook(server.URL + "/hook?x=1")
	e.start()
	event := e.says(ann, "hello")
	r := <-requests
	keys, err := e.secrets.Keys(t.Context(), parley.WebhookSecret(w.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, keys.Secret, hit{header: r.request.Header, body: r.body}); err != nil {
		t.Error(err)
	}
	if r.request.Header.Get("webhook-id") != string(event.ID) || r.request.RequestURI != "/hook?x=1" || r.request.Method != "POST" {
		t.Errorf("%s %s %v", r.request.Method, r.request.RequestURI, r.request.Header)
	}
	e.calls(server.URL+"/ok?y=a b", parley.OTPFailed, "wrong_sender")
	for r = range requests {
		if r.request.Method == "GET" { // the webhook gets it too
			break
		}
	}
	channel, err := e.secrets.Keys(t.Context(), parley.ChannelSecret(shop))
	if err != nil {
		t.Fatal(err)
	}
	if q := r.request.URL.Query(); !checkCallback(channel.Secret, q) || q.Get("y") != "a b" {
		t.Errorf("%s", r.request.RequestURI)
	}
}

// unrecorded is a store in which deliveries cannot be updated.
type unrecorded struct{ callback.Store }

var errDisk = errors.New("disk full")

func (s unrecorded) Tx(ctx context.Context, do func(tx *store.Tx) error) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		before, _, err := tx.Deliveries(ctx, parley.DeliveryQuery{}, parley.Page{Limit: 100})
		if err == nil {
			err = do(tx)
		}
		for _, d := range before {
			now, _, err2 := tx.Deliveries(ctx, parley.DeliveryQuery{IDs: []parley.DeliveryID{d.ID}}, parley.Page{Limit: 1})
			if err = errors.Join(err, err2); err == nil && !reflect.DeepEqual(now[0], d) {
				err = errDisk
			}
		}
		return err
	})
}

func TestUnstoredResultIsDeliveredAgain(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.engine = callback.New(callback.Config{Store: unrecorded{e.store}, Secrets: e.secrets, Client: e.servers,
			Render: encodeEvent, Log: e.config.Log})
		e.start()
		e.says(ann, "one")
		e.says(ann, "two")
		pass(5 * time.Minute)
		if n := len(e.servers.at("crm.example")); n != 1 {
			e.Errorf("delivered %d times by a process that cannot record it", n)
		}
		e.stop()
		e.renew(e.servers)
		e.start()
		pass(time.Second)
		hits := e.servers.at("crm.example")
		if len(hits) != 3 || hits[1].id() != hits[0].id() {
			e.Errorf("delivered %d times", len(hits))
		}
	})
}
