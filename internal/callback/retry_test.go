package callback_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/store"
)

// TestRetryOfADeadWebhook: a retry that fails too does not make the failures younger, or fewer.
func TestRetryOfADeadWebhook(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		for i := range 12 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "hello")
		}
		pass(time.Hour)
		before, tried := e.readWebhook(w.ID), len(e.servers.at("crm.example"))
		if before.Failures < 60 || before.FailingSince.IsZero() {
			e.Fatalf("after an hour: %+v", before)
		}
		if _, err := e.engine.RetryWebhook(e.Context(), w.ID); err != nil {
			e.Fatal(err)
		}
		pass(time.Second)
		failed := len(e.servers.at("crm.example")) - tried
		if failed < 2 {
			e.Errorf("%d attempts at once after the retry", failed)
		}
		after := e.readWebhook(w.ID)
		if !after.FailingSince.Equal(before.FailingSince) || after.FailingFor < before.FailingFor || after.Failures != before.Failures+failed {
			e.Errorf("%d failed attempts after %+v: %+v", failed, before, after)
		}
		waiting := parley.DeliveryWaiting
		if _, err := e.engine.Retry(e.Context(), e.deliveries(parley.DeliveryQuery{State: &waiting})[0].ID); err != nil {
			e.Fatal(err)
		}
		pass(time.Second)
		if after := e.readWebhook(w.ID); !after.FailingSince.Equal(before.FailingSince) {
			e.Errorf("since %v, and after the retry of one delivery since %v", before.FailingSince, after.FailingSince)
		}
		e.servers.on("crm.example", always(200))
		if _, err := e.engine.RetryWebhook(e.Context(), w.ID); err != nil {
			e.Fatal(err)
		}
		pass(5 * time.Second)
		if healed := e.readWebhook(w.ID); healed.Failures != 0 || !healed.FailingSince.IsZero() {
			e.Errorf("stored health: %+v", healed)
		}
	})
}

// TestRetryNow: a waiting delivery is tried at once, behind it the next of its chat, also at a webhook that is
// broken; a finished one is not, and neither is anything of a webhook that is off.
func TestRetryNow(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		e.says(ann, "first")
		e.says(ann, "second")
		pass(time.Minute) // two attempts; the next one is due in five minutes
		waiting := parley.DeliveryWaiting
		wait := e.deliveries(parley.DeliveryQuery{State: &waiting})
		if len(wait) != 2 || len(e.servers.at("crm.example")) != 2 {
			e.Fatalf("%d wait after %d attempts", len(wait), len(e.servers.at("crm.example")))
		}
		e.servers.on("crm.example", always(200))
		if _, err := e.engine.Retry(e.Context(), wait[0].ID); err != nil { // the newest: it is held by the other
			e.Fatal(err)
		}
		pass(time.Second)
		for _, d := range e.deliveries(parley.DeliveryQuery{}) {
			if d.State != parley.DeliveryDone {
				e.Errorf("left over: %+v", d)
			}
		}
		if _, err := e.engine.Retry(e.Context(), wait[0].ID); !errors.Is(err, callback.ErrFinished) {
			e.Errorf("a finished delivery: %v", err)
		}
		if _, err := e.engine.Retry(e.Context(), "dlv_0"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("an unknown delivery: %v", err)
		}

		e.servers.on("crm.example", always(500))
		for i := range 12 { // it is broken after ten
			e.says(parley.NewContactID(fmt.Sprint(6281100000100+i)), "hello")
		}
		pass(30 * time.Second)
		e.servers.on("crm.example", always(200))
		n, err := e.engine.RetryWebhook(e.Context(), w.ID)
		if err != nil || n != 12 {
			e.Fatalf("%d of 12 are retried, %v", n, err)
		}
		pass(5 * time.Second)
		if left := e.deliveries(parley.DeliveryQuery{State: &waiting}); len(left) != 0 {
			e.Errorf("%d wait on", len(left))
		}

		w = e.readWebhook(w.ID)
		w.Disable(time.Now(), "By hand.")
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), w) })
		if _, err := e.engine.RetryWebhook(e.Context(), w.ID); !errors.Is(err, callback.ErrDisabled) {
			e.Errorf("a webhook that is off: %v", err)
		}
	})
}
