package callback

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

// ErrFinished says that a delivery does not wait: it can be replayed, not retried.
var ErrFinished = parley.Errorf(parley.BadRequest, "The delivery is finished: it does not wait for a retry. Replay it instead.")

// ErrDisabled says that a webhook is off.
var ErrDisabled = parley.Errorf(parley.BadRequest, "The webhook is switched off. Enable it: that retries what waits.")

// Retry tries a waiting delivery now, whatever its schedule, and returns it as it is before that.
func (e *Engine) Retry(ctx context.Context, id parley.DeliveryID) (d parley.Delivery, err error) {
	err = e.Store.Tx(ctx, func(tx *store.Tx) error {
		found, _, err := tx.Deliveries(ctx, parley.DeliveryQuery{IDs: []parley.DeliveryID{id}}, parley.Page{Limit: 1})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return parley.ErrNotFound
		}
		if d = found[0]; d.State != parley.DeliveryWaiting {
			return ErrFinished
		}
		if d.Webhook != "" {
			if err := mustBeOn(ctx, tx, d.Webhook); err != nil {
				return err
			}
		}
		d.NextAt = time.Now()
		return tx.RetryDelivery(ctx, d, d.NextAt)
	})
	if err == nil {
		e.retry(d.Endpoint())
	}
	return d, err
}

// RetryWebhook tries everything that waits for a webhook now, and returns how much that is.
func (e *Engine) RetryWebhook(ctx context.Context, id parley.WebhookID) (waiting int64, err error) {
	err = e.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if err := mustBeOn(ctx, tx, id); err != nil {
			return err
		}
		if waiting, err = tx.CountWaiting(ctx, id); err != nil {
			return err
		}
		return tx.RetryDeliveries(ctx, id, time.Now())
	})
	if err == nil {
		e.retry(parley.Endpoint(id))
	}
	return waiting, err
}

func mustBeOn(ctx context.Context, tx *store.Tx, id parley.WebhookID) error {
	w, err := tx.Webhook(ctx, id)
	if err == nil && !w.IsEnabled() {
		err = ErrDisabled
	}
	return err
}

// retry has the dispatcher try an endpoint now, also one that counts as broken.
func (e *Engine) retry(key parley.Endpoint) {
	e.mu.Lock()
	e.retries[key] = true
	e.mu.Unlock()
	wait.Notify(e.wake)
}
