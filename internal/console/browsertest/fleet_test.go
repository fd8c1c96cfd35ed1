package browsertest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestLabelsOfChannels gives labels to several channels, finds channels by them and edits those of one.
func TestLabelsOfChannels(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addChannels("shop-1", "shop-2", "shop-3")
	p := c.open("/channels?q=shop")
	p.click("checkbox", "Select shop-1")
	p.click("checkbox", "Select shop-2")
	p.click("button", "Labels")
	p.find("dialog", "Labels of 2 channels")
	p.click("button", "Save")
	p.see("Enter at least one label.")
	p.fill("Labels", "Big  City, trial")
	p.click("button", "Save")
	p.see("Finished 2 channels.")
	p.until("the rows show them", `document.querySelector('[data-key=shop-1] .labels')?.innerText.includes('big city')`)
	p.click("button", "Clear selection")
	p.choose("Filter by label", "big city")
	p.until("only those with it are there",
		`document.querySelectorAll('main tbody tr[data-key]').length === 2 && location.search.includes('label=big')`)
	p.accessible()

	p.visit("/channels/shop-1/settings")
	p.fill("Labels", "trial, a/b")
	p.allow("422")
	p.click("button", "Save")
	p.see("labels.1 must be 1 to 30 letters")
	p.fill("Labels", "trial, north")
	p.click("button", "Save")
	p.see("Saved")
	p.until("the header shows them", `document.querySelector('.channel-facts .labels').innerText.includes('north')`)
	got := c.Get("/api/manage/channels/shop-1", parleytest.As(c.Admin)).Expect(http.StatusOK)
	if got.Count("data.labels") != 2 || got.Text("data.labels.0") != "north" {
		t.Errorf("stored: %s", got.Body)
	}
}

// TestDeleteManyChannels deletes what is selected after the words were typed, although one of them fails.
func TestDeleteManyChannels(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addChannels("shop-1", "shop-2", "shop-3")
	p := c.open("/channels?q=shop")
	p.click("checkbox", "Select all")
	c.Delete("/api/manage/channels/shop-2", parleytest.As(c.Admin)).Expect(http.StatusAccepted)
	p.allow("404")
	p.click("button", "Delete")
	p.find("dialog", "Delete 3 channels?")
	if !on[bool](p, "dialog", "Delete 3 channels?", `function() { return this.querySelector('.button.danger').disabled; }`) {
		t.Error("they can be deleted before the words were typed")
	}
	p.fill("Type delete 3 channels to confirm", "delete 3 channels")
	p.press(kb.Enter)
	p.see("Finished 3 channels.")
	p.see("One failed.")
	c.Eventually("the others are deleted", func() bool {
		return c.Get("/api/manage/channels?search=shop", parleytest.As(c.Admin)).Expect(http.StatusOK).Number("meta.total") == 0
	})
	p.accessible()
}

// TestPickerByKeyboard picks a channel by a few letters, without a mouse, on a wide and on a small screen.
func TestPickerByKeyboard(t *testing.T) {
	t.Parallel()
	c := start(t)
	codes := make([]string, 60)
	for i := range codes {
		codes[i] = "cabang-" + string(rune('a'+i/10)) + string(rune('0'+i%10))
	}
	c.addChannels(codes...)
	p := c.open("/messages")
	for _, width := range []int64{1440, 390} {
		p.size(width, 800)
		p.visit("/messages")
		p.live()
		before := eval[float64](p, `document.querySelector('.picker').getBoundingClientRect().width`)
		p.focus(p.find("combobox", "Channel"))
		p.press(kb.ArrowDown)
		p.see("61 channels match. Type more to narrow it down.")
		p.accessible()
		p.fits("the open picker")
		p.typed("ng-c4")
		p.until("one is offered", `document.querySelectorAll('.picker [role=option]').length === 1`)
		p.see("One channel matches.")
		p.press(kb.Enter)
		p.until("it is picked", `location.search === '?channel=cabang-c4'`)
		p.until("its words are shown", `document.querySelector('.picker input').value.startsWith('cabang-c4')`)
		if after := eval[float64](p, `document.querySelector('.picker').getBoundingClientRect().width`); after != before {
			t.Errorf("at %d px the picker is %v px wide, and was %v", width, after, before)
		}
		p.press(kb.ArrowDown)
		p.find("option", "All channels")
		p.press(kb.Escape)
		p.lost("option", "All channels")
		p.press(kb.ArrowDown)
		p.find("option", "All channels")
		p.press(kb.Enter)
		p.until("none is picked", `!location.search`)
	}
}

// TestChannelOfForms chooses a channel in forms. Beside a real channel none is the default: what is meant for a customer must not
// end on a simulated phone, nor a trial on a real one.
func TestChannelOfForms(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	p := c.open("/messages?send=1")
	p.find("dialog", "Send a message")
	p.until("a sandbox channel is the default", `document.querySelector('dialog [role=combobox]').dataset.value === 'demo'`)
	c.Post("/api/manage/channels", `{"code":"a-real-one","network":"whatsapp"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	p.visit("/messages?send=1")
	p.until("none is chosen", `document.querySelector('dialog [role=combobox]')?.dataset.value === ''`)
	p.gone("This goes to a real phone.")
	p.focus(p.find("combobox", "Channel"))
	p.typed("toko")
	p.find("option", "toko…")
	p.press(kb.Enter)
	p.until("it is chosen", `document.querySelector('dialog [role=combobox]').dataset.value === 'toko'`)
	p.fill("Contact", "6281234567890")
	p.fill("Text", "halo")
	p.press(kb.Enter, input.ModifierCtrl)
	p.until("it is sent", `!document.querySelector('dialog[open]')`)
	c.Eventually("it is of that channel", func() bool {
		return c.Get("/api/manage/messages?channel=toko", parleytest.As(c.Admin)).Expect(http.StatusOK).Count("data") == 1
	})

	c.Delete("/api/manage/channels/toko", parleytest.As(c.Admin)).Expect(http.StatusAccepted)
	c.Delete("/api/manage/channels/demo", parleytest.As(c.Admin)).Expect(http.StatusAccepted)
	c.Post("/api/manage/channels", `{"code":"b-real-one","network":"whatsapp"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	p.visit("/tokens?new=1")
	p.until("none is chosen", `document.querySelector('dialog [role=combobox]')?.dataset.value === ''`)
	p.click("button", "Create token")
	p.see("Choose a channel.")
}

// TestTabsOfChannel: the messages and webhooks of a channel keep its header and its tabs.
func TestTabsOfChannel(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels/demo")
	click := func(tab string) {
		eval[any](p, `[...document.querySelectorAll('main [aria-label=Sections] a')]
			.find((a) => a.innerText.startsWith('`+tab+`')).click(), null`)
	}
	for _, tab := range []string{"Messages", "Webhooks"} {
		click(tab)
		p.until("the channel is above", `document.querySelector('[data-t=channel-head]')?.innerText.includes('Demo')`)
		p.until("its tab is the current one",
			`document.querySelector('main [aria-label=Sections] [aria-current]').innerText.startsWith('`+tab+`')`)
		p.accessible()
	}
	click("Settings")
	p.until("the channel's page is open", `location.pathname === '/console/channels/demo/settings'`)
	p.visit("/messages")
	p.live()
	p.until("no channel is picked", `!document.querySelector('[data-t=channel-head]')`)
}

// TestLookUpOfAnID is one request however many channels there are, also for a link.
func TestLookUpOfAnID(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addChannels("shop-1", "shop-2", "shop-3")
	id := c.say("text", ayu, `"message":"find me"`)
	c.Eventually("it is delivered", func() bool { // a new status would have it read again
		return c.Get("/api/manage/messages/"+url.PathEscape(id)+"?channel=demo", parleytest.As(c.Admin)).Text("data.status") == "DELIVERED"
	})
	p := c.open("/messages?q=" + url.QueryEscape("id:"+id))
	p.until("it is found", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
	asked := eval[[]string](p, `performance.getEntriesByType('resource').map((one) => one.name)
		.filter((name) => /manage\/(find|messages\/)/.test(name))`)
	if len(asked) != 1 || !strings.Contains(asked[0], "/manage/find?") {
		t.Errorf("asked for %v", asked)
	}
	bare := id[strings.LastIndexByte(id, '_')+1:]
	p.visit("/messages?open=" + bare)
	p.see("find me")
	p.until("the link names the channel", `location.search.includes('open=demo.')`)
}

// TestSearchOfTokens finds tokens by their names and opens one.
// TestKeysAtOnce presses Escape in the moment in which a drawer appears.
func TestKeysAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t).open("/tokens")
	p.until("the tokens are there", `document.querySelector('main tbody tr[data-key] .row-link') !== null`)
	eval[any](p, `new MutationObserver((_, observer) => {
		if (!document.querySelector('.drawer')) return;
		observer.disconnect();
		window.wasOpen = true;
		document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
	}).observe(document.body, { childList: true, subtree: true }), document.querySelector('main tbody tr[data-key] .row-link').click(), null`)
	p.until("it was open", `window.wasOpen === true`)
	p.until("it is closed", `document.querySelector('.drawer') === null`)
}

func TestSearchOfTokens(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, name := range []string{"Web shop", "Warehouse"} {
		c.Post("/api/manage/tokens", `{"kind":"channel","channel":"demo","name":"`+name+`"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	}
	p := c.open("/tokens")
	p.fill("Search tokens", "warehouse")
	p.until("one is left", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
	eval[any](p, `document.querySelector('main tbody tr[data-key] .row-link').click(), null`)
	p.until("it is open", `document.querySelector('.drawer, [role=dialog], aside')?.innerText.includes('Warehouse')`)
	p.press(kb.Escape)
	p.fill("Search tokens", "nothing")
	p.see("No token matches.")
	p.click("button", "Clear the filter")
	p.until("all are there", `document.querySelectorAll('main tbody tr[data-key]').length > 1`)
}
