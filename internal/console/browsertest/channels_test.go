package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// rows are the keys of the rows that a table shows, from the top.
func (p *tab) rows() []string {
	p.t.Helper()
	return eval[[]string](p, `[...document.querySelectorAll('main tbody tr[data-key]')].map((row) => row.dataset.key)`)
}

// choose picks from a list by its value.
func (p *tab) choose(label, value string) {
	p.t.Helper()
	on[bool](p, "combobox", label,
		`function() { this.value = `+quote(value)+`; return this.dispatchEvent(new Event('change', { bubbles: true })); }`)
}

// addChannels stores channels that do not run, as another process would.
func (c *console) addChannels(codes ...string) {
	c.t.Helper()
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error {
			for _, code := range codes {
				channel := parley.Channel{Code: parley.ChannelCode(code), Network: parley.Sandbox}
				channel.Begin(time.Now())
				channel.Enabled = false
				if err := tx.AddChannel(ctx, channel); err != nil {
					return err
				}
			}
			return nil
		})
	})
	c.Restart() // the server owns its database: it reads all channels when it starts
	c.Eventually("they are known", func() bool {
		list := c.Get("/api/manage/channels?limit=1", parleytest.As(c.Admin)).Expect(http.StatusOK)
		return list.Number("meta.total") > len(codes)
	})
}

// makeChannel makes a sandbox channel and waits until it works.
func (c *console) makeChannel(fields string) {
	c.t.Helper()
	made := c.Post("/api/manage/channels", `{"network":"sandbox",`+fields+`}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	c.Becomes(made.Text("data.code"), parley.ChannelWorking)
}

func TestChannelsByNeed(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko","name":"Toko Ayu"`)
	c.makeChannel(`"code":"kasir"`)
	c.Post("/api/manage/channels/kasir/stop", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p := c.open("/channels")
	p.see("2 of 3 channels work. None needs attention.")
	p.find("button", "working 2")
	if got := p.rows(); !slices.Equal(got, []string{"demo", "toko", "kasir"}) {
		t.Errorf("the order is %v", got)
	}

	// A channel that needs attention is reported, counted and sorted first, unless the reader uses the table.
	p.must(chromedp.Run(p.ctx, chromedp.MouseEvent("mouseMoved", 640, 10)))
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p.see("One channel needs attention.")
	p.find("button", "logged out 1")
	p.until("it comes first", `document.querySelector('main tbody tr[data-key]').dataset.key === 'toko'`)
	p.until("it says why, in a row as high as the others", `(() => { const [toko, demo] = document.querySelectorAll('main tbody tr[data-key]');
		return toko.innerText.includes('The account was logged out') && toko.offsetHeight === demo.offsetHeight; })()`)
	p.accessible()

	// Filters are in the address.
	p.click("button", "stopped 1")
	p.until("only that one is there",
		`document.querySelectorAll('main tbody tr[data-key]').length === 1 && location.search === '?status=STOPPED'`)
	p.fill("Search channels", "ayu")
	p.see("No channel matches.")
	p.click("button", "Clear filter")
	p.until("all are there again", `document.querySelectorAll('main tbody tr[data-key]').length === 3 && !location.search`)
	p.visit("/channels?q=Toko")
	p.live()
	p.until("the search is in the address", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
}

// TestChannelsDoNotJump holds that a row stays under the pointer when a status changes.
func TestChannelsDoNotJump(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	p := c.open("/channels")
	p.find("row", "")
	p.must(chromedp.Run(p.ctx, chromedp.MouseEvent("mouseMoved", 700, 300)))
	over := eval[bool](p, `(() => { const box = document.querySelector('.table-box').getBoundingClientRect(); return box.top < 300 && `+
		`box.bottom > 300; })()`)
	if !over {
		p.must(chromedp.Run(p.ctx, chromedp.MouseEvent("mouseMoved", 700,
			float64(eval[int](p, `Math.round(document.querySelector('.table-box').getBoundingClientRect().top + 20)`)))))
	}
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p.find("button", "logged out 1")
	if got := p.rows(); !slices.Equal(got, []string{"demo", "toko"}) {
		t.Errorf("the rows moved: %v", got)
	}
	p.click("button", "Sort again")
	p.until("it comes first", `document.querySelector('main tbody tr[data-key]').dataset.key === 'toko'`)
}

func TestThousandChannels(t *testing.T) {
	t.Parallel()
	c := start(t)
	codes := make([]string, 1000)
	for i := range codes {
		codes[i] = fmt.Sprintf("shop-%04d", i)
	}
	c.addChannels(codes...)
	p := c.open("/channels")
	p.find("button", "stopped 1,000")
	p.find("button", "All 1,001")
	p.until("the first page is there", `document.querySelectorAll('main tbody tr[data-key]').length === 50`)
	if n := eval[int](p, `document.querySelectorAll('*').length`); n > 3000 {
		t.Errorf("the page has %d elements", n)
	}
	p.see("50 of 1,001")
	p.accessible()
	p.click("button", "Next")
	p.until("the second page is there", `document.querySelector('[data-key=shop-0050]') && location.search.startsWith('?cursor=')`)
	p.click("button", "Previous")
	p.until("the first page is there again", `document.querySelector('[data-key=demo]') && !location.search`)
	p.click("button", "Code")
	p.until("the server sorts", `document.querySelectorAll('main tbody tr[data-key]')[49]?.dataset.key === 'shop-0048'`)
	p.click("button", "Code")
	p.until("backwards", `document.querySelector('main tbody tr[data-key]').dataset.key === 'shop-0999'`)

	// All that match are selected, not only those on this page.
	p.fill("Search channels", "shop-09")
	p.find("button", "stopped 100")
	p.click("checkbox", "Select all")
	p.see("50 selected")
	p.click("button", "Select all 100")
	p.see("100 selected")
	p.click("button", "Clear selection")

	// By keyboard alone: search, walk, open.
	p.press("/")
	p.until("the search has the focus", `document.activeElement.matches('[data-search]')`)
	p.fill("Search channels", "shop-0500")
	p.until("one row is left", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
	eval[any](p, `document.activeElement.blur(), null`) // Escape would empty the field
	p.press("j")
	p.until("the row has the focus", `document.activeElement.dataset.key === 'shop-0500'`)
	p.press(kb.Enter)
	p.until("its page is open", `location.pathname === '/console/channels/shop-0500'`)
	p.find("heading", "shop-0500")
}

// TestManyChannels starts and stops some at once: how far it is, and what became of each.
func TestManyChannels(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addChannels("shop-1", "shop-2", "shop-3", "shop-4", "shop-5")
	p := c.open("/channels?q=shop")
	p.click("checkbox", "Select all")
	p.see("5 selected")
	// One of them is gone by the time it is asked to start.
	c.Delete("/api/manage/channels/shop-3", parleytest.As(c.Admin)).Expect(http.StatusAccepted)
	p.allow("404")
	p.click("button", "Start")
	p.see("Finished 5 channels.")
	p.see("One failed.")
	eval[any](p, `document.querySelector('.bulk-failed summary').click(), null`)
	p.until("it says which one", `document.querySelector('.bulk-failed li').innerText.startsWith('shop-3 ')`)
	for _, code := range []string{"shop-1", "shop-5"} {
		c.Becomes(code, parley.ChannelWorking)
	}
	p.accessible()
	p.click("button", "Clear selection")
	p.until("the strip is gone", `!document.querySelector('[data-t=bulk]')`)

	p.click("checkbox", "Select shop-1")
	p.click("button", "Stop")
	p.see("Stop one channel?")
	p.click("button", "Stop") // that of the dialog: the rest of the page is out of reach
	p.see("Finished one channel.")
	c.Becomes("shop-1", parley.ChannelStopped)
}

func TestCreateChannel(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels")
	p.find("row", "")
	p.rest()
	p.press("n")
	p.find("dialog", "New channel")
	p.fill("Code", "Toko Ayu")
	p.allow("422")
	p.press(kb.Enter)
	p.see("code must be 1 to 32 lower-case letters")
	p.accessible()
	p.fill("Code", "toko")
	p.fill("Name", `<img src=x onerror="alert(1)">`)
	p.click("button", "Create channel")
	p.until("its page is open", `location.pathname === '/console/channels/toko' && !location.search`)
	p.find("heading", `<img src=x onerror="alert(1)">`)
	c.Becomes("toko", parley.ChannelWorking)
	p.see("Working since")

	p.visit("/channels?new=whatsapp")
	p.fill("Code", "nyata")
	p.click("button", "Create channel")
	p.until("it is to be paired", `location.pathname === '/console/channels/nyata/pair'`)
	p.see("No WhatsApp account is linked yet.")
}

func TestChannelOverTime(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels/demo")
	p.see("Working since")
	p.see("Last confirmation")
	p.click("button", "Stop")
	p.see("Stop demo?")
	p.click("button", "Stop")
	p.see("Stopped since")
	p.until("the list tells it", `document.querySelector('.history li').innerText.includes('stopped')`)
	p.click("button", "Start")
	p.until("it works again", `document.querySelector('.history li').innerText.includes('working')`)
	if n := eval[int](p, `document.querySelectorAll('.timeline .span').length`); n < 3 {
		t.Errorf("the bar has %d parts", n)
	}
	p.click("button", "7 days")
	p.until("the period is in the address", `location.search === '?days=7' && document.querySelectorAll('.timeline .span').length >= 3`)
	p.accessible()

	p.allow("404")
	p.visit("/channels/nobody")
	p.see("There is no channel nobody.")
}

func TestChannelSettings(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels/demo/settings")
	p.fill("Name", "Toko Ayu")
	p.fill("Seconds between two sends", "1,5")
	p.fill("Give up after (hours)", "2")
	p.choose("Message retention", "2592000")
	p.click("checkbox", "Reject phone calls")
	p.fill("Text to the caller", "Please write to us.")
	p.click("radio", "Only these numbers")
	p.click("button", "Save")
	p.see("Enter at least one number, or choose everybody.") // an empty list would mean everybody
	p.fill("Numbers", "+62 812-3456-7890\n6281290004711")
	eval[any](p, `document.querySelectorAll('main form .button')[1].click(), null`) // "As code" of the form
	p.see("6281234567890@c.us")
	p.press(kb.Escape)
	p.click("button", "Save")
	p.see("Saved")
	p.find("heading", "Toko Ayu")
	got := c.Get("/api/manage/channels/demo", parleytest.As(c.Admin)).Expect(http.StatusOK)
	for path, want := range map[string]string{
		"data.name": "Toko Ayu", "data.settings.pace": "1.5s", "data.settings.ttl": "2h", "data.settings.retention": "720h",
		"data.settings.calls.text":   "Please write to us.",
		"data.settings.allow_only.0": "6281234567890@c.us", "data.settings.allow_only.1": "6281290004711@c.us",
	} {
		if got.Text(path) != want {
			t.Errorf("%s is %q, want %q", path, got.Text(path), want)
		}
	}
	p.allow("422")
	p.fill("Seconds between two sends", "soon")
	p.click("button", "Save")
	p.see("settings.pace must be a duration")
	p.accessible()
}

// TestChannelProxy keeps the credentials of a proxy when other settings are saved. Empty, it is removed.
func TestChannelProxy(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/manage/channels", `{"code":"toko","network":"whatsapp","settings":{"proxy":"socks5://ayu:secret@proxy.example.com:1080"}}`,
		parleytest.As(c.Admin)).Expect(http.StatusCreated)
	proxy := func() string {
		return c.Get("/api/manage/channels/toko", parleytest.As(c.Admin)).Expect(http.StatusOK).Text("data.settings.proxy")
	}
	p := c.open("/channels/toko/settings")
	p.fill("Give up after (hours)", "2")
	p.click("button", "Save")
	p.see("Saved")
	if got := proxy(); got != "socks5://***@proxy.example.com:1080" {
		t.Errorf("the proxy is %q", got)
	}
	p.accessible()
	p.fill("Proxy", "")
	p.click("button", "Save")
	p.until("it is removed", `document.querySelector('[name="settings.proxy"]').value === ''`)
	c.Eventually("it is removed", func() bool { return proxy() == "" })
}

func TestDeleteChannel(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	p := c.open("/channels/toko/danger")
	p.click("button", "Delete channel")
	p.find("dialog", "Delete channel")
	if !on[bool](p, "dialog", "Delete channel", `function() { return this.querySelector('.button.danger').disabled; }`) {
		t.Error("it can be deleted before its code was typed")
	}
	p.fill("Type toko to confirm", "toko")
	p.press(kb.Enter)
	p.see("Channel toko was deleted")
	p.until("the list is open without it", `location.pathname === '/console/channels' && !document.querySelector('[data-key=toko]')`)
	if answer := c.Get("/api/manage/channels/toko", parleytest.As(c.Admin)); answer.Status != http.StatusNotFound {
		t.Errorf("it is still there: %s", strings.TrimSpace(string(answer.Body)))
	}
}
