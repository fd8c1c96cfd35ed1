package requestlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// TestPostgres runs the tests of this package on PostgreSQL.
func TestPostgres(t *testing.T) { postgrestest.Again(t) }

// TestRequestLogNeverDelays: requests are dropped and counted where too many wait, and of a busy channel the latest remain.
func TestRequestLogNeverDelays(t *testing.T) {
	db, err := store.Open(t.Context(), postgrestest.Path(t, filepath.Join(t.TempDir(), "parley.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "main", Network: parley.Sandbox})
	}); err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	l := New(db, slog.New(slog.DiscardHandler), metrics)
	dropped := func() float64 {
		families, err := metrics.Gather()
		if err != nil || len(families) != 2 {
			t.Fatal(families, err)
		}
		return families[0].GetMetric()[0].GetCounter().GetValue()
	}
	l.running.Store(true) // but nothing writes
	for i := range 3 * store.RequestsPerChannel {
		l.Add(store.LoggedRequest{Channel: "main", Request: fmt.Sprint(i)})
	}
	if l.waiting != store.RequestsPerChannel || dropped() != 0 {
		t.Fatalf("%d wait, %v dropped", l.waiting, dropped())
	}
	for i := range maxPending {
		l.Add(store.LoggedRequest{Channel: parley.ChannelCode(fmt.Sprint("c", i))})
	}
	if l.waiting != maxPending || dropped() != store.RequestsPerChannel {
		t.Fatalf("%d wait, %v dropped", l.waiting, dropped())
	}
	l.write(t.Context())
	found, total, err := db.Requests(t.Context(), "main", store.RequestQuery{}, parley.Page{Limit: 1})
	if err != nil || total != store.RequestsPerChannel || found[0].Request != fmt.Sprint(3*store.RequestsPerChannel-1) {
		t.Errorf("stored: %v, %d, %v", found, total, err)
	}
	l.Add(store.LoggedRequest{Channel: "main"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.write(ended)
	if dropped() != store.RequestsPerChannel+1 {
		t.Errorf("what was not written is not counted: %v", dropped())
	}
	if err := l.Flush(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader waits although nothing writes: %v", err)
	}
}
