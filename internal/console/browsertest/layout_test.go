package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// size gives the page another size.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.must(do(p.ctx, func(ctx context.Context) error {
		return emulation.SetDeviceMetricsOverride(width, height, 1, width < 600).Do(ctx)
	}))
}

// prefer sets a cookie as a page does. One that a page sets may reach the network after a navigation that begins later.
func (p *tab) prefer(name, value string) {
	p.t.Helper()
	p.must(do(p.ctx, network.SetCookie(name, value).WithURL(p.url).WithPath("/console").WithSameSite(network.CookieSameSiteStrict).Do))
}

// speak opens a page in a language.
func (p *tab) speak(language, path string) {
	p.t.Helper()
	p.prefer("lang", language)
	p.visit(path)
	p.live()
	p.rest()
}

// fits holds that nothing is wider than the screen.
func (p *tab) fits(what string) {
	p.t.Helper()
	if wide := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		p.t.Errorf("%s: the page is %d px wider than the screen", what, wide)
	}
}

// TestNothingIsTooWide holds the lists on every size of screen, with the longest that people write.
func TestNothingIsTooWide(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	long := "cabang-surabaya-timur-1234567890"
	c.Post("/api/manage/channels", `{"code":"`+long+`","name":"`+strings.Repeat("Toko Ayu ", 6)+`","network":"sandbox"}`, admin).
		Expect(http.StatusCreated)
	c.Post("/api/manage/channels/"+long+"/logout", "", admin).Expect(http.StatusOK)
	c.Post("/api/manage/tokens", `{"kind":"channel","channel":"`+long+`","name":"`+strings.Repeat("enterprise resource planning ", 3)+`"}`,
		admin).Expect(http.StatusCreated)
	c.addWebhook(newReceiver(t, 500).URL + "/" + strings.Repeat("long/", 30))
	c.Phone(ayu).Types("hello")
	c.Eventually("the webhook fails", func() bool {
		return c.Get("/api/manage/webhooks", admin).Expect(http.StatusOK).Number("data.0.failures") > 0
	})
	p := c.open("/")
	for language, widths := range map[string][]int64{"en": {1440, 1280, 1024, 768, 320}, "id": {768, 360}, "pt-BR": {768, 360}} {
		for _, width := range widths {
			p.size(width, 800)
			for _, path := range []string{"/", "/channels", "/tokens", "/webhooks", "/webhooks/deliveries", "/channels/" + long} {
				p.speak(language, path)
				p.fits(fmt.Sprintf("%s at %d px in %s", path, width, language))
				if path == "/channels" && width >= 720 {
					if high := eval[int](p, `document.querySelector('thead').offsetHeight`); high > 50 {
						t.Errorf("at %d px in %s the heads of the columns have three lines", width, language)
					}
				}
			}
		}
	}

	p.size(1440, 800)
	p.speak("en", "/channels")
	if room := eval[float64](p, `document.querySelector('[data-key='+`+quote(long)+`+'] .channel-code .clip').clientWidth / 7.3`); room < 18 {
		t.Errorf("only %.0f letters of a code are seen", room)
	}

	// In a hand what needs attention has the whole line, and its button the next one.
	p.size(360, 740)
	p.speak("en", "/")
	below := eval[bool](p, `[...document.querySelectorAll('.needs li')].every((li) => {
		const [text, button] = ['.grow', '.button'].map((part) => li.querySelector(part).getBoundingClientRect());
		return button.top >= text.bottom && text.width > 240;
	})`)
	if !below {
		t.Error("the button is not beside its text")
	}
	// The band that says what is real is not covered.
	p.visit("/tokens")
	p.live()
	p.rest()
	p.openRow(1)
	p.find("dialog", "")
	if top := eval[float64](p,
		`document.querySelector('.drawer').getBoundingClientRect().top - `+
			`document.querySelector('.band').getBoundingClientRect().bottom`); top < 0 {
		t.Errorf("the drawer covers %v px of the band", -top)
	}
	// Copying covers nothing of what is copied.
	p.press(kb.Escape)
	p.click("button", "As code")
	p.until("the code is there", `document.querySelector('dialog .code > pre')`) // it is fetched when it opens
	apart := eval[bool](p, `(() => { const [pre, copy] = ['pre', '.icon-button'].map((part) => document.querySelector(`+"`dialog .code > "+
		"${part}`"+`).getBoundingClientRect()); return pre.right <= copy.left; })()`)
	if !apart {
		t.Error("the copy button lies over the code")
	}
}

// TestNothingToScroll holds that a page that fits does not scroll.
func TestNothingToScroll(t *testing.T) {
	t.Parallel()
	p := start(t).open("/webhooks")
	if more := eval[int](p, `document.documentElement.scrollHeight - innerHeight`); more > 0 {
		t.Errorf("it scrolls by %d px", more)
	}
}

// TestSelectingMovesNothing holds that ticking a row leaves it under the pointer, and that a click that misses the
// box by a little does not open the channel.
func TestSelectingMovesNothing(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	p := c.open("/channels")
	top := func() float64 {
		return eval[float64](p, `document.querySelector('[data-key=toko]').getBoundingClientRect().top`)
	}
	for _, width := range []int64{1280, 360} {
		p.size(width, 800)
		p.visit("/channels")
		p.live()
		p.find("checkbox", "Select toko")
		p.rest()
		box := eval[[]float64](p,
			`(() => { const { x, y, width, height } = document.querySelector('[data-key=toko] .pick label').getBoundingClientRect(); return [x, `+
				`y, width, height]; })()`)
		if box[2] < 24 || box[3] < 24 {
			t.Errorf("at %d px the target is %v px wide and %v px high", width, box[2], box[3])
		}
		before := top()
		p.must(chromedp.Run(p.ctx, chromedp.MouseClickXY(box[0]+2, box[1]+2)))
		p.see("One selected")
		if after := top(); after != before {
			t.Errorf("at %d px the row moved from %v to %v", width, before, after)
		}
		if at := eval[string](p, `location.pathname`); at != "/console/channels" {
			t.Errorf("it opened %s", at)
		}
		p.accessible()
	}
}

// TestFocusOfQuestions holds where the focus begins: at what is to be typed, else at what does nothing.
func TestFocusOfQuestions(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels/demo/danger")
	p.click("button", "Delete channel")
	p.until("the word can be typed", `document.activeElement.matches('dialog input')`)
	p.press(kb.Escape)
	p.click("button", "Stop")
	p.until("nothing is done by Enter", `document.activeElement.matches('dialog .button') && document.activeElement.innerText === 'Cancel'`)
	p.press(kb.Enter)
	p.lost("dialog", "Stop demo?")
	p.click("button", "Go live")
	p.until("numbers can be typed", `document.activeElement.matches('dialog textarea')`)
}

// TestAddressesWithin holds that an address below a page leads somewhere or says that it does not.
func TestAddressesWithin(t *testing.T) {
	t.Parallel()
	p := start(t).open("/channels/demo/xyz")
	p.see("Page not found")
	p.visit("/webhooks/whk_nosuch")
	p.see("Page not found")
	p.visit("/channels/demo/messages")
	p.until("its messages are shown", `location.pathname + location.search === '/console/messages?channel=demo'`)
	p.visit("/channels/demo/webhooks")
	p.until("its webhooks are shown", `location.pathname + location.search === '/console/webhooks?channel=demo'`)
	p.find("heading", "Webhooks")
}

// TestAgo holds that lengths of time are written with the same symbols everywhere, and end a sentence well.
func TestAgo(t *testing.T) {
	t.Parallel()
	p := start(t).open("/channels/demo")
	for language, want := range map[string]string{"en": `· \d+ (s|min) ago\.`, "id": `· \d+ (s|mnt) yang lalu\.`,
		"pt-BR": `· há \d+ (s|min)\.(\s|$)`} {
		p.speak(language, "/channels/demo")
		p.until("it is said since when, in "+language, `/`+want+`/.test(document.querySelector('.lead').innerText)`)
	}
}

// TestLastUseInHand holds that a card says what its time is of.
func TestLastUseInHand(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.AddToken(ctx, parley.Token{ID: parley.NewTokenID(), Name: "CI", Kind: parley.GlobalToken, CreatedAt: time.Now()})
		})
	})
	p := c.open("/tokens")
	p.size(360, 740)
	p.see("Last used never")
	p.accessible()
}

// TestFocusIsNotBehindTheBars moves the focus over pages in a hand: what has it must be seen, and not be hidden
// by the bars at the top and the bottom.
func TestFocusIsNotBehindTheBars(t *testing.T) {
	t.Parallel()
	p := startPairer(t).on(screen{"low", "light", 390, 520, 2})
	for _, path := range []string{"/channels/toko/pair", "/channels/toko", "/settings"} {
		p.visit(path)
		p.live()
		p.rest()
		for _, from := range []string{"0", "document.body.scrollHeight"} {
			hidden := eval[[]string](p, `(() => {
				const hidden = [];
				for (const e of document.querySelectorAll('main a[href], main button, main input, main select, main textarea')) {
					scrollTo(0, `+from+`);
					e.focus();
					if (document.activeElement !== e) continue; // it cannot have the focus
					const { x, y, width, height } = e.getClientRects()[0];
					const front = document.elementFromPoint(x + width / 2, y + height / 2);
					if (front?.closest('.top, .band, .bottom-bar')) hidden.push(e.outerHTML.slice(0, 80));
				}
				return hidden;
			})()`)
			if len(hidden) > 0 {
				t.Errorf("%s, from %s: behind a bar are %q", path, from, hidden)
			}
		}
	}
}
