package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// eachDatabase calls f with a store in a file, one on PostgreSQL and one with a longer way to it.
func eachDatabase(ctx context.Context, f func(name string, s *store.DB) error) error {
	return withPostgres(func(server *postgrestest.Server) error {
		proxy, farther, err := startDelay(ctx, server)
		if err != nil {
			return err
		}
		defer proxy.stop()
		if err := errors.Join(server.Exec("CREATE SCHEMA near"), server.Exec("CREATE SCHEMA far")); err != nil {
			return err
		}
		return inTempDir(func(dir string) error {
			for _, at := range []struct{ name, path string }{
				{"a file", filepath.Join(dir, "parley.db")},
				{"PostgreSQL", server.Address() + "&search_path=near"},
				{fmt.Sprintf("PostgreSQL, round trip + %.1f ms", ms(addedRoundTrip)), farther + "&search_path=far"},
			} {
				err := withStore(ctx, at.path, func(s *store.DB) error { return f(at.name, s) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// withStore opens a store with a channel "demo".
func withStore(ctx context.Context, path string, f func(*store.DB) error) error {
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Tx(ctx, func(tx *store.Tx) error {
		return tx.AddChannel(ctx, parley.Channel{Code: "demo", Network: parley.Sandbox, CreatedAt: time.Now()})
	})
	if err != nil {
		return err
	}
	return f(s)
}

// callers run a function again and again, each with its own number, and count what each call took.
func callers(n int, during time.Duration, call func(caller int) error) (latencies []time.Duration, err error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	end := time.Now().Add(during)
	for caller := range n {
		wait.Go(func() {
			var own []time.Duration
			for time.Now().Before(end) {
				began := time.Now()
				if failed := call(caller); failed != nil {
					mu.Lock()
					err = failed
					mu.Unlock()
					return
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			latencies = append(latencies, own...)
			mu.Unlock()
		})
	}
	wait.Wait()
	return latencies, err
}

func newText(caller int, fromMe bool) parley.Message {
	now := time.Now()
	m := parley.Message{Channel: "demo", Chat: parley.NewContactID(fmt.Sprintf("62812000%05d", caller)), ID: parley.MessageID(rand.Text()),
		Content: parley.Text{Body: benchText}, FromMe: fromMe, Status: parley.Received, CreatedAt: now}
	if fromMe {
		m.Status, m.ExpiresAt = parley.Pending, now.Add(time.Hour)
	}
	return m
}

// measureFailing compares the accepts of 63 callers with and without one more whose transactions all fail.
func measureFailing(ctx context.Context, o options, t *table) error {
	return eachDatabase(ctx, func(name string, s *store.DB) error {
		accept := func(caller int) error {
			m := newText(caller, true)
			return s.Tx(ctx, func(tx *store.Tx) error { return tx.EnqueueMessage(ctx, &m) })
		}
		var ratios []float64
		for round := range o.rounds + 1 {
			alone, err := callers(63, o.slice, accept)
			if err != nil {
				return err
			}
			var failed atomic.Int64
			beside, err := callers(64, o.slice, func(caller int) error {
				if caller < 63 {
					return accept(caller)
				}
				err := s.Tx(ctx, func(tx *store.Tx) error { return tx.CheckChannel(ctx, "none", 0) })
				if !errors.Is(err, parley.ErrNotFound) {
					return fmt.Errorf("the failing caller got %w", err)
				}
				failed.Add(1)
				return nil
			})
			if err != nil {
				return err
			}
			if round > 0 { // the first one is the warm-up
				ratios = append(ratios, float64(len(beside)-int(failed.Load()))/float64(len(alone)))
			}
		}
		bound := 0.5
		if name == "a file" {
			bound = 0.66
		}
		ratio := median(ratios)
		t.add("accepts beside a failing caller, "+name, fmt.Sprintf("%.2f of those without it", ratio),
			fmt.Sprintf(">= %.2f", bound), ratio >= bound)
		return nil
	})
}
