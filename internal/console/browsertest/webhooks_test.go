package browsertest

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// receiver is a webhook that responds with a given status.
type receiver struct {
	*httptest.Server
	status, got atomic.Int64
}

func newReceiver(t *testing.T, status int64) *receiver {
	r := &receiver{}
	r.status.Store(status)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.got.Add(1)
		w.WriteHeader(int(r.status.Load()))
		fmt.Fprint(w, `<b>out to lunch</b>`)
	}))
	t.Cleanup(r.Close)
	return r
}

func (c *console) addWebhook(url string) (id string) {
	c.t.Helper()
	return c.Post("/api/manage/webhooks", `{"url":"`+url+`","events":["message.received"]}`, parleytest.As(c.Admin)).
		Expect(http.StatusCreated).Text("data.id")
}

// lostDeliveries stores deliveries that have failed for good, as those of a night without the receiver.
func (c *console) lostDeliveries(webhook string, n int) {
	c.t.Helper()
	events := make([]*parley.Event, n)
	for i := range events {
		at := time.Now().Add(-time.Duration(n-i) * time.Second).Truncate(time.Millisecond)
		contact := parley.NewContactID(fmt.Sprintf("62812%08d", i))
		events[i] = parley.NewOTPEvent(parley.OTPFailed, "otp_x", app.DemoChannel, contact, "wrong_sender", at)
	}
	c.store(func(ctx context.Context, data *app.Data) error {
		err := data.Store.Tx(ctx, func(tx *store.Tx) error {
			for _, event := range events {
				if err := tx.AddEvent(ctx, event); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		var all []parley.Delivery // the events have their place in the log now
		for _, event := range events {
			d := parley.NewDelivery(event, parley.WebhookID(webhook))
			d.CreatedAt, d.TriedAt, d.EndedAt, d.Took, d.Attempts = event.At, event.At, event.At, 84*time.Millisecond, 10
			d.State, d.Code, d.Problem, d.Response = parley.DeliveryFailed, 503, "http_status: The server answered 503 Service Unavailable.",
				"<b>out to lunch</b>"
			all = append(all, d)
		}
		return data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddDeliveries(ctx, all) })
	})
}

// TestWebhook makes a webhook, tries it, changes it and deletes it.
func TestWebhook(t *testing.T) {
	t.Parallel()
	c, hook := start(t), newReceiver(t, 204)
	p := c.open("/webhooks")
	p.see("No webhooks yet.")
	p.see("parley listen --forward-to localhost:3000/hook")
	p.accessible()
	p.press("n")
	p.find("dialog", "Add webhook")
	p.allow("422")
	p.fill("Address", "ftp://nowhere")
	p.press(kb.Enter)
	p.until("the address is wrong", `document.querySelector('[name=url][aria-invalid=true]')`)
	p.accessible()
	p.fill("Address", hook.URL+"/crm")
	p.click("radio", "Only these")
	p.click("checkbox", "Message received message.received")
	p.click("checkbox", "OTP approved otp.approved")
	p.press(kb.Enter)
	p.see("The webhook is on.")
	p.see("whsec_")
	p.click("button", "Test it")

	// The drawer of the new one: a test, and something that really happens.
	p.see("Working: events are delivered at once.")
	p.see("OTP approved otp.approved")
	p.click("button", "Send test event")
	p.see("204 in")
	hook.status.Store(500)
	p.click("button", "Send test event")
	p.see("500 in")
	p.see("<b>out to lunch</b>")
	p.accessible()
	hook.status.Store(200)
	on[any](p, "combobox", "Event",
		`function() { this.value = 'message.received'; this.dispatchEvent(new Event('change', { bubbles: true })); return null; }`)
	before := hook.got.Load()
	p.click("button", "Send test event")
	p.see("Message received triggered")
	c.Eventually("the webhook receives it", func() bool { return hook.got.Load() > before })

	// The secret, and a new one.
	secret := func() string {
		return eval[string](p,
			`[...document.querySelectorAll('.drawer code')].map((code) => code.innerText).find((text) => text.startsWith('whsec_'))`)
	}
	p.click("button", "Reveal")
	p.see("whsec_")
	first := secret()
	p.click("button", "Rotate the secret")
	p.find("dialog", "Rotate the secret")
	p.click("button", "Rotate the secret")
	p.see("The old secret also signs until")
	if second := secret(); second == first {
		t.Error("the secret is the same as before")
	}

	p.click("button", "Edit")
	p.find("dialog", "Edit")
	p.click("radio", "All events, including future types")
	p.click("button", "Save")
	p.lost("dialog", "Edit")
	p.click("button", "Turn off")
	p.see("Off: It was switched off by hand.")
	p.click("button", "Turn on")
	p.see("Working: events are delivered at once.")
	shown := c.Get("/api/manage/webhooks", parleytest.As(c.Admin)).Expect(http.StatusOK)
	if shown.Count("data.0.events") != 0 || !shown.Bool("data.0.enabled") {
		t.Errorf("it is %s", shown.Body)
	}
	p.click("button", "Delete")
	p.find("dialog", "Delete")
	p.click("button", "Delete")
	p.see("The webhook was deleted")
	p.see("No webhooks yet.")
}

// TestReplayMany has everything delivered that failed, at once.
func TestReplayMany(t *testing.T) {
	t.Parallel()
	const lost = 320 // more than the steps in which it is done
	c, hook := start(t), newReceiver(t, 200)
	c.lostDeliveries(c.addWebhook(hook.URL), lost)
	p := c.open("/webhooks?state=failed")
	p.see("320 deliveries failed permanently.")
	p.find("link", "Failed 320")
	p.hasRows(100)
	p.accessible()
	p.click("button", "Show older")
	p.hasRows(200)
	p.click("button", "Replay 320 failed since…")
	p.see("Replay 320 deliveries?") // counted, and nothing done yet
	if n := hook.got.Load(); n != 0 {
		t.Errorf("%d were sent before it was confirmed", n)
	}
	p.click("button", "Replay")
	p.see("Done: 320 of 320 resent.")
	p.accessible()
	c.Eventually("all are delivered", func() bool { return hook.got.Load() == lost })
	p.click("button", "Close")
	p.see("None failed.")
	p.click("link", "Show all")
	p.hasRows(200)
	p.until("all that are drawn are delivered",
		`document.querySelector('main [data-state]') && !document.querySelector('main [data-state]:not([data-state=delivered])')`)
}

// TestDelivery looks at one delivery: what was sent, what came back, and that its signature can be checked.
func TestDelivery(t *testing.T) {
	t.Parallel()
	c, hook := start(t), newReceiver(t, 503)
	webhook := c.addWebhook(hook.URL + "/crm?key=1")
	c.Phone(ayu).Types(`It's "me" & <i>you</i> 👋`)
	p := c.open("/webhooks/deliveries")
	p.hasRows(1)
	p.see("503 in")
	p.see("/10")
	p.openRow(1)
	p.see("of 10 failed. The server answered 503 Service Unavailable.")
	p.see("POST " + hook.URL + "/crm?key=1")
	p.see("<b>out to lunch</b>")
	p.accessible()

	// In five languages; the one for the shell is run.
	eval[any](p, `document.querySelector('.drawer summary').click(), null`)
	for _, language := range []string{"JavaScript", "PHP", "Python", "Go", "Shell"} {
		p.click("tab", language)
		p.until("it is shown in "+language, `document.querySelector('[role=tabpanel]').getAttribute('aria-label') === `+quote(language))
		if code := eval[string](p, `document.querySelector('[role=tabpanel] code').innerText`); !strings.Contains(code, "WEBHOOK_SECRET") ||
			!strings.Contains(code, "evt_") {
			t.Errorf("%s: %s", language, code)
		}
	}
	secret := c.Get("/api/manage/webhooks/"+webhook+"/secret", parleytest.As(c.Admin)).Expect(http.StatusOK).Text("data.secret")
	check := func(secret string) string {
		shell := exec.CommandContext(t.Context(), "bash", "-c", eval[string](p, `document.querySelector('[role=tabpanel] code').innerText`))
		shell.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret)
		out, _ := shell.CombinedOutput() // it fails where nothing fits
		return strings.TrimSpace(string(out))
	}
	if got := check(secret); got != "valid" {
		t.Errorf("with its secret the signature is %q", got)
	}
	if got := check("whsec_" + strings.Repeat("A", 43) + "="); got != "" {
		t.Errorf("with another secret the signature is %q", got)
	}

	// Once delivered, it can be replayed.
	hook.status.Store(200)
	c.Call("PATCH", "/api/manage/webhooks/"+webhook, `{"enabled":true}`, parleytest.As(c.Admin)).Expect(http.StatusOK) // tries at once
	p.see("Delivered at attempt")
	p.until("its attempts are listed, with what was answered", `(() => {
		const tries = [...document.querySelectorAll('.drawer .tries li')].map((li) => li.innerText);
		return tries.length > 1 && tries[0].includes('503 in') && tries[0].includes('out to lunch') && tries.at(-1).includes('200 in');
	})()`)
	p.accessible()
	before := hook.got.Load()
	p.press("r")
	p.see("Replay queued")
	c.Eventually("it came again", func() bool { return hook.got.Load() > before })
	p.see("The list includes attempts before a replay")
	p.see("Delivered at the first attempt")
	p.click("link", "View message")
	p.see("Received from Ayu")
}

// TestCallbackInList finds the callback of a login link among the deliveries, with its GET.
func TestCallbackInList(t *testing.T) {
	t.Parallel()
	c, site := start(t), newReceiver(t, 200)
	asked := c.Post("/api/otp/link/request",
		fmt.Sprintf(`{"contact_id":"%s@c.us","expires":300,"name":"Toko Ayu","callback":{"success":"%[2]s/ok","failed":"%[2]s/no"}}`, ayu,
			site.URL)).Expect(http.StatusOK)
	c.Post("/api/sandbox/phones/"+ayu+"/open", fmt.Sprintf(`{"link":%q}`, asked.Text("data.link"))).Expect(http.StatusOK)
	c.Eventually("the site is called", func() bool { return site.got.Load() > 0 })
	p := c.open("/webhooks/deliveries")
	p.hasRows(1)
	p.see("callback")
	p.see("otp.approved")
	p.openRow(1)
	p.see("GET " + site.URL + "/ok?contact_id=")
	p.see("&status=success&")
	p.accessible()
}

// TestFailingWebhook holds that nothing looks well where nothing is taken: not in the list, where the newest
// deliveries only wait behind the one that fails, and not on the overview.
func TestFailingWebhook(t *testing.T) {
	t.Parallel()
	c, hook := start(t), newReceiver(t, 200)
	c.addWebhook(hook.URL)
	c.Phone(ayu).Types("taken")
	c.Eventually("the webhook receives it", func() bool { return hook.got.Load() > 0 })
	hook.status.Store(500)
	for i := range 25 { // more than the list asks for
		c.Phone(ayu).Types(fmt.Sprint("lost ", i))
	}
	c.Eventually("it fails", func() bool {
		return c.Get("/api/manage/webhooks", parleytest.As(c.Admin)).Expect(http.StatusOK).Number("data.0.failures") > 0
	})
	p := c.open("/?channel=demo")
	p.see("One webhook is failing")
	p.until("the tile warns", `document.querySelector('.tile.warn')?.innerText.includes('Webhook success rate')`)
	p.accessible()
	p.click("link", "See webhook")
	p.until("the webhook is open, and the channel is still picked",
		`/webhook=whk_/.test(location.search) && /channel=demo/.test(location.search)`)
	p.see("failed, since")
	p.until("the list says what was answered", `(() => {
		const row = document.querySelector('main tbody tr[data-key]')?.innerText || '';
		return /failing\s+since/.test(row) && /\d%/.test(row) && row.includes('25') && row.includes('retrying') && row.includes('500 in');
	})()`)
	p.accessible()
	eval[any](p, `document.querySelector('.drawer a[href*="open=dlv_"]').click(), null`)
	p.see("The server answered 500")
	p.visit("/webhooks/deliveries?state=failed")
	p.see("Failing deliveries are retried")
	p.size(390, 844)
	p.visit("/webhooks")
	p.until("so does a card in a hand", `(() => { const card = document.querySelector('main tbody tr[data-key]')?.innerText || '';
		return /Success, 24 h: \d+%/.test(card) && /Waiting: 25\s+· \d+ (s|min) ago/.test(card); })()`)
	p.accessible()
}

// TestLateWebhook: an address whose events wait for long comes before one that works, and the page says so first.
func TestLateWebhook(t *testing.T) {
	t.Parallel()
	c, works, waits := start(t), newReceiver(t, 200), newReceiver(t, 503)
	c.addWebhook(works.URL)
	late := c.addWebhook(waits.URL)
	c.Phone(ayu).Types("hello")
	c.Eventually("it waits for minutes", func() bool {
		list := c.Get("/api/manage/deliveries?state=waiting", parleytest.As(c.Admin)).Expect(http.StatusOK)
		return list.Number("meta.total") == 1 && list.Number("data.0.attempts") == 2
	})
	db, err := sql.Open("sqlite", "file:"+c.Data.Database()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, change := range []string{ // as after a long queue, in which no attempt failed
		`UPDATE webhook SET failing_since = 0, failing_ms = 0, failures = 0`,
		`UPDATE delivery SET created_at = created_at - 600000 WHERE state = 0`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	p := c.open("/webhooks")
	p.until("the one that waits comes first", `(([first, second]) => first?.dataset.key === '`+late+`' && /late/.test(first.innerText) &&
		!/late/.test(second.innerText))(document.querySelectorAll('main tbody tr[data-key]'))`)
	p.see("One is late.")
}

// TestRetryNow retries what waits as soon as its receiver works again: one delivery, some, and all of a webhook.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	c, hook := start(t), newReceiver(t, 503)
	webhook := c.addWebhook(hook.URL)
	for _, number := range []string{ayu, budi, "6281377700011", "6281377700012"} { // deliveries of one chat wait for each other
		c.Phone(number).Types("hello")
	}
	waits := func(n int) func() bool {
		return func() bool {
			list := c.Get("/api/manage/deliveries?state=waiting", parleytest.As(c.Admin)).Expect(http.StatusOK)
			return list.Number("meta.total") == n
		}
	}
	c.Eventually("four wait", waits(4))
	c.Eventually("each was tried and waits for minutes", func() bool {
		for i := range 4 {
			list := c.Get("/api/manage/deliveries?state=waiting", parleytest.As(c.Admin)).Expect(http.StatusOK)
			if list.Number(fmt.Sprintf("data.%d.attempts", i)) < 2 {
				return false
			}
		}
		return true
	})
	p := c.open("/webhooks?webhook=" + webhook)
	p.see("Last error")
	p.see("The server answered 503 Service Unavailable.")
	p.see("Recent deliveries")
	p.find("button", "Retry 4 now")
	p.accessible()

	hook.status.Store(200)
	p.visit("/webhooks/deliveries")
	p.hasRows(4)
	p.see("4 deliveries wait; ")
	p.openRow(1)
	p.click("button", "Retry now")
	p.see("Delivered at attempt 3 of 10")
	p.press(kb.Escape)
	p.see("3 deliveries wait; ")
	p.click("button", "Retry all now")
	p.see("Trying 3 deliveries now")
	c.Eventually("nothing waits", waits(0))

	// A selection, with one that waits and one that is delivered.
	hook.status.Store(503)
	c.Phone("6281377700013").Types("again")
	c.Eventually("one waits", waits(1))
	p.visit("/webhooks/deliveries")
	p.hasRows(5)
	eval[any](p, `[...document.querySelectorAll('main .pick input')].slice(1, 3).forEach((box) => box.click()), null`)
	p.see("2 selected")
	p.find("button", "Retry one now")
	p.accessible()
	hook.status.Store(200)
	before := hook.got.Load()
	p.click("button", "Replay one")
	p.see("One replay queued")
	c.Eventually("it came again", func() bool { return hook.got.Load() > before })
}
