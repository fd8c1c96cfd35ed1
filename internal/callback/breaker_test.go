package callback_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

func TestDownForADay(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		e.start()
		want := map[string][]string{}
		n := 0
		say := func() {
			chat := parley.NewContactID(fmt.Sprint(6281100000000 + n%7))
			text := fmt.Sprintf("message %d", n)
			want[string(chat)] = append(want[string(chat)], text)
			e.says(chat, text)
			n++
		}
		for range 26 {
			for range 10 {
				say()
			}
			pass(time.Hour)
		}
		down := e.servers.at("crm.example")
		if len(down) > 26*60+30 {
			e.Errorf("%d attempts while it was down", len(down))
		}
		e.servers.on("crm.example", always(200))
		say()
		pass(2 * time.Minute)
		got := map[string][]string{}
		for _, h := range e.servers.at("crm.example")[len(down):] {
			chat, text := delivered(e.T, h)
			got[chat] = append(got[chat], text)
		}
		for chat := range want {
			if !slices.Equal(got[chat], want[chat]) {
				e.Errorf("chat %s got\n%q\nwant\n%q", chat, got[chat], want[chat])
			}
		}
		for _, d := range e.deliveries(parley.DeliveryQuery{}) {
			if d.State != parley.DeliveryDone {
				e.Errorf("left over: %+v", d)
			}
		}
		if !strings.Contains(e.log.String(), "the webhook only fails") || !strings.Contains(e.log.String(), "works again") {
			e.Error("the log does not tell of it")
		}
	})
}

func TestBreaker(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		for i := range 12 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "hello")
		}
		pass(50 * time.Second)
		if n := len(e.servers.at("crm.example")); n != 10 {
			e.Errorf("%d attempts in the first minute, want 10", n)
		}
		if got := e.readWebhook(w.ID); got.Failures != 10 || got.FailingSince.IsZero() {
			e.Errorf("stored health: %+v", got)
		}
		pass(10 * time.Minute)
		hits := e.servers.at("crm.example")[10:]
		if len(hits) != 10 {
			e.Errorf("%d probes in ten minutes", len(hits))
		}
		for i, gap := range gaps(hits) {
			if gap < time.Minute || gap > 61*time.Second {
				e.Errorf("probe %d came %v after the one before", i+1, gap)
			}
		}
		// A probe that was not due costs its delivery nothing.
		for _, d := range e.deliveries(parley.DeliveryQuery{}) {
			if d.Attempts > 5 {
				e.Errorf("used up %d attempts: %+v", d.Attempts, d)
			}
		}
		// The state of the breaker survives the process.
		e.stop()
		before := len(e.servers.at("crm.example"))
		e.renew(e.servers)
		e.start()
		pass(10 * time.Second)
		if n := len(e.servers.at("crm.example")) - before; n != 1 {
			e.Errorf("%d attempts by the next process, want one probe", n)
		}
		e.servers.on("crm.example", always(200))
		pass(time.Minute)
		for _, d := range e.deliveries(parley.DeliveryQuery{}) {
			if d.State != parley.DeliveryDone {
				e.Errorf("left over: %+v", d)
			}
		}
		if got := e.readWebhook(w.ID); got.Failures != 0 || !got.FailingSince.IsZero() {
			e.Errorf("stored health: %+v", got)
		}
	})
}

func TestDisabledAfterFiveDays(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook?key=very-secret")
		w.Failures, w.FailingSince, w.FailingFor = 7000, time.Now().Add(-200*time.Hour), 118*time.Hour // as earlier processes left it
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), w) })
		e.servers.on("crm.example", always(500))
		e.start()
		for i := range 10 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "hello")
		}
		pass(time.Hour)
		if got := e.readWebhook(w.ID); !got.IsEnabled() {
			e.Fatalf("switched off too early: %+v", got)
		}
		pass(2 * time.Hour)
		got := e.readWebhook(w.ID)
		if got.IsEnabled() || !strings.Contains(got.Reason, "120 hours") {
			e.Fatalf("still on: %+v", got)
		}
		if !strings.Contains(e.log.String(), "switched off") || strings.Contains(e.log.String(), "very-secret") {
			e.Error("the log must tell of it, without the address's query")
		}
		before := len(e.servers.at("crm.example"))
		e.says(ann, "while it is off")
		pass(5 * time.Hour)
		if n := len(e.servers.at("crm.example")) - before; n != 0 {
			e.Errorf("%d attempts while it is off", n)
		}
		// Switched on again, it gets what waited and what happened meanwhile.
		e.servers.on("crm.example", always(200))
		got.Enable()
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), got) })
		e.engine.Reload()
		pass(time.Second)
		waiting, err := e.store.CountWaiting(e.Context(), "")
		if err != nil || waiting != 0 {
			e.Errorf("%d wait, %v", waiting, err)
		}
		hits := e.servers.at("crm.example")
		if _, text := delivered(e.T, hits[len(hits)-1]); !slices.ContainsFunc(hits[before:], func(h hit) bool {
			_,
				said := delivered(e.T, h)
			return said == "while it is off"
		}) {
			e.Errorf("what happened while it was off was not delivered; the last was %q", text)
		}
	})
}

// TestTimeWithoutAProcessDoesNotCount has the gateway be off for days between two failures, and nothing happen for days after
// another. Neither is time in which the webhook failed.
func TestTimeWithoutAProcessDoesNotCount(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		e.says(ann, "one")
		pass(time.Second)
		e.stop()
		pass(150 * time.Hour)
		e.renew(e.servers)
		e.start()
		pass(time.Minute)
		got := e.readWebhook(w.ID)
		if !got.IsEnabled() || got.Failures < 2 || got.FailingFor > time.Minute {
			e.Fatalf("after days off: %+v", got)
		}
		pass(100 * time.Hour) // the delivery has failed by then, after its retries in some 76 hours
		tried := e.readWebhook(w.ID).FailingFor
		if tried < 60*time.Hour || tried > 95*time.Hour {
			e.Errorf("retries count as %v", tried)
		}
		pass(100 * time.Hour)
		e.says(ann, "two")
		pass(time.Second)
		if got := e.readWebhook(w.ID); !got.IsEnabled() || got.FailingFor != tried {
			e.Errorf("after days without an attempt: %+v, before %v", got, tried)
		}
	})
}

func TestGoneDisables(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(410))
		e.start()
		e.says(ann, "one")
		pass(time.Second)
		e.says(ann, "two")
		pass(time.Hour)
		if n := len(e.servers.at("crm.example")); n != 1 {
			e.Errorf("%d attempts", n)
		}
		got := e.readWebhook(w.ID)
		if got.IsEnabled() || !strings.Contains(got.Reason, "410") {
			e.Errorf("still on: %+v", got)
		}
		e.servers.on("crm.example", always(200))
		got.Enable()
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), got) })
		e.engine.Reload()
		pass(time.Second)
		if n := len(e.servers.at("crm.example")); n != 3 {
			e.Errorf("%d attempts, want the two that waited too", n)
		}
	})
}

func TestPoisonBlocksItsChatOnly(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", func(req *http.Request) (*http.Response, error) {
			hits := e.servers.at("crm.example")
			if strings.Contains(string(hits[len(hits)-1].body), "poison") {
				return answer(500), nil
			}
			return answer(200), nil
		})
		e.start()
		e.says(ann, "poison")
		e.says(ann, "behind it")
		pass(time.Second)
		for i := range 20 {
			e.says(bob, fmt.Sprintf("message %d", i))
			pass(time.Second)
		}
		var bobs, anns []string
		collect := func() {
			bobs, anns = nil, nil
			for _, h := range e.servers.at("crm.example") {
				if chat, text := delivered(e.T, h); chat == string(bob) {
					bobs = append(bobs, text)
				} else if text != "poison" {
					anns = append(anns, text)
				}
			}
		}
		collect()
		if len(bobs) != 20 || len(anns) != 0 {
			e.Errorf("Bob: %d deliveries, Ann: %q", len(bobs), anns)
		}
		pass(100 * time.Hour) // the poison has failed by then
		collect()
		if !slices.Equal(anns, []string{"behind it"}) {
			e.Errorf("after the poison came %q", anns)
		}
	})
}

func TestPoisonsDoNotHideAWorkingEndpoint(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", func(req *http.Request) (*http.Response, error) {
			hits := e.servers.at("crm.example")
			if strings.Contains(string(hits[len(hits)-1].body), "poison") {
				return answer(500), nil
			}
			return answer(200), nil
		})
		e.start()
		for i := range 15 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "poison")
		}
		pass(time.Hour)
		e.says("6281100000099@c.us", "good")
		pass(3 * time.Minute)
		if done := parley.DeliveryDone; len(e.deliveries(parley.DeliveryQuery{State: &done})) != 1 {
			e.Error("the good one got nothing within three minutes")
		}
	})
}

func TestTarpitDelaysNoOther(t *testing.T) {
	inBubble(t, func(e *env) {
		for i := range 100 {
			e.webhook(fmt.Sprintf("https://good%d.example/", i))
		}
		for i := range 20 {
			host := fmt.Sprintf("tarpit%d.example", i)
			e.servers.on(host, tarpit)
			e.webhook("https://" + host + "/")
		}
		e.start()
		pass(time.Second)
		said := map[string]time.Time{}
		const events = 10
		for i := range events {
			said[string(e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "hello").ID)] = time.Now()
			pass(2 * time.Second)
		}
		pass(5 * time.Second)
		var waits []time.Duration
		for i := range 100 {
			hits := e.servers.at(fmt.Sprintf("good%d.example", i))
			if len(hits) != events {
				e.Errorf("a good endpoint got %d of %d", len(hits), events)
			}
			for _, h := range hits {
				waits = append(waits, h.at.Sub(said[h.id()]))
			}
		}
		slices.Sort(waits)
		if p99 := waits[len(waits)*99/100]; p99 >= 2*time.Second {
			e.Errorf("p99 is %v, the slowest %v", p99, waits[len(waits)-1])
		}
	})
}

func TestAtMostFourAtATime(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		var now, most atomic.Int64
		e.servers.on("crm.example", func(*http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return answer(200), nil
		})
		e.start()
		for i := range 40 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i%20)), "hello")
		}
		pass(11 * time.Second)
		if most.Load() != 4 {
			e.Errorf("%d at a time", most.Load())
		}
		if n := len(e.servers.at("crm.example")); n != 40 {
			e.Errorf("%d of 40 within eleven seconds", n)
		}
	})
}

func TestNewURLClearsFailures(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://old.example/hook")
		e.servers.on("old.example", always(500))
		e.start()
		for i := range 12 {
			e.says(parley.NewContactID(fmt.Sprint(6281100000000+i)), "hello")
		}
		pass(5 * time.Minute)
		w = e.readWebhook(w.ID)
		w.URL = "https://new.example/hook"
		e.tx(func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), w) })
		e.engine.Reload()
		pass(time.Second)
		if n := len(e.servers.at("new.example")); n != 12 {
			e.Errorf("the new address got %d of 12", n)
		}
		e.tx(func(tx *store.Tx) error { return tx.DeleteWebhook(e.Context(), w.ID) })
		e.engine.Reload()
		e.says(ann, "after it was removed")
		pass(time.Minute)
		if n := len(e.servers.at("new.example")); n != 12 {
			e.Errorf("a deleted webhook got %d events", n)
		}
	})
}
