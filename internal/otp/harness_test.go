package otp

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/network"
	"parley/internal/otp/rule"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// bench is an issuer with a store, and channels whose clocks can be moved.
type bench struct {
	*Issuer
	t     testing.TB
	path  string // of the store
	ahead sync.Map
}

func newBench(t testing.TB, path string, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, path: path}
	keyring, err := encrypt.OpenKeyFile(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	b.open(keyring, change...)
	t.Cleanup(func() { b.config.Store.Close() })
	b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		for _, code := range []parley.ChannelCode{main, other} {
			if err := tx.AddChannel(t.Context(), parley.Channel{Code: code, Name: "Acme", Network: parley.Sandbox}); err != nil {
				return err
			}
		}
		return nil
	}))
	return b
}

// open opens the store with a new issuer, as a new process does.
func (b *bench) open(keyring *encrypt.Keyring, change ...func(*Config)) {
	b.t.Helper()
	db, err := store.Open(b.t.Context(), postgrestest.Path(b.t, b.path))
	b.must(err)
	config := Config{Store: db, Keyring: keyring, Now: b.clock, MaxAhead: b.maxAhead, Network: describe,
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	for _, f := range change {
		f(&config)
	}
	b.Issuer = New(config)
}

func (b *bench) restart(change ...func(*Config)) {
	b.t.Helper()
	b.must(b.config.Store.Close())
	b.open(b.config.Keyring, change...)
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// describe describes the sandbox, and a real network with a pace.
func describe(name parley.NetworkName) network.Info {
	if name == parley.Sandbox {
		return network.Info{Simulated: true}
	}
	return network.Info{LeastPace: time.Second, MostPace: 2 * time.Second}
}

func (b *bench) clock(channel parley.ChannelCode) time.Time {
	ahead, _ := b.ahead.Load(channel)
	d, _ := ahead.(time.Duration)
	return time.Now().Add(d)
}

func (b *bench) maxAhead() (most time.Duration) {
	b.ahead.Range(func(_, ahead any) bool {
		most = max(most, ahead.(time.Duration))
		return true
	})
	return most
}

func (b *bench) advance(channel parley.ChannelCode, d time.Duration) {
	ahead, _ := b.ahead.Load(channel)
	before, _ := ahead.(time.Duration)
	b.ahead.Store(channel, before+d)
}

func order(channel parley.ChannelCode, contact parley.ContactID) CodeRequest {
	return CodeRequest{Channel: parley.Channel{Code: channel, Network: parley.Sandbox}, Contact: contact,
		Name: "Acme", Length: 6, Digits: true, TTL: 5 * time.Minute}
}

// request asks for a code and stores it, and returns it as its recipient reads it.
func (b *bench) request(o CodeRequest) (string, *NewCode, error) {
	issue, err := b.NewCode(context.Background(), o)
	if err != nil {
		return "", nil, err
	}
	defer issue.Close(context.Background())
	err = b.config.Store.Tx(context.Background(), func(tx *store.Tx) error { return issue.Store(context.Background(), tx) })
	if err != nil {
		return "", nil, err
	}
	text, err := b.config.Keyring.Decrypt(issue.Code.Encrypted, string(issue.Code.ID))
	if err != nil {
		return "", nil, err
	}
	_, code, _ := strings.Cut(string(text), "*")
	code, _, _ = strings.Cut(code, "*")
	return code, issue, nil
}

func (b *bench) code(channel parley.ChannelCode, contact parley.ContactID) string {
	b.t.Helper()
	code, _, err := b.request(order(channel, contact))
	b.must(err)
	return code
}

// try tries a code.
func (b *bench) try(channel parley.ChannelCode, contact parley.ContactID, code string) rule.Try {
	b.t.Helper()
	tried, err := b.Validate(b.t.Context(), channel, contact, code, nil)
	b.must(err)
	return tried.Try
}

func (b *bench) wants(channel parley.ChannelCode, contact parley.ContactID, code string, status parley.OTPStatus, left int) {
	b.t.Helper()
	if try := b.try(channel, contact, code); try.Status != status || try.Left != left {
		b.t.Errorf("got %s with %d left, want %s with %d", try.Status, try.Left, status, left)
	}
}

// wrong is a code that is not the one given.
func wrong(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// events lists the published events, as "type reason".
func (b *bench) events() []string {
	b.t.Helper()
	published, _, err := b.config.Store.Events(b.t.Context(), 0, parley.EventFilter{}, 1000)
	b.must(err)
	var events []string
	for _, e := range published {
		events = append(events, string(e.Type)+" "+string(e.Data))
	}
	return events
}

func (b *bench) wantsEvents(want ...string) {
	b.t.Helper()
	got := b.events()
	if len(got) != len(want) {
		b.t.Errorf("published %q, want %q", got, want)
		return
	}
	for i := range want {
		kind, reason, _ := strings.Cut(want[i], " ")
		if !strings.HasPrefix(got[i], kind+" ") || strings.Contains(got[i], `"reason"`) != (reason != "") || !strings.Contains(got[i], reason) {
			b.t.Errorf("published %q, want %q", got[i], want[i])
		}
	}
}

func (b *bench) limitOf(err error) rule.Quota {
	b.t.Helper()
	limited, ok := errors.AsType[*LimitError](err)
	if !ok || parley.ToCode(err) != parley.TooMany {
		b.t.Fatalf("not limited: %v", err)
	}
	return limited.Quota
}
