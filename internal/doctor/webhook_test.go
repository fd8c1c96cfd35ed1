package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// TestWebhookGap reports the events that a webhook lost while it was off.
func TestWebhookGap(t *testing.T) {
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://crm.example/hook", Cursor: 1, CreatedAt: time.Now()}
	w.Disable(time.Now(), "Switched off.")
	off, on := w, w
	on.Enable()
	for _, step := range []struct {
		do   func(tx *store.Tx) error
		want string // of the findings, their words
	}{
		{func(tx *store.Tx) error { return tx.AddWebhook(t.Context(), off) }, "off since"},
		{func(tx *store.Tx) error {
			for range 5 {
				if err := tx.AddEvent(t.Context(), parley.NewGapEvent(w, 2, time.Now())); err != nil {
					return err
				}
			}
			return nil
		}, "off since"},
		{func(tx *store.Tx) error {
			_, err := tx.PurgeEvents(t.Context(), 1e9, time.Now().Add(time.Hour), 1e9, 100)
			return err
		}, "off since"},
		{func(tx *store.Tx) error { return tx.UpdateWebhook(t.Context(), on) }, "missed events: 4 were removed"},
	} {
		if err := db.Tx(t.Context(), step.do); err != nil {
			t.Fatal(err)
		}
		findings, err := Webhooks(t.Context(), db, time.Now())
		if err != nil || len(findings) == 0 || !strings.Contains(findings[len(findings)-1].Found, step.want) {
			t.Errorf("found %+v (%v), want %q", findings, err, step.want)
		}
	}
}

// TestWebhookLevels holds when a webhook needs attention. One failed attempt does not.
func TestWebhookLevels(t *testing.T) {
	now := time.Now()
	off := func(failures int) parley.Webhook {
		w := parley.Webhook{Failures: failures}
		w.Disable(now, "Because.")
		w.Failures = failures
		return w
	}
	for _, test := range []struct {
		name    string
		webhook parley.Webhook
		level   Level
		code    string
	}{
		{"works", parley.Webhook{}, Fine, ""},
		{"one failed attempt", parley.Webhook{Failures: 1, FailingSince: now.Add(-time.Hour)}, Fine, ""},
		{"a burst of failures just now", parley.Webhook{Failures: 9, FailingSince: now.Add(-time.Second)}, Fine, ""},
		{"the retry failed too", parley.Webhook{Failures: 2, FailingSince: now.Add(-failingTime)}, Warning, "webhook_failing"},
		{"for long", parley.Webhook{Failures: 2, FailingSince: now.Add(-longFailing)}, Problem, "webhook_failing"},
		{"off by hand", off(0), Fine, ""},
		{"off because it failed", off(50), Problem, "webhook_off"},
	} {
		test.webhook.URL = "https://crm.example/hook"
		got, err := Webhooks(t.Context(), oneWebhook{test.webhook}, now)
		if err != nil || len(got) != 1 || got[0].Level != test.level || got[0].Code != test.code {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}

// oneWebhook is a store with one webhook, of which nothing waits.
type oneWebhook struct{ webhook parley.Webhook }

func (o oneWebhook) Webhooks(context.Context) ([]parley.Webhook, error) {
	return []parley.Webhook{o.webhook}, nil
}

func (oneWebhook) OldestDelivery(context.Context, parley.WebhookID, bool) (parley.Delivery, error) {
	return parley.Delivery{}, parley.ErrNotFound
}
