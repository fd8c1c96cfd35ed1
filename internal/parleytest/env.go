// Package parleytest runs a whole gateway on loopback for a test: the HTTP API, phones on the sandbox network, and
// a server with files to send.
//
// Invariants: no test reaches the real network; every response is validated against the OpenAPI document; every wait
// ends after WaitLimit.
package parleytest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/postgrestest"
)

// WaitLimit is the limit of every wait in tests. Only a hanging program reaches it, even on a busy machine.
const WaitLimit = 2 * time.Minute

// Env is a running gateway as "parley dev" starts it, and a client.
type Env struct {
	T      testing.TB
	URL    string // without /api
	Token  string // of channel demo
	Global string
	Admin  string
	Data   app.Dir
	Log    *Log

	config app.Config
	client *http.Client
	stop   func() error
}

// Start runs a gateway on a data directory of its own until the test ends.
func Start(t testing.TB, change ...func(*app.Config)) *Env {
	t.Helper()
	log, level := &Log{}, new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	e := &Env{T: t, Log: log}
	e.config = app.Config{DataDir: app.Dir(filepath.Join(t.TempDir(), "data")), Listen: "127.0.0.1:0", Dev: true, Version: "test",
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})), LogLevel: level}
	standIn(t, whatsapptest.Unreachable())(&e.config) // no test reaches the real network
	for _, f := range change {
		f(&e.config)
	}
	e.Data = e.config.DataDir
	if postgrestest.Running() {
		e.config.Database = postgrestest.Path(t, string(e.Data))
	}
	if !e.config.Dev {
		e.prepare()
	}
	e.client = &http.Client{Transport: NewValidator(t).Wrap(http.DefaultTransport.(*http.Transport).Clone()), Timeout: WaitLimit}
	e.run()
	t.Cleanup(e.Stop)
	return e
}

// Serve is a change that runs the gateway as "parley serve" does, which allows no private address.
// It creates the channel and the tokens that a development server creates itself.
func Serve(c *app.Config) { c.Dev = false }

// prepare creates the channel and the tokens of a gateway that is not a development server.
func (e *Env) prepare() {
	e.T.Helper()
	ctx := context.Background()
	data := e.OpenData()
	defer data.Close()
	var err error
	if err := app.AddChannel(ctx, data.Store, parley.Channel{Code: app.DemoChannel, Network: parley.Sandbox}); err != nil {
		e.T.Fatal(err)
	}
	for kind, token := range map[parley.TokenKind]*string{parley.ChannelToken: &e.Token, parley.GlobalToken: &e.Global,
		parley.AdminToken: &e.Admin} {
		t := parley.Token{Name: "test", Kind: kind}
		if kind == parley.ChannelToken {
			t.Channel = app.DemoChannel
		}
		if *token, err = data.Tokens.Issue(ctx, t); err != nil {
			e.T.Fatal(err)
		}
	}
}

// OpenData opens the database beside the gateway, to read or store what the API does not. The caller closes it.
func (e *Env) OpenData() *app.Data {
	e.T.Helper()
	data, err := app.OpenDataAt(e.T.Context(), e.Data, cmp.Or(e.config.Database, e.Data.Database()), e.config.Log)
	if err != nil {
		e.T.Fatal(err)
	}
	return data
}

func (e *Env) run() {
	e.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	config := e.config
	config.OnReady = func(url string) { ready <- url }
	go func() { ended <- app.Run(ctx, config) }()
	select {
	case e.URL = <-ready:
	case err := <-ended:
		cancel()
		e.T.Fatalf("the gateway did not start: %v", err)
	}
	e.stop = sync.OnceValue(func() error {
		e.client.CloseIdleConnections()
		cancel()
		return <-ended
	})
	if !e.config.Dev {
		return
	}
	env, err := app.ReadDevEnv(e.Data)
	if err != nil {
		e.T.Fatal(err)
	}
	e.Token, e.Global, e.Admin = env[app.EnvToken], env[app.EnvGlobalToken], env[app.EnvAdminToken]
}

// Stop ends the gateway as a signal would, and returns when it ended.
func (e *Env) Stop() {
	e.T.Helper()
	if err := e.stop(); err != nil {
		e.T.Errorf("the gateway ended with: %v", err)
	}
}

// Restart ends the gateway and starts another on the same data. Its address is a new one.
func (e *Env) Restart() {
	e.T.Helper()
	e.Stop()
	e.run()
}

type Option func(*http.Request)

// As makes a request with another token; empty: with none.
func As(token string) Option {
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
}

// With sets a header; an empty value removes it.
func With(name, value string) Option {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

// On names the channel of a request by a Global token.
func On(channel string) Option { return With("X-Channel", channel) }

// Call makes a request with the token of channel demo. A body that is not empty is sent as JSON.
func (e *Env) Call(method, path, body string, options ...Option) *Response {
	e.T.Helper()
	answer, err := e.TryCall(method, path, body, options...)
	if err != nil {
		e.T.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// TryCall is Call for a request that may get no response. It may be called from any goroutine.
func (e *Env) TryCall(method, path, body string, options ...Option) (*Response, error) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, e.URL+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+e.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, o := range options {
		o(req)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = record(recording{e.T.Name(), method, path, body, resp.StatusCode, string(text)})
	}
	return &Response{T: e.T, Request: method + " " + path, Status: resp.StatusCode, Header: resp.Header, Body: text, At: time.Now()}, err
}

// Get, Post, Put and Delete are Call with the method named.
func (e *Env) Get(path string, options ...Option) *Response {
	e.T.Helper()
	return e.Call("GET", path, "", options...)
}

func (e *Env) Post(path, body string, options ...Option) *Response {
	e.T.Helper()
	return e.Call("POST", path, body, options...)
}

func (e *Env) Put(path, body string, options ...Option) *Response {
	e.T.Helper()
	return e.Call("PUT", path, body, options...)
}

func (e *Env) Delete(path string, options ...Option) *Response {
	e.T.Helper()
	return e.Call("DELETE", path, "", options...)
}

// Eventually polls until a condition holds. Prefer to wait for an event, if there is one.
func (e *Env) Eventually(what string, holds func() bool) {
	e.T.Helper()
	deadline := time.Now().Add(WaitLimit)
	for pause := 2 * time.Millisecond; !holds(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			e.T.Fatalf("not so after %s: %s", WaitLimit, what)
		}
		time.Sleep(pause)
	}
}

// AwaitDeletions waits until nothing of a deleted channel is left.
func (e *Env) AwaitDeletions() {
	e.T.Helper()
	e.Eventually("deletions finish", func() bool {
		return !bytes.Contains(e.Get("/api/manage/deletions", As(e.Admin)).Expect(http.StatusOK).Body, []byte(`"running"`))
	})
}

// CreateChannel creates another sandbox channel and returns a token for it.
func (e *Env) CreateChannel(code string) (token string) {
	e.T.Helper()
	e.Post("/api/manage/channels", `{"code":"`+code+`","network":"sandbox"}`, As(e.Admin)).Expect(http.StatusCreated)
	e.Eventually("channel "+code+" works", func() bool {
		return e.Get("/api/channel/health", As(e.Global), On(code)).Text("data.status") == "WORKING"
	})
	return e.CreateToken("channel", code)
}

func (e *Env) CreateToken(kind, channel string) string {
	e.T.Helper()
	body := `{"name":"test","kind":"` + kind + `"}`
	if channel != "" {
		body = `{"name":"test","kind":"` + kind + `","channel":"` + channel + `"}`
	}
	return e.Post("/api/manage/tokens", body, As(e.Admin)).Expect(http.StatusCreated).Text("data.token")
}

// Log collects the log of a gateway.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }

// Lacks fails the test if any of these texts was logged.
func (l *Log) Lacks(t testing.TB, texts ...string) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		for _, text := range texts {
			if strings.Contains(line, text) {
				t.Errorf("the log has %q: %s", text, line)
			}
		}
	}
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
