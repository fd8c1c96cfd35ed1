package browsertest

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestTrends reads the charts of the overview with the pointer, the keyboard and as a table, over another span and of one
// channel, and those of a channel and of a webhook.
func TestTrends(t *testing.T) {
	t.Parallel()
	c, hook := start(t), newReceiver(t, 200)
	webhook := c.addWebhook(hook.URL)
	c.makeChannel(`"code":"toko"`)
	c.say("text", ayu, `"message":"one"`)
	c.Post("/api/send-message/text", `{"contact_id":"99900000000@c.us","message":"to nobody"}`).Expect(http.StatusOK)
	c.Phone(ayu).Types("hello")
	c.Eventually("everything is counted", func() bool {
		a := c.Get("/api/manage/stats?span=1h", parleytest.As(c.Admin)).Expect(http.StatusOK)
		return a.Number("data.total.delivered") == 1 && a.Number("data.total.failed_by.not_on_network") == 1 &&
			a.Number("data.total.webhooks.delivered") == 1
	})
	p := c.open("/")
	for _, chart := range []string{"Messages", "Time to sent and to delivered", "Failed, by reason", "Webhook attempts", "Webhook latency"} {
		p.find("slider", chart)
	}
	p.see("Not on the network")
	p.accessible()

	// The newest step by keyboard, then the one before it, where nothing happened.
	legend := `document.querySelector('.trends .legend').innerText`
	p.focus(p.find("slider", "Messages"))
	p.press(kb.End)
	p.until("the newest figures are shown with their time", `/Sent\s+1\b/.test(`+legend+`) && /\d\d:\d\d/.test(`+legend+`)`)
	p.press(kb.Home)
	p.until("the oldest are none", `/Sent\s+0\b/.test(`+legend+`)`)
	p.until("a screen reader hears them", `/: Sent 0, Delivered 0/.test(document.activeElement.ariaValueText)`)
	p.until("the axis has several labels", `document.querySelectorAll('.plot-y')[0].children.length === 4`)

	p.click("button", "7 d")
	p.until("the span is in the address", `location.search.includes('span=7d')`)
	p.until("a week has 168 points", `document.querySelector('[role=slider]')?.ariaValueMax === '167'`)
	eval[any](p, `document.querySelector('.trends .icon-button').click(), null`)
	p.until("the figures are in a table", `document.querySelector('.trends table tbody td.end')?.innerText === '1'`)
	p.accessible()

	p.visit("/?channel=toko&span=1h")
	p.live()
	p.see("Nothing happened in this time.")
	p.visit("/channels/demo?span=1h")
	p.live()
	p.find("slider", "Messages")
	p.accessible()
	p.visit("/webhooks?webhook=" + webhook)
	p.live()
	p.find("slider", "Webhook latency")
	p.until("the rate is said", `document.querySelector('.drawer .legend').innerText.includes('1 (100%)')`)
	p.accessible()
}

// TestAxis holds that a spike leaves other values readable, and that labels are whole.
func TestAxis(t *testing.T) {
	t.Parallel()
	p := start(t).open("/")
	axis := func(values string) string {
		return eval[string](p, `(async () => {
			const { toAxis } = await import(performance.getEntriesByType('resource').find(({ name }) => /parts\/chart\.js/.test(name)).name);
			const axis = toAxis(`+values+`);
			return [axis.root, axis.top, axis.labels.join(' '), Math.round(100 * axis.at(axis.top / 100))].join(' ');
		})()`)
	}
	for values, want := range map[string]string{
		`[]`:                        "false 4 1 2 3 4 1",
		`[1, 2, 3]`:                 "false 4 1 2 3 4 1",
		`[90, 100, 110]`:            "false 120 30 60 90 120 1",
		`[3, 3, 4, 4, 5, 5, 15000]`: "true 16000 1000 4000 9000 16000 10", // a hundredth is a tenth of the height
	} {
		if got := axis(values); got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
}
