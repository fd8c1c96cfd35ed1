package callback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/callback"
	"parley/internal/encrypt"
	"parley/internal/safehttp"
	"parley/internal/store"
	"parley/internal/wire"
)

const (
	shop = parley.ChannelCode("shop")
	ann  = parley.ContactID("6281100000001@c.us")
	bob  = parley.ContactID("6281100000002@c.us")
)

var testLinks = parley.MediaLinks{Base: "https://chat.example.com", Keys: [][]byte{[]byte("key")}}

// env is an engine with a store in memory and servers that are functions.
type env struct {
	*testing.T
	store   *store.DB
	secrets *callback.Secrets
	engine  *callback.Engine
	config  callback.Config // of engine
	servers *servers
	metrics *prometheus.Registry
	log     *lockedBuffer

	stop func()
	seq  int
}

// newEnv makes an environment whose engine does not run yet.
func newEnv(t *testing.T) *env {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+strings.ReplaceAll(t.Name(), "/", "_"))
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := encrypt.OpenKeyFile(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, store: db, secrets: callback.NewSecrets(db, keyring), servers: newServers(), log: &lockedBuffer{}, stop: func() {}}
	e.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: shop, Network: parley.Sandbox})
	})
	e.renew(e.servers)
	return e
}

// renew gives the environment a new engine, as a new process would have.
func (e *env) renew(client callback.HTTPClient) { e.renewOn(e.store, client) }

func (e *env) renewOn(db callback.Store, client callback.HTTPClient) {
	e.metrics = prometheus.NewRegistry()
	e.config = callback.Config{
		Store: db, Secrets: e.secrets, Client: client, Render: encodeEvent, Links: testLinks,
		Log: slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: e.metrics, Version: "1.2.3",
	}
	e.engine = callback.New(e.config)
}

// start runs the engine; e.stop stops it and waits.
func (e *env) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.engine.Run(ctx); err != nil {
			e.Errorf("run: %v", err)
		}
	})
	e.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// close ends everything. A bubble must be empty at its end, so it cannot be left to a clean-up.
func (e *env) close() {
	e.stop()
	if err := e.store.Close(); err != nil {
		e.Errorf("close: %v", err)
	}
	if e.Failed() {
		lines := strings.Split(e.log.String(), "\n")
		e.Logf("the end of the log:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
}

// inBubble runs a test in a bubble, in which time passes when nothing else happens.
func inBubble(t *testing.T, test func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		defer e.close()
		test(e)
	})
}

func (e *env) tx(do func(tx *store.Tx) error) {
	e.Helper()
	if err := e.store.Tx(context.Background(), do); err != nil {
		e.Fatal(err)
	}
}

// webhook adds a webhook for all events.
func (e *env) webhook(url string, types ...parley.EventType) parley.Webhook {
	e.Helper()
	w := parley.Webhook{ID: parley.NewWebhookID(), URL: url, Types: types, CreatedAt: time.Now()}
	e.tx(func(tx *store.Tx) error { return tx.AddWebhook(context.Background(), w) })
	return w
}

func (e *env) readWebhook(id parley.WebhookID) parley.Webhook {
	e.Helper()
	w, err := e.store.Webhook(context.Background(), id)
	if err != nil {
		e.Fatal(err)
	}
	return w
}

// says has a contact say something, and returns the event of it.
func (e *env) says(who parley.ContactID, text string) parley.Event {
	e.Helper()
	e.seq++
	now := time.Now()
	m := parley.Message{Channel: shop, Chat: who, ID: parley.MessageID(fmt.Sprintf("3EB0%08X", e.seq)), Content: parley.Text{Body: text},
		Status: parley.Received, CreatedAt: now, UpdatedAt: now}
	var event parley.Event
	e.tx(func(tx *store.Tx) error {
		if err := tx.AddMessage(context.Background(), &m); err != nil {
			return err
		}
		event = parley.Event{Type: parley.MessageReceived, Channel: shop, At: now, Chat: who, Message: &m}
		return tx.AddEvent(context.Background(), &event)
	})
	return event
}

// calls stores the outcome of a login link and its callback.
func (e *env) calls(url string, kind parley.EventType, reason string) parley.Delivery {
	e.Helper()
	event := parley.NewOTPEvent(kind, "otl_1", shop, ann, reason, time.Now())
	e.tx(func(tx *store.Tx) error {
		return errors.Join(tx.AddEvent(context.Background(), event), tx.AddCallback(context.Background(), event, url, event.Chat))
	})
	all := e.deliveries(parley.DeliveryQuery{})
	return all[slices.IndexFunc(all, func(d parley.Delivery) bool { return d.Event == event.Seq && d.URL == url })]
}

// deliveries lists all deliveries, oldest event first.
func (e *env) deliveries(q parley.DeliveryQuery) []parley.Delivery {
	e.Helper()
	found, _, err := e.store.Deliveries(context.Background(), q, parley.Page{Limit: 100_000})
	if err != nil {
		e.Fatal(err)
	}
	slices.SortFunc(found, func(a, b parley.Delivery) int { return int(a.Event - b.Event) })
	return found
}

// only returns the one delivery that there is.
func (e *env) only() parley.Delivery {
	e.Helper()
	all := e.deliveries(parley.DeliveryQuery{})
	if len(all) != 1 {
		e.Fatalf("there are %d deliveries: %+v", len(all), all)
	}
	return all[0]
}

// pass lets time pass until nothing more happens at its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// hit is a request that a server got.
type hit struct {
	at     time.Time
	method string
	url    string
	header http.Header
	body   []byte
}

func (h hit) id() string { return h.header.Get("Webhook-Id") }

// servers replaces the network: a function per host.
type servers struct {
	mu     sync.Mutex
	byHost map[string]func(req *http.Request) (*http.Response, error)
	hits   map[string][]hit
}

func newServers() *servers {
	return &servers{byHost: map[string]func(*http.Request) (*http.Response, error){}, hits: map[string][]hit{}}
}

// on sets what a host does.
func (s *servers) on(host string, do func(req *http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHost[host] = do
}

// at lists what a host got.
func (s *servers) at(host string) []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits[host])
}

func (s *servers) Do(req *http.Request) (*http.Response, error) {
	h := hit{at: time.Now(), method: req.Method, url: req.URL.String(), header: req.Header.Clone()}
	if req.Body != nil {
		h.body, _ = io.ReadAll(req.Body)
	}
	s.mu.Lock()
	s.hits[req.URL.Host] = append(s.hits[req.URL.Host], h)
	do := s.byHost[req.URL.Host]
	s.mu.Unlock()
	if do == nil {
		return answer(200), nil
	}
	resp, err := do(req)
	if err != nil {
		err = &safehttp.Problem{Code: safehttp.Connect, Sentence: "The server could not be reached, or broke the connection.", Cause: err}
	}
	return resp, err
}

// answer is an empty response.
func answer(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf("answer %d", code)))}
}

// always answers with a code.
func always(code int) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return answer(code), nil }
}

// tarpit never answers.
func tarpit(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
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

func encodeEvent(e *parley.Event, linkTo parley.MediaLink) ([]byte, error) {
	return wire.EncodeEvent(e, linkTo, nil)
}
