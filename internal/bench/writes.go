package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
	"parley/internal/store/sqldb"
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
	if err := addChannel(ctx, s, "demo"); err != nil {
		return err
	}
	return f(s)
}

func addChannel(ctx context.Context, s *store.DB, code parley.ChannelCode) error {
	return s.Tx(ctx, func(tx *store.Tx) error {
		return tx.AddChannel(ctx, parley.Channel{Code: code, Network: parley.Sandbox, CreatedAt: time.Now()})
	})
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

// farRoundTrip is the way of a node in another zone.
const farRoundTrip = 750 * time.Microsecond

// measureInbound stores inbound messages of 128 callers on a node far from PostgreSQL, and meanwhile single ones on a node beside it.
// Both add events to one log.
func measureInbound(ctx context.Context, o options, t *table) error {
	return withPostgres(func(server *postgrestest.Server) error {
		proxy, err := startRole(ctx, "delay", server.Host(), farRoundTrip.String())
		if err != nil {
			return err
		}
		defer proxy.stop()
		farther := strings.Replace(server.Address(), server.Host(), proxy.addr, 1)
		if err := noteRoundTrips(t, server.Address(), farther); err != nil {
			return err
		}
		return withStore(ctx, server.Address(), func(near *store.DB) error {
			far, err := store.Open(ctx, farther)
			if err != nil {
				return err
			}
			defer far.Close()
			if err := addChannel(ctx, near, "near"); err != nil {
				return err
			}
			store := func(s *store.DB, code parley.ChannelCode, caller int) error {
				m := newText(caller, false)
				m.Channel = code
				return receive(ctx, s, &m)
			}
			during := time.Duration(o.rounds) * o.slice
			var beside []time.Duration
			var nearErr error
			var wait sync.WaitGroup
			wait.Go(func() {
				beside, nearErr = callers(1, during, func(int) error { return store(near, "near", 0) })
			})
			stored, err := callers(128, during, func(caller int) error { return store(far, "demo", caller) })
			wait.Wait()
			if err = errors.Join(err, nearErr); err != nil {
				return err
			}
			rate, p99 := float64(len(stored))/during.Seconds(), quantile(beside, 0.99)
			t.add("inbound messages of 128 callers, round trip + 0.75 ms", fmt.Sprintf("%.0f/s (p99 %.0f ms)", rate, ms(quantile(stored, 0.99))),
				">= 1000/s", rate >= 1000)
			t.add("inbound messages of a node beside PostgreSQL meanwhile, p99",
				fmt.Sprintf("%.1f ms (p50 %.1f ms)", ms(p99), ms(quantile(beside, 0.5))), "< 100 ms", p99 < 100*time.Millisecond)
			return nil
		})
	})
}

// measureSnapshot compares commits with events before and after 20,000 of them, while a transaction holds a snapshot as pg_dump does.
func measureSnapshot(ctx context.Context, o options, t *table) error {
	const commits, some = 20_000, 500
	return withPostgres(func(server *postgrestest.Server) error {
		return withStore(ctx, server.Address(), func(s *store.DB) error {
			conn, err := sqldb.ConnectPostgres(ctx, server.Address())
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			commit := func(n int) (took []time.Duration, err error) {
				for range n {
					began := time.Now()
					m := newText(1, false)
					if err := receive(ctx, s, &m); err != nil {
						return nil, err
					}
					took = append(took, time.Since(began))
				}
				return took, nil
			}
			if _, err := commit(2 * some); err != nil { // the warm-up
				return err
			}
			if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, "SELECT count(*) FROM channel"); err != nil {
				return err
			}
			took, err := commit(commits)
			if err != nil {
				return err
			}
			first, last := quantile(took[:some], 0.5), quantile(took[commits-some:], 0.5)
			ratio := float64(last) / float64(first)
			t.add("commits with events after 20,000 of them, a snapshot held",
				fmt.Sprintf("%.2f times as long (%.2f of %.2f ms)", ratio, ms(last), ms(first)), "<= 1.5", ratio <= 1.5)
			return nil
		})
	})
}

// measureDeadlocks creates channels and adds events on two nodes at once.
func measureDeadlocks(ctx context.Context, o options, t *table) error {
	return withPostgres(func(server *postgrestest.Server) error {
		return withStore(ctx, server.Address(), func(one *store.DB) error {
			two, err := store.Open(ctx, server.Address())
			if err != nil {
				return err
			}
			defer two.Close()
			if err := addChannel(ctx, two, "second"); err != nil {
				return err
			}
			took, err := callers(32, 8*time.Duration(o.rounds)*o.slice, func(caller int) error {
				s, code := one, parley.ChannelCode("demo")
				if caller%2 == 1 {
					s, code = two, "second"
				}
				if caller < 8 {
					return addChannel(ctx, s, parley.ChannelCode(strings.ToLower(rand.Text())))
				}
				m := newText(caller, false)
				m.Channel = code
				return receive(ctx, s, &m)
			})
			if err != nil {
				return err
			}
			found, err := server.Query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
			t.add("deadlocks of two nodes that create channels and add events", found+fmt.Sprintf(" (slowest %.0f ms)", ms(slices.Max(took))),
				"0", found == "0")
			return err
		})
	})
}

// receive stores an inbound message and its event.
func receive(ctx context.Context, s *store.DB, m *parley.Message) error {
	return s.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.ReceiveMessage(ctx, m, true),
			tx.AddEvent(ctx, &parley.Event{Type: parley.MessageReceived, Channel: m.Channel, At: m.CreatedAt, Message: m}))
	})
}
