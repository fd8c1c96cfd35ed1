package browsertest

import (
	"net"
	"net/http"
	"strings"
	"testing"

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
	c.Restart()
	p.live()
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
	eval[any](p, `document.cookie = 'theme=dark; Path=/console', document.cookie = 'lang=id; Path=/console', null`)
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
