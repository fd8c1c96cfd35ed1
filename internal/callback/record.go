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

// recorder stores results, as many at a time as have come.
type recorder struct {
	Config
	told func([]result) // of what is stored
	wake chan struct{}

	mu    sync.Mutex
	queue []result
}

func newRecorder(c Config, told func([]result)) *recorder {
	return &recorder{Config: c, told: told, wake: make(chan struct{}, 1)}
}

// push hands over a result. It never blocks.
func (r *recorder) push(one result) {
	r.mu.Lock()
	r.queue = append(r.queue, one)
	r.mu.Unlock()
	wait.Notify(r.wake)
}

// run records until ctx ends, and then what is left.
func (r *recorder) run(ctx context.Context) {
	broken := false
	for {
		err := r.flush()
		if (err != nil) != broken {
			if broken = err != nil; broken {
				r.Log.Error("what became of deliveries cannot be stored: they may be made twice", "error", err)
			} else {
				r.Log.Info("what became of deliveries can be stored again")
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wait.Sleep(ctx, blink)
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

// flush stores what has come. If that fails it is kept.
func (r *recorder) flush() error {
	r.mu.Lock()
	some := r.queue
	r.queue = nil
	r.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	if err := r.store(some); err != nil {
		r.mu.Lock()
		r.queue = append(some, r.queue...)
		r.mu.Unlock()
		return err
	}
	r.told(some)
	return nil
}

func (r *recorder) store(results []result) error {
	ctx := context.Background() // even if the engine is stopped: what was done must be known
	var ds []parley.Delivery
	health := map[parley.WebhookID]result{} // the last one counts
	hurry := map[parley.WebhookID]bool{}
	for _, one := range results {
		if one.delivery.ID != "" {
			ds = append(ds, one.delivery)
		}
		if one.webhook != "" {
			health[one.webhook] = one
			hurry[one.webhook] = hurry[one.webhook] || one.hurry
		}
	}
	return r.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.UpdateDeliveries(ctx, ds); err != nil {
			return err
		}
		for id, one := range health {
			w := parley.Webhook{ID: id, FailingSince: one.failingSince, FailingFor: one.failingFor, Failures: one.failures}
			if err := tx.SetWebhookHealth(ctx, w); err != nil {
				return err
			}
			if hurry[id] {
				if err := tx.RetryDeliveries(ctx, id, time.Now()); err != nil {
					return err
				}
			}
		}
		for _, one := range results {
			if err := disable(ctx, tx, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// disable switches a webhook off, unless it is gone or leads elsewhere by now.
func disable(ctx context.Context, tx *store.Tx, r result) error {
	if r.disable == "" {
		return nil
	}
	w, err := tx.Webhook(ctx, r.webhook)
	if errors.Is(err, parley.ErrNotFound) || err == nil && (w.URL != r.url || !w.IsEnabled()) {
		return nil
	}
	if err != nil {
		return err
	}
	w.Disable(time.Now(), r.disable)
	return tx.UpdateWebhook(ctx, w)
}
