package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// mostShift is how much of a page may move while it loads, as browsers count it.
const mostShift = 0.05

// TestLayoutShift loads every page and holds that what is shown stays where it is.
func TestLayoutShift(t *testing.T) {
	t.Parallel()
	c := start(t)
	message := c.populate()
	c.lostDeliveries(c.addWebhook("http://127.0.0.1:1/lost"), 120) // more than a page of them
	for i := range 20 {
		c.makeChannel(fmt.Sprintf(`"code":"toko-%d"`, i))
	}
	p := c.open("/")
	for _, width := range []int64{1440, 390} {
		p.size(width, 844)
		for _, each := range append(everyPage, struct{ name, path string }{"deliveries", "/webhooks/deliveries"}) {
			if each.name == "pair" || each.name == "account" || each.name == "login" || each.name == "not-found" {
				continue
			}
			p.visit(strings.ReplaceAll(each.path, "{message}", message))
			p.live()
			p.rest()
			if sum := eval[float64](p, `shifts.reduce((sum, one) => sum + one.value, 0)`); sum > mostShift {
				t.Errorf("%s at %d px moves by %.3f: %s", each.name, width, sum, eval[string](p, `JSON.stringify(shifts)`))
			}
		}
	}
}

// imported is JavaScript for a module of the page.
func imported(file string) string {
	return `(await import(performance.getEntriesByType('resource').find(({ name }) => name.includes('` + file + `')).name))`
}

// TestValues holds how values are written: times in the future, numbers of Israel, and what took no time.
func TestValues(t *testing.T) {
	t.Parallel()
	p := start(t).open("/channels/demo")
	for expression, want := range map[string]string{
		imported("/i18n.js") + `.duration(0)`:                   "< 1 ms",
		imported("/i18n.js") + `.seconds(0)`:                    "0 s",
		imported("parts/who.js") + `.phone('972521234521')`:     "+972 52-123-4521",
		imported("parts/who.js") + `.phone('6281234567890')`:    "+62 812-3456-7890",
		`shown(new Date(Date.now() + 3_630_000).toISOString())`: "in 1 h",
		`shown(new Date(Date.now() - 7_230_000).toISOString())`: "2 h ago",
		`shown(new Date(Date.now() + 2000).toISOString())`:      "1 s ago", // a clock that is a little off
	} {
		got := eval[string](p, `(async () => {
			const { html, render } = `+imported("/view.js")+`;
			const { Time } = `+imported("parts/time.js")+`;
			const shown = (at) => {
				const box = document.createElement('p');
				render(html`+"`<${Time} at=${at} ago />`"+`, box);
				return box.innerText.split('· ')[1];
			};
			return `+expression+`;
		})()`)
		if got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

// TestBurstInParts holds that a burst of events is drawn in parts, at most one a frame and ten a second.
func TestBurstInParts(t *testing.T) {
	t.Parallel()
	p := start(t).open("/messages")
	sizes := eval[[]int](p, `(async () => {
		const { receive, onEvents } = `+imported("/live.js")+`;
		const sizes = [];
		let frames = 0;
		let last = -Infinity, apart = 1;
		const done = new Promise((resolve) => onEvents(['test.'], (events) => {
			sizes.push(events.length);
			if (performance.now() - last < 90) apart = 0;
			last = performance.now();
			if (sizes.reduce((a, b) => a + b) === 1000) resolve();
		}));
		const count = () => { frames++; if (sizes.reduce((a, b) => a + b, 0) < 1000) requestAnimationFrame(count); };
		requestAnimationFrame(count);
		receive({ events: Array.from({ length: 1000 }, () => ({ type: 'test.burst' })) });
		await done;
		return [frames >= sizes.length - 1 ? apart : 0, ...sizes];
	})()`)
	if fmt.Sprint(sizes) != "[1 200 200 200 200 200]" {
		t.Errorf("the parts are %v", sizes)
	}
}

// TestSessionEnded says on the sign-in page why one is there.
func TestSessionEnded(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/tokens")
	p.allow("401")
	c.Delete("/api/manage/sessions", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p.click("link", "Channels")
	p.see("Your session has ended.")
	p.accessible()
	p.visit("/login")
	p.see("Open a sign-in link on the server")
	p.gone("Your session has ended.")
}

// TestCodeNotSent holds that nobody is asked for a code that was not sent.
func TestCodeNotSent(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Phone(ayu).Types("hello")
	p := c.open("/otp?to=" + ayu)
	c.Post("/api/sandbox/faults", `{"fault":"refuse","times":1}`).Expect(http.StatusOK)
	p.click("button", "Send a code")
	p.see("The code was not sent.")
	p.gone("Enter the code that we sent")
	p.until("its failure is shown once", `document.querySelectorAll('[data-t=timeline] [data-step=failed]').length === 1`)
	p.accessible()
}

// TestFoundAtLeast holds that the size of a page is not said to be all that was found.
func TestFoundAtLeast(t *testing.T) {
	t.Parallel()
	c := start(t)
	for i := range 101 {
		c.say("text", ayu, fmt.Sprintf(`"message":"promo %d"`, i))
	}
	p := c.open("/messages?q=direction:out")
	p.see("More than 100 messages match. The newest 100 are shown.")
	p.click("button", "Show older")
	p.see("101 messages found.")
}
