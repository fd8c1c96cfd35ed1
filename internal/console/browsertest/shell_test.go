package browsertest

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestShell loads the frame and looks at what is in it on every page.
func TestShell(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	p.see("SANDBOX")
	for _, page := range []string{"Overview", "Channels", "Messages", "Phone", "OTP", "Webhooks", "Tokens", "API"} {
		p.find("link", page)
	}
	p.accessible()
}

// TestTwelveTabs opens more tabs than a browser has connections to one server: they share one stream.
func TestTwelveTabs(t *testing.T) {
	t.Parallel()
	c := start(t)
	const tabs = 12
	var all []*tab
	for range tabs {
		all = append(all, c.open("/channels"))
	}
	listeners := func() int {
		return c.Get("/api/sandbox/listeners?type=channel.status").Expect(http.StatusOK).Number("data.listeners")
	}
	if n := listeners(); n != 1 {
		t.Errorf("%d tabs hold %d streams, want 1", tabs, n)
	}
	// Every tab hears what happens, and can still ask.
	c.Post("/api/manage/channels/demo/stop", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	for _, p := range all {
		p.see("stopped")
		if got := eval[int](p, `fetch('/console/api/manage/channels').then((r) => r.status)`); got != http.StatusOK {
			t.Errorf("a tab gets %d", got)
		}
	}
	if n := listeners(); n != 1 {
		t.Errorf("%d tabs hold %d streams, want 1", tabs, n)
	}
}

// TestRestart stops the server under an open page and starts it again: the page says so, and is live
// again by itself.
func TestRestart(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	c := start(t, func(cfg *app.Config) { cfg.Listen = port })
	p := c.open("/")
	p.allow("ERR_")
	c.Stop()
	p.until("the page says that it is not live", `document.documentElement.dataset.live === 'off'`)
	// A request notices it later than the stream did. The dot and the sentence tell of the same moment still.
	p.until("what is shown is old", `document.querySelector('[data-t=live]').innerText.includes('stale')`)
	eval[any](p, `import(document.querySelector('script[type=module]').src.replace('app.js', 'api.js')).then(({ api }) => `+
		`api.get('/manage/server')).catch(() => null)`)
	p.until("the dot and the page agree", `(() => {
		const since = document.querySelector('[data-t=live]').innerText.match(/stale since (.*)/)?.[1];
		return since && document.querySelector('main').innerText.includes('No response from the server since ' + since + '.');
	})()`)
	c.Restart()
	p.live()
	p.gone("No response from the server")
}

// TestKeys goes to another page from one whose table has a meaning for the second key, and back by Escape.
func TestKeys(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels")
	p.press("j")
	p.until("the row has the focus", `document.activeElement.matches('main tbody tr[data-key=demo]')`)
	p.press("y")
	p.see("Copied id")
	p.press("g")
	p.press("k")
	p.until("the tokens are shown", `location.pathname === '/console/tokens'`)

	p.visit("/channels/demo/settings")
	p.live()
	p.rest()
	p.press("y")
	p.see("Copied code")
	p.focus(p.findAny(inputs, "Name"))
	p.press(kb.Escape) // typed text is not lost
	if at := eval[string](p, `location.pathname`); at != "/console/channels/demo/settings" {
		t.Errorf("Escape in a field led to %s", at)
	}
	eval[any](p, `document.activeElement.blur(), null`)
	p.press(kb.Escape)
	p.until("the list is shown", `location.pathname === '/console/channels'`)
}

// TestPaletteNames finds a channel and a phone whose names are written from right to left: their numbers stay in order.
func TestPaletteNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/sandbox/phones", `{"number":"`+budi+`","name":"متجر حيفا"}`)
	c.say("text", budi, `"message":"`+strings.Repeat("Halo Kak, ", 40)+`"`)
	p := c.open("/")
	p.press("k", input.ModifierCtrl)
	p.find("option", "متجر حيفا +62 812-9000-4711…")
	p.until("what belongs to a name is right of it", `[...document.querySelectorAll('.palette [role=option]')]
		.filter((one) => one.innerText.includes('حيفا')).length === 2
		&& [...document.querySelectorAll('.palette [role=option]')].filter((one) => one.innerText.includes('4711')).every((one) => {
			const [label, more] = [...one.querySelectorAll('bdi')].map((bdi) => bdi.getBoundingClientRect());
			return label.left < 140 + document.querySelector('.palette').getBoundingClientRect().left && label.right <= more.left;
		})`)
	p.until("a long text leaves room for whose it is", `[...document.querySelectorAll('.palette [role=option]')]
		.filter((one) => one.innerText.includes('Halo Kak')).every((one) => {
		const more = one.querySelector('.muted');
		return more.innerText.includes('demo') && more.clientWidth >= 100 && more.scrollWidth <= more.clientWidth;
	})`)
	p.accessible()
}

// TestMaskOfNames hides what channels are called in the picker and the palette too.
func TestMaskOfNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/manage/channels", `{"code":"toko","name":"Toko Rahasia","network":"sandbox"}`, parleytest.As(c.Admin)).
		Expect(http.StatusCreated)
	p := c.open("/messages")
	p.click("combobox", "Channel")
	p.until("the picker has the name", `document.querySelector('.picker').textContent.includes('Rahasia')`)
	p.press(kb.Escape)
	eval[any](p, `document.activeElement.blur(), null`)
	p.press(".")
	p.click("combobox", "Channel")
	p.find("option", "toko…")
	p.until("the picker hides it", `!document.querySelector('.picker').textContent.includes('Rahasia')`)
	p.press(kb.Escape)
	p.press("k", input.ModifierCtrl)
	p.find("option", "toko…")
	p.gone("Rahasia")
}

// freePort finds a port for a server that is to come back at the same address.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestThemeAndLanguageAreThereAtFirstPaint sets both and loads again: the server's own page has them.
func TestThemeAndLanguageAreThereAtFirstPaint(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	p.prefer("theme", "dark")
	p.prefer("lang", "id")
	p.visit("/settings")
	page := eval[string](p, `fetch(location.href).then((r) => r.text())`)
	for _, want := range []string{`lang="id"`, `data-theme="dark"`, `data-band="sandbox"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	p.live()
	if scheme := eval[string](p, `getComputedStyle(document.documentElement).colorScheme`); scheme != "dark" {
		t.Errorf("it is drawn %s", scheme)
	}
}

// hold keeps a script from the page until it is released, as a slow line would.
func (p *tab) hold(name string) (release func()) {
	p.t.Helper()
	asked := make(chan fetch.RequestID, 1)
	chromedp.ListenTarget(p.ctx, func(event any) {
		if e, ok := event.(*fetch.EventRequestPaused); ok {
			asked <- e.RequestID
		}
	})
	p.must(do(p.ctx, fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/" + name}}).Do))
	return func() {
		p.t.Helper()
		select {
		case id := <-asked:
			p.must(do(p.ctx, fetch.ContinueRequest(id).Do))
		case <-time.After(waitLimit):
			p.fail("%s was never asked for", name)
		}
	}
}

// TestLateCode: code that arrives after its place was drawn, and before the browser has shown it, replaces the place too.
func TestLateCode(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/settings")
	eval[any](p, fmt.Sprintf(`(async () => {
		const [{ html, render }, { lazy }] = await Promise.all(['view.js', 'parts/lazy.js'].map((name) => import('/console/%s/' + name)));
		const box = document.body.appendChild(document.createElement('div'));
		const Late = lazy(async () => () => html`+"`<b id=\"late\">it is there</b>`"+`, 1);
		Late.near.onPointerOver();
		render(html`+"`<${Late} />`"+`, box);
	})(), null`, c.build()))
	p.until("the code is shown", `document.querySelector('#late')?.innerText === 'it is there'`)
}

// TestKeysWhileFetching presses keys before the code that they are for is there: none may be lost, or go to the page behind.
func TestKeysWhileFetching(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/messages")
	release := p.hold("shell/palette_results.js")
	p.press("k", input.ModifierCtrl)
	p.until("the palette has the focus", `document.activeElement.matches('.palette input')`)
	p.press("a", input.ModifierCtrl) // the driver, unlike a keyboard, also types a key that was taken
	p.typed("webhooks")
	p.press(kb.Enter)
	release()
	p.until("the first that it finds is opened", `location.pathname === '/console/webhooks'`)

	p = c.open("/messages")
	release = p.hold("pages/messages_send.js")
	p.press("n")
	p.until("the dialog is open", `document.querySelector('dialog:modal')?.innerText.includes('Send a message')`)
	p.press("g")
	p.press("w")
	release()
	p.until("its form has the focus", `document.activeElement.matches('dialog textarea')`)
	if at := eval[string](p, `location.pathname`); at != "/console/messages" {
		t.Errorf("the keys led to %s", at)
	}
}
