package callback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/callback"
	"parley/internal/store"
)

// delivered is the chat and the text of a delivered event.
func delivered(t *testing.T, h hit) (chat, text string) {
	t.Helper()
	var body struct {
		Data struct {
			ContactID string `json:"contact_id"`
			Body      string `json:"body"`
		} `json:"data"`
	}
	if err := json.Unmarshal(h.body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Data.ContactID, body.Data.Body
}

func TestWebhooksGetTheEventsTheyWant(t *testing.T) {
	inBubble(t, func(e *env) {
		e.says(ann, "before anybody listened")
		e.webhook("https://all.example/")
		e.webhook("https://some.example/", parley.MessageReceived)
		e.webhook("https://none.example/", parley.PollVoted)
		e.tx(func(tx *store.Tx) error {
			w := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://other.example/", Channel: "other"}
			off := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://off.example/"}
			off.Disable(time.Now(), "by hand")
			return errors.Join(tx.AddWebhook(e.Context(), w), tx.AddWebhook(e.Context(), off))
		})
		e.start()
		e.says(ann, "hello")
		e.tx(func(tx *store.Tx) error {
			return tx.AddEvent(e.Context(), parley.NewOTPEvent(parley.OTPExpired, "otl_1", shop, ann, "", time.Now()))
		})
		pass(time.Second)
		for host, want := range map[string]int{"all.example": 2, "some.example": 1, "none.example": 0, "other.example": 0, "off.example": 0} {
			if n := len(e.servers.at(host)); n != want {
				e.Errorf("%s got %d requests, want %d", host, n, want)
			}
		}
	})
}

func TestReplayKeepsTheID(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.start()
		var ids []string
		began := time.Now()
		for i := range 6 {
			ids = append(ids, string(e.says(ann, fmt.Sprint(i)).ID))
			pass(time.Minute)
		}
		all := e.deliveries(parley.DeliveryQuery{})
		replay := func(q parley.DeliveryQuery, want ...string) {
			e.Helper()
			before := len(e.servers.at("crm.example"))
			e.tx(func(tx *store.Tx) error {
				n, err := tx.ReplayDeliveries(e.Context(), q, time.Now(), 1000)
				if n != len(want) {
					e.Errorf("replayed %d, want %d", n, len(want))
				}
				return err
			})
			e.engine.Reload()
			pass(time.Second)
			var got []string
			for _, h := range e.servers.at("crm.example")[before:] {
				got = append(got, h.id())
			}
			if !slices.Equal(got, want) {
				e.Errorf("replayed %v, want %v", got, want)
			}
		}
		replay(parley.DeliveryQuery{IDs: []parley.DeliveryID{all[2].ID}}, ids[2])
		replay(parley.DeliveryQuery{Events: []int64{all[3].Event}}, ids[3])
		replay(parley.DeliveryQuery{Since: began.Add(time.Minute), Until: began.Add(3 * time.Minute)}, ids[1], ids[2])
		replay(parley.DeliveryQuery{Webhook: w.ID}, ids...)
	})
}

func TestRestartWithAttemptsInFlight(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", tarpit)
		e.start()
		e.says(ann, "one")
		e.says(ann, "two")
		pass(time.Second)
		e.stop()
		if d := e.deliveries(parley.DeliveryQuery{})[0]; d.Attempts != 0 || d.State != parley.DeliveryWaiting {
			e.Errorf("an attempt that was cut off must not count: %+v", d)
		}
		e.servers.on("crm.example", always(200))
		e.says(ann, "three") // while nothing runs
		e.renew(e.servers)
		e.start()
		pass(time.Second)
		var texts []string
		hits := e.servers.at("crm.example")
		for _, h := range hits {
			_, text := delivered(e.T, h)
			texts = append(texts, text)
		}
		if !slices.Equal(texts, []string{"one", "one", "two", "three"}) || hits[0].id() != hits[1].id() {
			e.Errorf("delivered %q", texts)
		}
	})
}

func TestPurgedEventFailsItsDelivery(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		e.says(ann, "one")
		e.says(ann, "two")
		pass(time.Second)
		e.tx(func(tx *store.Tx) error {
			for range 2 { // a needed event goes only where the log is too long
				if n, err := tx.PurgeEvents(e.Context(), 0, time.Now().Add(time.Second), 0, 1000); n != 1 || err != nil {
					return fmt.Errorf("%d events went: %w", n, err)
				}
			}
			return nil
		})
		e.servers.on("crm.example", always(200))
		e.says(ann, "three")
		pass(time.Minute)
		all := e.deliveries(parley.DeliveryQuery{})
		for i, want := range []parley.DeliveryState{parley.DeliveryFailed, parley.DeliveryFailed, parley.DeliveryDone} {
			if all[i].State != want || want == parley.DeliveryFailed && all[i].Problem != "gone: The event is gone." {
				e.Errorf("delivery %d: %+v", i, all[i])
			}
		}
		if tried := all[0].History(); len(tried) != 1 || tried[0].Code != 500 || !strings.HasPrefix(tried[0].Problem, "http_status: ") {
			e.Errorf("the attempt that was made while there was an event: %+v", tried)
		}
	})
}

func TestOldDeliveriesArePurged(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.start()
		e.says(ann, "one")
		pass(22 * time.Hour)
		e.says(ann, "two")
		pass(3 * time.Hour) // those that were delivered go after a day
		if d := e.only(); d.CreatedAt.Before(time.Now().Add(-4 * time.Hour)) {
			e.Errorf("kept is %+v", d)
		}
		e.servers.on("crm.example", always(500))
		e.says(ann, "three")
		pass(29 * 24 * time.Hour) // those that failed after 30 days
		if d := e.only(); d.State != parley.DeliveryFailed {
			e.Errorf("kept is %+v", d)
		}
		pass(5 * 24 * time.Hour)
		if left := e.deliveries(parley.DeliveryQuery{}); len(left) != 0 {
			e.Errorf("kept are %+v", left)
		}
	})
}

func TestTestEvent(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		a, err := e.engine.SendTest(e.Context(), w)
		if err != nil || !a.Succeeded() || a.Code != 200 {
			e.Errorf("test: %+v, %v", a, err)
		}
		h := e.servers.at("crm.example")[0]
		keys, err := e.secrets.Keys(e.Context(), parley.WebhookSecret(w.ID))
		if err != nil {
			e.Fatal(err)
		}
		if err := verify(e.T, keys.Secret, h); err != nil {
			e.Errorf("verify: %v", err)
		}
		var body struct{ Type parley.EventType }
		if err := json.Unmarshal(h.body, &body); err != nil || body.Type != callback.TestEvent {
			e.Errorf("body %s", h.body)
		}
		e.servers.on("crm.example", always(503))
		a, err = e.engine.SendTest(e.Context(), w)
		if err != nil || a.Succeeded() || a.Code != 503 || a.Response != "answer 503" {
			e.Errorf("test of a broken one: %+v, %v", a, err)
		}
		if n := len(e.deliveries(parley.DeliveryQuery{})); n != 0 || e.readWebhook(w.ID).Failures != 0 {
			e.Errorf("%d deliveries of it, and the webhook is %+v", n, e.readWebhook(w.ID))
		}
	})
}

// TestDeliveriesStayWhileTheClockIsDoubted purges old deliveries only by a trusted clock.
func TestDeliveriesStayWhileTheClockIsDoubted(t *testing.T) {
	inBubble(t, func(e *env) {
		var trusted atomic.Bool
		config := e.config
		config.Metrics, config.ClockTrusted = prometheus.NewRegistry(), trusted.Load
		e.engine = callback.New(config)
		e.webhook("https://crm.example/hook")
		e.start()
		e.says(ann, "hello")
		pass(26 * time.Hour)
		if n := len(e.deliveries(parley.DeliveryQuery{})); n != 1 {
			e.Errorf("%d deliveries are left", n)
		}
		trusted.Store(true)
		pass(2 * time.Minute)
		if n := len(e.deliveries(parley.DeliveryQuery{})); n != 0 {
			e.Errorf("%d deliveries are left after their time", n)
		}
	})
}

// TestReload adds a webhook and replays a delivery while the engine runs: it reads the store when it is woken, and
// not by itself.
func TestReload(t *testing.T) {
	inBubble(t, func(e *env) {
		e.start()
		pass(10 * time.Second)
		e.webhook("https://crm.example/hook")
		e.engine.Reload()
		pass(time.Second)
		e.says(ann, "hello")
		pass(time.Second)
		if n := len(e.servers.at("crm.example")); n != 1 {
			e.Fatalf("delivered %d times", n)
		}
		e.tx(func(tx *store.Tx) error {
			_, err := tx.ReplayDeliveries(context.Background(), parley.DeliveryQuery{}, time.Now(), 10)
			return err
		})
		e.engine.Reload()
		pass(time.Second)
		if n := len(e.servers.at("crm.example")); n != 2 {
			e.Errorf("delivered %d times after a replay", n)
		}
	})
}

func TestNothingSecretIsLogged(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook?key=very-secret")
		e.servers.on("crm.example", always(500))
		e.servers.on("app.example", always(500))
		e.start()
		e.says(ann, "a private text")
		e.calls("https://app.example/ok?session=very-secret", parley.OTPApproved, "")
		pass(time.Hour)
		for _, secret := range []string{"very-secret", "private", "whsec_", "6281100000001"} {
			if strings.Contains(e.log.String(), secret) {
				e.Errorf("the log has %q", secret)
			}
		}
		if !strings.Contains(e.log.String(), "app.example") || !strings.Contains(e.log.String(), "request_id=") {
			e.Errorf("the log does not say which host failed:\n%s", e.log)
		}
	})
}

func TestMetrics(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		e.says(ann, "hello")
		e.calls("https://app.example/ok", parley.OTPApproved, "")
		pass(time.Second)
		families, err := e.metrics.Gather()
		if err != nil {
			e.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"parley_delivery_attempts_total webhook failed": 1, "parley_delivery_attempts_total webhook ok": 0,
			"parley_delivery_attempts_total callback ok": 1, "parley_deliveries_total callback delivered": 1,
			"parley_deliveries_waiting": 2, "parley_delivery_first_attempt_seconds": 2, "parley_webhooks_broken": 0,
		} {
			if v, there := got[name]; !there || v != want {
				e.Errorf("%s is %v, want %v", name, v, want)
			}
		}
	})
}

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
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i%500)), "old")
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
