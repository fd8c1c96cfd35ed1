package alert

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/network/sandbox"
	"parley/internal/postgrestest"
	"parley/internal/safehttp"
	"parley/internal/store"
	"parley/internal/wire"
)

// TestPostgres runs the tests of this package on PostgreSQL.
func TestPostgres(t *testing.T) { postgrestest.Again(t) }

const (
	ayu   parley.ContactID = "6281234567890@c.us"
	fails parley.ContactID = "99912345670@c.us" // sending to it always fails
)

// env is an engine on a gateway with the channels main and second, and a server that gets its notices.
type env struct {
	*Engine
	t       *testing.T
	address string // of the server

	mu       sync.Mutex
	received []string // types of notices
	status   int      // of the server's responses
}

func newEnv(t *testing.T) *env {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	db := must(store.Open(t.Context(), postgrestest.Path(t, filepath.Join(dir, "parley.db"))))(t)
	t.Cleanup(func() { db.Close() })
	phones := must(sandbox.Open(t.Context(), postgrestest.Path(t, filepath.Join(dir, "sandbox.db")), nil, log))(t)
	t.Cleanup(func() { phones.Close() })
	policy := safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	library := must(media.Open(media.Config{Dir: filepath.Join(dir, "media"), Store: db}, policy))(t)
	keyring := must(encrypt.OpenKeyFile(filepath.Join(dir, "key")))(t)
	registry := prometheus.NewRegistry()
	g := gateway.New(gateway.Config{Store: db, Drivers: map[parley.NetworkName]network.Driver{parley.Sandbox: phones}, Media: library,
		Keyring: keyring, Log: log, Metrics: registry})
	running, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Run(running); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	<-g.Ready()
	e := &env{t: t, status: http.StatusOK, Engine: New(Config{
		Store: db, Gateway: g, Cluster: cluster.Single{}, Log: log, Metrics: registry, Token: "local_global",
		Callbacks: callback.New(callback.Config{Store: db, Secrets: callback.NewSecrets(db, keyring), Log: log,
			Client: policy.Client(safehttp.Options{MaxBody: 1 << 16}),
			Render: func(event *parley.Event, linkTo parley.MediaLink) ([]byte, error) {
				return wire.EncodeEvent(event, linkTo, nil)
			}}),
	})}
	e.address = e.startReceiver()
	for _, code := range []parley.ChannelCode{"main", "second"} {
		must(g.CreateChannel(t.Context(), parley.Channel{Code: code, Network: parley.Sandbox}))(t)
		e.await(code, parley.ChannelWorking)
	}
	return e
}

// startReceiver starts a server that compares notices with their description.
func (e *env) startReceiver() (address string) {
	document := must(os.ReadFile("../api/openapi.json"))(e.t)
	schema := must(openapi3.NewLoader().LoadFromData(document))(e.t).Components.Schemas["AlertNotice"].Value
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		body, _ := io.ReadAll(hr.Body)
		notice := map[string]any{}
		if err := json.Unmarshal(body, &notice); err != nil {
			e.t.Error(err)
		}
		if err := schema.VisitJSON(notice, openapi3.EnableJSONSchema2020()); err != nil {
			e.t.Errorf("not as described: %v", err)
		}
		if hr.Header.Get("webhook-signature") == "" || hr.Header.Get("webhook-id") != notice["id"] {
			e.t.Errorf("not signed: %v", notice)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.received = append(e.received, notice["type"].(string))
		w.WriteHeader(e.status)
	}))
	e.t.Cleanup(receiver.Close)
	return receiver.URL
}

// must returns a value, and fails the test after an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// add stores a rule. Without an address it sends messages through the channel second.
func (e *env) add(rule parley.AlertRule) parley.AlertRule {
	e.t.Helper()
	rule.Enabled, rule.CreatedAt = true, time.Now()
	if rule.ID == "" {
		rule.ID = parley.NewAlertRuleID()
	}
	if rule.URL == "" {
		rule.Via = "second"
	}
	err := e.config.Store.Tx(e.t.Context(), func(tx *store.Tx) error {
		if err := tx.SetAlertRule(e.t.Context(), rule); err != nil || rule.URL == "" {
			return err
		}
		_, err := e.config.Callbacks.Secrets.Add(e.t.Context(), tx, parley.AlertSecret(rule.ID))
		return err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return rule
}

// await waits until a channel has a status.
func (e *env) await(code parley.ChannelCode, status parley.ChannelStatus) {
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

func (e *env) logout(code parley.ChannelCode) {
	e.t.Helper()
	must(e.config.Gateway.LogoutChannel(e.t.Context(), code))(e.t)
	e.await(code, parley.ChannelLoggedOut)
}

func (e *env) pair(code parley.ChannelCode) {
	e.t.Helper()
	must(e.config.Gateway.PairChannel(e.t.Context(), code, ""))(e.t)
	e.await(code, parley.ChannelWorking)
}

// notices checks the rules at a time, and returns the types of the notices that the server got.
func (e *env) notices(at time.Time) string {
	e.t.Helper()
	if err := e.check(e.t.Context(), at); err != nil {
		e.t.Fatal(err)
	}
	return e.takeReceived()
}

func (e *env) takeReceived() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	types := strings.Join(e.received, " ")
	e.received = nil
	return types
}

// messages lists the messages of the channel second, newest first.
func (e *env) messages() []parley.Message {
	e.t.Helper()
	page, err := e.config.Gateway.FindMessages(e.t.Context(), parley.MessageQuery{Channel: "second", Limit: 50})
	if err != nil {
		e.t.Fatal(err)
	}
	return page.Messages
}

// count counts the messages of the channel second whose text contains another.
func (e *env) count(text string) (n int) {
	e.t.Helper()
	for _, m := range e.messages() {
		if strings.Contains(m.Content.Text(), text) {
			n++
		}
	}
	return n
}
