package doctor

import (
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
			_, err := tx.PurgeEvents(t.Context(), time.Now().Add(time.Hour), 1e9, 100)
			return err
		}, "off since"},
		{func(tx *store.Tx) error { return tx.UpdateWebhook(t.Context(), on) }, "missed events: 4 were removed"},
	} {
		if err := db.Tx(t.Context(), step.do); err != nil {
			t.Fatal(err)
		}
		findings, err := Webhooks(t.Context(), db)
		if err != nil || len(findings) == 0 || !strings.Contains(findings[len(findings)-1].Found, step.want) {
			t.Errorf("found %+v (%v), want %q", findings, err, step.want)
		}
	}
}
