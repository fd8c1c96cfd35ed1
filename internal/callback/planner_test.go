package callback

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// planEnv is a planner whose rounds the test runs one by one.
type planEnv struct {
	*testing.T
	*planner
	store *store.DB
}

func newPlanEnv(t *testing.T) *planEnv {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	e := &planEnv{T: t, store: db}
	e.planner = newPlanner(Config{Store: db, Log: slog.New(slog.DiscardHandler)}, func([]parley.Endpoint) {})
	e.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "shop", Network: parley.Sandbox})
	})
	return e
}

func (e *planEnv) tx(do func(tx *store.Tx) error) {
	e.Helper()
	if err := e.store.Tx(context.Background(), do); err != nil {
		e.Fatal(err)
	}
}

// add publishes events that only webhooks for every type want.
func (e *planEnv) add(count int) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		for range count {
			event := parley.Event{Type: parley.OTPFailed, Channel: "shop", At: time.Now(), Chat: "6281100000001@c.us", Data: []byte(`{}`)}
			if err := tx.AddEvent(e.Context(), &event); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *planEnv) webhook(cursor int64, types ...parley.EventType) parley.WebhookID {
	e.Helper()
	w := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://crm.example/hook", CreatedAt: time.Now(), Cursor: cursor, Types: types}
	e.tx(func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), w) })
	return w.ID
}

func (e *planEnv) next() (more bool) {
	e.Helper()
	more, err := e.round(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	return more
}

// TestBacklogsTakeTurns has webhooks far behind whose filters find nothing. Each round plans what is new for the webhook that
// is up to date, and moves one of the others on by no more than a page: all of them in turn.
func TestBacklogsTakeTurns(t *testing.T) {
	e := newPlanEnv(t)
	const backlog, page = 24_000, 5000 // the page is the store's
	e.add(backlog)
	healthy := e.webhook(0) // from the end of the log
	var behind []parley.WebhookID
	for i := range 3 {
		behind = append(behind, e.webhook(int64(i+1), parley.PollVoted))
	}
	turns := map[parley.WebhookID]int{}
	for round := 1; ; round++ {
		e.add(1)
		cursors := map[parley.WebhookID]int64{}
		for id, h := range e.hooks {
			cursors[id] = h.Cursor
		}
		e.next()
		if waiting, err := e.store.CountWaiting(t.Context(), healthy); err != nil || waiting != int64(round) {
			t.Fatalf("round %d: %d deliveries planned for the healthy webhook (%v)", round, waiting, err)
		}
		moved := 0
		for i, id := range behind {
			was, known := cursors[id]
			if !known {
				was = int64(i + 1)
			}
			now := e.hooks[id].Cursor
			if now-was > page {
				t.Fatalf("round %d: a webhook moved on by %d events at once", round, now-was)
			}
			if now != was {
				turns[id]++
				moved++
			}
		}
		if moved != 1 {
			t.Fatalf("round %d: %d webhooks moved on", round, moved)
		}
		if round == 9 {
			break
		}
	}
	if fmt.Sprint(turns[behind[0]], turns[behind[1]], turns[behind[2]]) != "3 3 3" {
		t.Errorf("the webhooks had %v turns in 9 rounds, want 3 each", turns)
	}
	for e.next() {
	}
	for _, id := range behind {
		if h := e.hooks[id]; h.Cursor != backlog+9 {
			t.Errorf("a webhook ended at %d, want %d", h.Cursor, backlog+9)
		}
	}
}

// TestEventsOutliveTheSchedule holds the least time that events are kept to the schedule of attempts.
func TestEventsOutliveTheSchedule(t *testing.T) {
	longest := time.Duration(0)
	for _, d := range webhookDelays {
		longest += d + time.Duration(jitter*float64(d)) + WebhookTimeout
	}
	if longest >= MaxRetryPeriod {
		t.Errorf("a delivery is retried for up to %s, events may be kept for %s", longest, MaxRetryPeriod)
	}
}

// TestPlannerStopsWithItsContext has the planner stop amid a backlog, and not after it.
func TestPlannerStopsWithItsContext(t *testing.T) {
	e := newPlanEnv(t)
	e.add(6000)
	id := e.webhook(1, parley.PollVoted)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := e.round(ctx); err != nil {
		t.Fatal(err)
	}
	at := e.hooks[id].Cursor
	cancel()
	e.run(ctx)
	if now := e.hooks[id].Cursor; now != at || now >= 6000 {
		t.Errorf("read from %d to %d after the end", at, now)
	}
	if w, err := e.store.Webhook(t.Context(), id); err != nil || w.Cursor != at {
		t.Errorf("the cursor %d was stored, want %d (%v)", w.Cursor, at, err)
	}
}

// TestWebhookFromAnotherNode takes over a webhook whose events another node has planned. The dispatcher must look at its
// deliveries after the cursor was read: it may have looked before they were stored.
func TestWebhookFromAnotherNode(t *testing.T) {
	e := newPlanEnv(t)
	var notified []parley.Endpoint
	e.notify = func(endpoints []parley.Endpoint) { notified = append(notified, endpoints...) }
	e.add(3)
	owned := false
	e.config.Owns = func(string) bool { return owned }
	id := e.webhook(3)
	e.next()
	if len(notified) > 0 {
		t.Errorf("notified of %v, which another node delivers", notified)
	}
	owned = true
	e.Wake()
	e.next()
	if len(notified) != 1 || notified[0] != parley.Endpoint(id) {
		t.Errorf("notified of %v, want %s", notified, id)
	}
	e.Wake()
	if e.next(); len(notified) != 1 {
		t.Errorf("notified again: %v", notified)
	}
}
