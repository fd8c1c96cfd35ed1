package callback

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

type result struct {
	endpoint parley.Endpoint
	delivery parley.Delivery // without an id: nothing to store
	attempts int             // of the delivery, before this one

	webhook  parley.Webhook // whose health to store; without an id: none
	retryAll bool           // all its waiting deliveries become due
	disable  string         // the reason; empty: it stays enabled
	url      string         // of the attempt
}

type resultWriter struct {
	config  Config
	onStore func([]result)
	wake    chan struct{}

	mu    sync.Mutex
	queue []result
}

// add never blocks.
func (w *resultWriter) add(r result) {
	w.mu.Lock()
	w.queue = append(w.queue, r)
	w.mu.Unlock()
	wait.Notify(w.wake)
}

func (w *resultWriter) run(ctx context.Context) {
	var storing outage
	for {
		err := w.flush()
		storing.report(w.config.Log, err, "results of deliveries cannot be stored: some may be delivered twice",
			"results of deliveries can be stored again")
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wait.Sleep(ctx, storeErrorPause)
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
}

func (w *resultWriter) flush() error {
	w.mu.Lock()
	batch := w.queue
	w.queue = nil
	w.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	if err := w.store(batch); err != nil {
		w.mu.Lock()
		w.queue = append(batch, w.queue...)
		w.mu.Unlock()
		return err
	}
	w.onStore(batch)
	return nil
}

func (w *resultWriter) store(results []result) error {
	ctx := context.Background()             // also when the engine stops: attempts must not be repeated
	health := map[parley.WebhookID]result{} // the last one wins
	var outcomes []store.DeliveryResult
	for _, r := range results {
		if r.delivery.ID != "" {
			outcomes = append(outcomes, store.DeliveryResult{Delivery: r.delivery, Before: r.attempts})
		}
		if id := r.webhook.ID; id != "" && w.config.owns(string(id)) {
			r.retryAll = r.retryAll || health[id].retryAll
			health[id] = r
		}
	}
	return w.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.UpdateDeliveries(ctx, outcomes); err != nil {
			return err
		}
		for id, r := range health {
			if err := tx.SetWebhookHealth(ctx, r.webhook); err != nil {
				return err
			}
			if r.retryAll {
				if err := tx.RetryDeliveries(ctx, id, time.Now()); err != nil {
					return err
				}
			}
		}
		for _, r := range results {
			if err := disable(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// disable disables a webhook, unless it was deleted or its URL changed meanwhile.
func disable(ctx context.Context, tx *store.Tx, r result) error {
	if r.disable == "" {
		return nil
	}
	w, err := tx.Webhook(ctx, r.webhook.ID)
	if errors.Is(err, parley.ErrNotFound) || err == nil && (w.URL != r.url || !w.IsEnabled()) {
		return nil
	}
	if err != nil {
		return err
	}
	w.Disable(time.Now(), r.disable)
	return tx.UpdateWebhook(ctx, w)
}
