package browsertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"parley"
	"parley/internal/app"
	"parley/internal/store"
)

// cookies lists the cookies that the browser keeps for a page, by name.
func cookies(p *tab) map[string]*network.Cookie {
	p.t.Helper()
	kept := map[string]*network.Cookie{}
	p.must(do(p.ctx, func(ctx context.Context) error {
		all, err := network.GetCookies().Do(ctx)
		for _, c := range all {
			kept[c.Name] = c
		}
		return err
	}))
	return kept
}

// TestSignInByLink opens a link, at both names of this machine, and looks at what the browser keeps.
func TestSignInByLink(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "localhost"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			p := c.blank()
			link := strings.Replace(c.link(), "127.0.0.1", host, 1)
			p.visit(link)
			p.live()
			if at := eval[string](p, `location.pathname + location.hash`); at != "/console/" {
				t.Errorf("it led to %s", at)
			}
			kept := cookies(p)["__Host-parley"]
			if kept == nil || !kept.Secure || !kept.HTTPOnly || kept.SameSite != network.CookieSameSiteStrict || kept.Path != "/" {
				t.Errorf("the browser keeps %+v", kept)
			}
			if eval[string](p, `document.cookie`) != "" {
				t.Error("scripts can read the cookie")
			}
			if eval[bool](p, `performance.getEntriesByType('navigation').some((n) => n.name.includes('#'))`) {
				t.Error("the page's history contains the secret")
			}

			// The same link a second time, in another browser.
			other := newPage(t, c.URL, newTab(t, nil))
			other.allow("409")
			other.visit(link)
			other.see("used")
			if at := eval[string](other, `location.pathname + location.hash`); at != "/console/login" {
				t.Errorf("it is at %s", at)
			}
		})
	}
}

// TestForeignLinkAsks opens the link of somebody else while signed in, in every language. Cancel has the focus and leaves the
// own session as it is; only agreeing changes who is signed in.
func TestForeignLinkAsks(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	p.allow("409")
	secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), 15*time.Minute)
	ticket.Name, ticket.Role = "<b>Mallory</b>", parley.Viewer
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
	})
	who := func() string {
		return eval[string](p, `fetch('/console/api/manage/me').then((r) => r.json()).then((a) => a.data.name + ',' + a.data.role)`)
	}
	before := who()
	questions := map[string]string{"id": "Ganti masuk sebagai", "pt-BR": "em vez disso?", "en": "Sign in as <b>Mallory</b> ("}
	for _, language := range []string{"id", "pt-BR", "en"} { // English last: it stays
		question := questions[language]
		p.must(do(p.ctx, func(ctx context.Context) error {
			return network.SetCookie("lang", language).WithURL(c.URL).WithPath("/console").Do(ctx)
		}))
		p.visit("/login#" + secret)
		p.see(question)
		p.fits("the question in " + language)
		p.accessible()
		p.press("\r") // Cancel has the focus
		p.live()
		if at := eval[string](p, `location.pathname + location.hash`); at != "/console/" || who() != before {
			t.Fatalf("%s: cancelled, it is at %s as %s", language, at, who())
		}
	}
	p.visit("/login#" + secret)
	p.find("button", "Cancel")
	eval[any](p, `[...document.querySelectorAll('dialog button')].pop().click(), null`)
	p.live()
	if got := who(); got != "<b>Mallory</b>,viewer" {
		t.Errorf("agreed, signed in as %s", got)
	}
}

func TestExpiredLink(t *testing.T) {
	t.Parallel()
	c := start(t)
	secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now().Add(-time.Hour), 15*time.Minute)
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
	})
	p := c.blank()
	p.allow("401")
	p.visit("/login#" + secret)
	p.see("15 minutes")
	p.see("inside it")
	p.see("parley open")
	p.accessible()
}

// TestSignInLeadsBack opens a page without being signed in, pastes a link, and comes to that page.
func TestSignInLeadsBack(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.blank()
	p.visit("/tokens?open=x")
	p.see("parley open")
	p.accessible()
	field := p.findAny([]string{"textbox"}, "")
	p.focus(field)
	p.typed(c.link())
	p.press("\r")
	p.live()
	if at := eval[string](p, `location.pathname + location.search`); at != "/console/tokens?open=x" {
		t.Errorf("it led to %s", at)
	}
}

// TestCookieIsForTheConsoleAlone asks with the cookie where only tokens count, and from another page.
func TestCookieIsForTheConsoleAlone(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	p.allow("401")
	for path, want := range map[string]int{"/console/api/manage/channels": 200, "/api/manage/channels": 401, "/api/manage/events": 401} {
		if got := eval[int](p, `fetch(`+quote(path)+`).then((r) => r.status)`); got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}

	// Another program on this machine is of the same site: browsers send it the cookie's requests. Its
	// pages must get nothing, and change nothing.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<!doctype html><title>Elsewhere</title>"))
	}))
	t.Cleanup(elsewhere.Close)
	other := c.blank()
	other.allow("403")
	other.allow("CORS")
	other.allow("ERR_FAILED")
	other.visit(elsewhere.URL)
	for _, ask := range []string{
		`fetch('URL/console/api/manage/channels', {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"code":"stolen",` +
			`"network":"sandbox"}'})`,
		`fetch('URL/console/api/manage/channels', {method: 'POST', credentials: 'include', body: '{"code":"stolen","network":"sandbox"}'})`,
		`fetch('URL/console/session', {method: 'DELETE', mode: 'cors', credentials: 'include'})`,
		`fetch('URL/console/api/manage/tokens', {credentials: 'include'})`,
		`fetch('URL/console/events', {credentials: 'include'})`,
	} {
		got := eval[string](other, strings.ReplaceAll(ask, "URL", c.URL)+`.then((r) => r.text(), () => '')`)
		if strings.Contains(got, "success") || strings.Contains(got, "events follow") {
			t.Errorf("%s got %q", ask, got)
		}
	}
	if got := eval[int](p, `fetch('/console/api/manage/channels/stolen').then((r) => r.status)`); got != http.StatusNotFound {
		t.Errorf("the channel that another page asked for: %d", got)
	}
	p.allow("404")
	if got := eval[int](p, `fetch('/console/api/manage/channels').then((r) => r.status)`); got != http.StatusOK {
		t.Errorf("another page signed us out: %d", got)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	second := c.open("/tokens")
	for _, page := range []*tab{p, second} {
		page.allow("401")
	}
	if got := eval[int](p, `fetch('/console/session', {method: 'DELETE'}).then((r) => r.status)`); got != http.StatusOK {
		t.Fatalf("answer %d", got)
	}
	if kept := cookies(p)["__Host-parley"]; kept != nil {
		t.Errorf("the browser still keeps %+v", kept)
	}
	// The stream ends with the session, and with it every tab knows.
	second.see("parley open")
	if at := eval[string](second, `location.pathname`); at != "/console/login" {
		t.Errorf("the other tab is at %s", at)
	}
}

// TestSignInAgain signs out and in again while another tab is open, with which it shares the stream.
func TestSignInAgain(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, other := c.open("/"), c.open("/tokens")
	for _, page := range []*tab{p, other} {
		page.allow("401")
	}
	eval[any](p, `fetch('/console/session', {method: 'DELETE'}).then(() => null)`)
	p.see("parley open")
	other.see("parley open")
	p.visit(c.link())
	p.live()
	if at := eval[string](p, `location.pathname`); at != "/console/" {
		t.Errorf("it led to %s", at)
	}
	// The other tab is signed in too, once it is loaded again.
	other.visit("/tokens")
	other.live()
	if at := eval[string](other, `location.pathname`); at != "/console/tokens" {
		t.Errorf("the other tab is at %s", at)
	}
}

// TestLinkOverTheSignInPage opens links in a tab that shows the sign-in page already: only the fragment of
// the address changes.
func TestLinkOverTheSignInPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.blank()
	p.allow("401")
	p.visit("/login")
	p.see("parley open")
	eval[any](p, `location.assign('#nothing-of-ours'), null`)
	p.see("This sign-in link does not belong to this server.")
	if hash := eval[string](p, `location.hash`); hash != "" {
		t.Errorf("the address still has %s", hash)
	}
	eval[any](p, `location.assign(`+quote(c.link())+`), null`)
	p.live()
	if at := eval[string](p, `location.pathname + location.hash`); at != "/console/" {
		t.Errorf("it led to %s", at)
	}
}
