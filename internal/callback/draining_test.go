package callback_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/store"
)

// meddlingStore runs a function once, after some transactions of the engine.
type meddlingStore struct {
	callback.Store
	after  int64
	so     atomic.Int64
	meddle func()
}

func (s *meddlingStore) Tx(ctx context.Context, do func(tx *store.Tx) error) error {
	err := s.Store.Tx(ctx, do)
	if s.so.Add(1) == s.after {
		s.meddle()
	}
	return err
}

// TestHealthyWebhookBesideADrainingOne plans thousands of old events for a webhook that is far behind. What happens
// meanwhile is planned for the webhook that is up to date after the next batch, and not after the whole backlog.
func TestHealthyWebhookBesideADrainingOne(t *testing.T) {
	const backlog, batch = 4500, 512
	inBubble(t, func(e *env) {
		for i := range backlog {
			e.says(parley.ContactOf(fmt.Sprint(6281100000000+i%500)), "old")
		}
		behind := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://behind.example/hook", CreatedAt: time.Now(), Cursor: 1}
		e.tx(func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), behind) })
		healthy := e.webhook("https://healthy.example/hook")
		e.servers.on("behind.example", always(200))
		e.servers.on("healthy.example", always(200))
		e.renewOn(&meddlingStore{Store: e.store, after: 3, meddle: func() { e.says(bob, "new") }}, e.servers)
		e.start()
		pass(time.Minute)

		first := e.deliveries(parley.DeliveryQuery{Webhook: healthy.ID})
		if len(first) != 1 || first[0].State != parley.DeliveryDone {
			e.Fatalf("the healthy webhook got %+v", first)
		}
		before := 0 // ids grow in the order of planning
		drained := e.deliveries(parley.DeliveryQuery{Webhook: behind.ID})
		for _, d := range drained {
			if d.ID.Number() < first[0].ID.Number() {
				before++
			}
		}
		if len(drained) < backlog || before > 5*batch {
			e.Errorf("%d of %d deliveries of the backlog were planned before what happened meanwhile", before, len(drained))
		}
	})
}

// TestManyWebhooksBehind has webhooks begin at different places of the log. Each gets all that it missed.
func TestManyWebhooksBehind(t *testing.T) {
	inBubble(t, func(e *env) {
		var seqs []int64
		for range 1500 {
			seqs = append(seqs, e.says(ann, "old").Seq)
		}
		hooks := map[parley.WebhookID]int{}
		for i := range 5 {
			w := parley.Webhook{ID: parley.NewWebhookID(), URL: fmt.Sprintf("https://crm%d.example/hook", i), CreatedAt: time.Now(),
				Cursor: seqs[i*300]}
			e.tx(func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), w) })
			e.servers.on(fmt.Sprintf("crm%d.example", i), always(500)) // planning does not wait for them
			hooks[w.ID] = len(seqs) - i*300 - 1
		}
		e.start()
		pass(time.Minute)
		for id, missed := range hooks {
			if got := len(e.deliveries(parley.DeliveryQuery{Webhook: id})); got != missed {
				e.Errorf("%d deliveries planned, want %d", got, missed)
			}
		}
	})
}
