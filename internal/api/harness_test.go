package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/alert"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/network/sandbox"
	"parley/internal/otp"
	"parley/internal/postgrestest"
	"parley/internal/requestlog"
	"parley/internal/safehttp"
	"parley/internal/store"
	"parley/internal/token"
	"parley/internal/wire"
)

// testTimeout is the limit of every wait in these tests. Only a program that hangs reaches it.
const testTimeout = 2 * time.Minute

const ayu = "6281234567890@c.us" // somebody to write to

// env is a whole gateway behind the HTTP interface, with two sandbox channels.
type env struct {
	t       testing.TB
	config  Config
	handler http.Handler
	server  *httptest.Server
	logs    *lockedBuffer
	keyFile string
	ahead   *atomic.Int64 // of the machine's clock, in nanoseconds

	main, second, global, admin string // tokens
}

func newEnv(t testing.TB, change ...func(*Config)) *env {
	t.Helper()
	dir := t.TempDir()
	logs := &lockedBuffer{}
	log := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db := must(store.Open(t.Context(), postgrestest.Path(t, filepath.Join(dir, "parley.db"))))(t)
	t.Cleanup(func() { db.Close() })
	phones := must(sandbox.Open(t.Context(), postgrestest.Path(t, filepath.Join(dir, "sandbox.db")), nil, log))(t)
	t.Cleanup(func() { phones.Close() })
	library := must(media.Open(media.Config{Dir: filepath.Join(dir, "media"), Store: db},
		safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))(t)
	phones.OpenFile = func(ctx context.Context, key string) (io.ReadCloser, error) {
		f, err := library.Open(ctx, key)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	registry := prometheus.NewRegistry()
	keyring := must(encrypt.OpenKeyFile(filepath.Join(dir, "key")))(t)
	ahead := &atomic.Int64{}
	var g *gateway.Gateway
	codes := otp.New(otp.Config{Store: db, Keyring: keyring, Log: log,
		Network: func(name parley.NetworkName) network.Info { return g.Network(name) },
		Now:     func(code parley.ChannelCode) time.Time { return g.Now(code) }})
	g = gateway.New(gateway.Config{
		Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Store: db, Drivers: map[parley.NetworkName]network.Driver{parley.Sandbox: phones},
		Media: library, Keyring: keyring, Log: log, Metrics: registry, LoginLinks: codes,
	})
	running, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Run(running); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	<-g.Ready()
	tokens := must(token.Open(t.Context(), db, keyring))(t)
	t.Cleanup(tokens.Close)

	e := &env{t: t, logs: logs, ahead: ahead, keyFile: filepath.Join(dir, "key"), config: Config{
		Gateway: g, Store: db, Tokens: tokens, Keyring: keyring, Media: library, Sandbox: phones, Log: log, Metrics: registry,
		OTP:          codes,
		Callbacks:    callback.New(callback.Config{Store: db, Secrets: callback.NewSecrets(db, keyring), Log: log, Render: encodeEvent}),
		Ready:        func(context.Context) error { return nil },
		AuthFailures: 100_000, OnUntrustedProxy: func() {}, Cluster: cluster.Single{},
	}}
	for _, f := range change {
		f(&e.config)
	}
	c := &e.config
	c.Requests = requestlog.New(db, log, registry)
	c.Alerts = alert.New(alert.Config{Store: db, Gateway: g, Callbacks: c.Callbacks, Cluster: c.Cluster, Log: log, Metrics: registry})
	for _, code := range []parley.ChannelCode{"main", "second"} {
		must(g.CreateChannel(t.Context(), parley.Channel{Code: code, Name: "Channel " + string(code), Network: parley.Sandbox}))(t)
	}
	e.handler = New(e.config)
	e.server = httptest.NewServer(e.handler)
	t.Cleanup(e.server.Close)
	e.main = e.token(parley.Token{Kind: parley.ChannelToken, Channel: "main"})
	e.second = e.token(parley.Token{Kind: parley.ChannelToken, Channel: "second"})
	e.global = e.token(parley.Token{Kind: parley.GlobalToken})
	e.admin = e.token(parley.Token{Kind: parley.AdminToken})
	e.waitWorking("main")
	e.waitWorking("second")
	return e
}

func (e *env) token(t parley.Token) string {
	e.t.Helper()
	return must(e.config.Tokens.Issue(e.t.Context(), t))(e.t)
}

// waitWorking waits until a channel works.
func (e *env) waitWorking(code parley.ChannelCode) {
	e.t.Helper()
	e.waitStatus(code, parley.ChannelWorking)
}

// waitStatus waits until a channel has a status, by asking what it does.
func (e *env) waitStatus(code parley.ChannelCode, status parley.ChannelStatus) {
	e.t.Helper()
	changes, stop := e.config.Gateway.Activity()
	defer stop()
	for {
		if c, _ := e.config.Gateway.Channel(code); c.State.Status == status {
			return
		}
		select {
		case <-changes:
		case <-e.t.Context().Done():
			e.t.Fatalf("the channel does not become %s", status)
		}
	}
}

// reply is an response as a client sees it.
type reply struct {
	*http.Response
	text string
	json map[string]any
}

// call sends a request. Body may be nil, a string, or anything to encode; headers are pairs.
func (e *env) call(method, path, token string, body any, headers ...string) reply {
	e.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		reader = bytes.NewReader(must(json.Marshal(b))(e.t))
	}
	req := must(http.NewRequestWithContext(e.t.Context(), method, e.server.URL+path, reader))(e.t)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp := must(http.DefaultClient.Do(req))(e.t)
	defer resp.Body.Close()
	r := reply{Response: resp, text: string(must(io.ReadAll(resp.Body))(e.t))}
	json.Unmarshal([]byte(r.text), &r.json)
	return r
}

// want checks an response's status and returns its data.
func (r reply) want(t testing.TB, status int) map[string]any {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, status, r.text)
	}
	data, _ := r.json["data"].(map[string]any)
	return data
}

// wrong returns the names of the fields that an response finds wrong.
func (r reply) wrong() map[string]any {
	fields, _ := r.json["errors"].(map[string]any)
	return fields
}

type m = map[string]any

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// noMetrics takes a second router's figures, which are there already.
type noMetrics struct{ prometheus.Registerer }

func (noMetrics) MustRegister(...prometheus.Collector) {}

func encodeEvent(e *parley.Event, linkTo parley.MediaLink) ([]byte, error) {
	return wire.EncodeEvent(e, linkTo, nil)
}
