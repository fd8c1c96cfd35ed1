package callback

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"parley"
	"parley/internal/store"
)

// TestEvent is the type of what Test sends. It is in no log and on no list: whoever asks for a test
// sees what became of it at once.
const TestEvent parley.EventType = "webhook.test"

// SendTest sends a test event to a webhook, on or off, at once and once, and tells how it went. It counts
// neither for nor against the webhook.
func (e *Engine) SendTest(ctx context.Context, w parley.Webhook) (Attempt, error) {
	keys, err := e.Secrets.KeysOf(ctx, parley.WebhookSecret(w.ID))
	if err != nil {
		return Attempt{}, err
	}
	data, err := json.Marshal(map[string]any{"webhook_id": w.ID, "message": "This is a test of the webhook."})
	if err != nil {
		return Attempt{}, err
	}
	var log [4]byte
	rand.Read(log[:]) // never fails
	a := Attempt{RequestID: newRequestID(), At: time.Now()}
	event := &parley.Event{ID: parley.NewEventID(a.At, binary.BigEndian.Uint32(log[:]), 0), Type: TestEvent, Channel: w.Channel, At: a.At, Data: data}
	within, cancel := context.WithTimeout(ctx, WebhookTimeout)
	defer cancel()
	req, err := e.webhookRequest(within, w.URL, event, keys, a.At)
	return e.exchange(req, err, cancel, a), nil
}

// Deliver makes a delivery now, again if it has ended, and returns it after the attempt. One that waits
// behind another of its chat has to wait for that, and one of a webhook that is off or counts as broken
// may have to wait longer than ctx does.
func (e *Engine) Deliver(ctx context.Context, id parley.DeliveryID) (parley.Delivery, error) {
	started := time.Now().Truncate(time.Millisecond)
	query := parley.DeliveryQuery{IDs: []parley.DeliveryID{id}}
	err := e.Store.Tx(ctx, func(tx *store.Tx) error {
		found, _, err := tx.Deliveries(ctx, query, parley.Page{Limit: 1})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return parley.ErrNotFound
		}
		if d := found[0]; d.State == parley.DeliveryWaiting {
			d.NextAt = time.Time{}
			return tx.UpdateDeliveries(ctx, []parley.Delivery{d})
		}
		_, err = tx.ReplayDeliveries(ctx, query, started, 1)
		return err
	})
	if err != nil {
		return parley.Delivery{}, err
	}
	for {
		changed := e.nextRecorded()
		found, _, err := e.Store.Deliveries(ctx, query, parley.Page{Limit: 1})
		if err != nil {
			return parley.Delivery{}, err
		}
		if len(found) == 0 {
			return parley.Delivery{}, parley.ErrNotFound
		}
		if d := found[0]; !d.TriedAt.Before(started) || !d.EndedAt.Before(started) {
			return d, nil
		}
		e.look([]parley.Endpoint{found[0].Endpoint()})
		select {
		case <-changed:
		case <-ctx.Done():
			return found[0], ctx.Err()
		}
	}
}

// nextRecorded returns a channel that is closed when results are next recorded.
func (e *Engine) nextRecorded() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// requestOf is what a delivery is found by in the logs of both sides: the id of the request that sent the
// message that the event is about, else a new one.
func requestOf(event *parley.Event) string {
	if event.Message != nil && event.Message.Request != "" {
		return event.Message.Request
	}
	return newRequestID()
}

// newRequestID chooses what one request is found by in the logs of both sides.
func newRequestID() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
