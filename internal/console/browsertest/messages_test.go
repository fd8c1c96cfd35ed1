package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// away moves the pointer off the list, which does not move under it.
func (p *tab) away() {
	p.t.Helper()
	p.must(chromedp.Run(p.ctx, chromedp.MouseEvent("mouseMoved", 640, 10)))
}

// space presses the space bar as a keyboard does: where the key is taken, it does not also scroll.
func (p *tab) space() {
	p.t.Helper()
	p.must(do(p.ctx, func(ctx context.Context) error {
		if err := input.DispatchKeyEvent(input.KeyRawDown).WithKey(" ").WithCode("Space").WithWindowsVirtualKeyCode(32).Do(ctx); err != nil {
			return err
		}
		return input.DispatchKeyEvent(input.KeyUp).WithKey(" ").WithCode("Space").WithWindowsVirtualKeyCode(32).Do(ctx)
	}))
}

// openRow walks down to a row of the list by keyboard, and opens it.
func (p *tab) openRow(n int) {
	p.t.Helper()
	for i := range n {
		p.press("j")
		p.until(fmt.Sprintf("row %d has the focus", i+1), fmt.Sprintf(`document.activeElement.matches('main tbody tr[aria-rowindex="%d"]')`, i+2))
	}
	p.press(kb.Enter)
}

// hasRows waits until a table shows so many rows, drawn or not.
func (p *tab) hasRows(n int) {
	p.t.Helper()
	p.until(fmt.Sprintf("there are %d rows", n), fmt.Sprintf(`document.querySelector('main .table')?.getAttribute('aria-rowcount') === '%d'`,
		n+1))
}

// noteTicks has the page note when it first shows a message with a status.
const noteTicks = `(() => {
	window.seen = {};
	const look = () => { for (const row of document.querySelectorAll('main tbody tr[data-key]')) {
		window.seen[row.dataset.key + ' ' + row.querySelector('[data-status]')?.dataset.status] ??= Date.now();
	} };
	const all = { subtree: true, childList: true, attributes: true, characterData: true };
	new MutationObserver(look).observe(document.querySelector('main'), all);
	return null;
})()`

// TestTicks holds that a tick changes on the screen by itself when a message is delivered and read. It logs how
// long that took.
func TestTicks(t *testing.T) {
	c := start(t)
	p := c.open("/messages")
	p.see("Nothing sent in the last 24 hours.")
	p.see(c.URL + "/api/send-message/text") // the command that sends one
	p.accessible()
	p.away()
	eval[any](p, noteTicks)

	var took []time.Duration
	for i := range 5 {
		id := c.say("text", ayu, fmt.Sprintf(`"message":"Pesanan %d"`, i))
		p.until("it is delivered", `window.seen[`+quote("demo."+id+" DELIVERED")+`]`)
		c.Phone(ayu).Reads()
		p.until("it is read", `window.seen[`+quote("demo."+id+" READ")+`]`)
		seen := eval[int64](p, `window.seen[`+quote("demo."+id+" READ")+`]`)
		detail := c.Get("/api/manage/messages/"+url.PathEscape(id)+"?channel=demo", parleytest.As(c.Admin)).Expect(http.StatusOK)
		last := fmt.Sprintf("data.timeline.%d.", detail.Count("data.timeline")-1)
		at, err := time.Parse(time.RFC3339, detail.Text(last+"at"))
		if err != nil || detail.Text(last+"status") != "READ" {
			t.Fatalf("the detail ends with %s (%v)", detail.Text(last+"status"), err)
		}
		took = append(took, time.UnixMilli(seen).Sub(at))
	}
	t.Logf("ticks are seen after %v", took)
	p.hasRows(5)
	p.see("None of the latest 5 messages failed.")
}

// TestBurst checks that a burst of events does not disturb typing, and that none is lost.
func TestBurst(t *testing.T) {
	t.Parallel()
	const messages = 700 // each is sent, delivered and read
	c := start(t)
	p := c.open("/messages?q=promo")
	p.see("No message matches promo.")
	p.away()
	p.focus(p.findAny(inputs, "Filter messages"))
	p.press(kb.End)
	var senders sync.WaitGroup
	for worker := range 7 {
		senders.Go(func() {
			for i := range messages / 7 {
				_, err := c.TryCall("POST", "/api/send-message/text", fmt.Sprintf(`{"contact_id":"%s@c.us","message":"promo %d-%d"}`, ayu, worker, i),
					parleytest.With("Prefer", "respond-async"))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Blanks at the end change nothing of what is looked for, so the list goes on.
	typed := "promo"
	for range 20 {
		p.typed(" ")
		typed += " "
	}
	senders.Wait()
	p.hasRows(messages)
	c.Eventually("all are on the phone", func() bool {
		return c.Get("/api/manage/overview", parleytest.As(c.Admin)).Number("data.last24h.delivered") == messages
	})
	c.Phone(ayu).Reads()
	p.typed("7")
	typed += "7"
	if got := eval[string](p, `document.activeElement.value`); got != typed {
		t.Errorf("the field with the focus has %q, want %q", got, typed)
	}
	p.press(kb.Backspace)
	p.until("the newest is read", `document.querySelector('main tbody tr[data-key] [data-status]').dataset.status === 'READ'`)
	if got := eval[string](p, `document.activeElement.value`); got != typed[:len(typed)-1] {
		t.Errorf("afterwards the field with the focus has %q", got)
	}
	if drawn := len(p.rows()); drawn > 120 {
		t.Errorf("%d rows are drawn at once", drawn)
	}
	eval[any](p, `scrollTo(0, document.documentElement.scrollHeight), null`)
	p.until("the last row is drawn", `document.querySelector('main tbody tr[aria-rowindex="701"]')`)
}

// TestNothingJumps holds that new messages wait while somebody reads.
func TestNothingJumps(t *testing.T) {
	t.Parallel()
	c := start(t)
	for i := range 30 {
		c.say("text", ayu, fmt.Sprintf(`"message":"Pesan %d"`, i))
	}
	p := c.open("/messages")
	p.hasRows(30)
	p.away()

	// Paused by a key, and on again.
	p.space()
	p.find("button", "Resume")
	first := p.rows()[0]
	c.say("text", budi, `"message":"satu"`)
	c.say("text", budi, `"message":"dua"`)
	p.find("button", "2 new")
	if p.rows()[0] != first {
		t.Error("a row came although the list was paused")
	}
	p.click("button", "2 new")
	p.hasRows(32)
	p.away()
	p.space()
	c.say("text", budi, `"message":"tiga"`)
	p.hasRows(33)

	// Held by itself while the reader has scrolled.
	eval[any](p, `scrollTo(0, 400), null`)
	p.until("the list is held", `document.querySelector('[data-held=true]')`)
	before := eval[string](p, `document.elementFromPoint(500, 500).closest('tr').dataset.key`)
	c.say("text", budi, `"message":"empat"`)
	p.find("button", "One new")
	if now := eval[string](p, `document.elementFromPoint(500, 500).closest('tr').dataset.key`); now != before {
		t.Errorf("what was read moved: %s is now where %s was", now, before)
	}
	p.click("button", "One new")
	p.until("it is shown, at the top", `scrollY === 0 && document.querySelector('main tbody tr[data-key]').innerText.includes('empat')`)

	// And under the pointer.
	p.must(chromedp.Run(p.ctx, chromedp.MouseEvent("mouseMoved", 640, 500)))
	p.until("the list is held", `document.querySelector('[data-held=true]')`)
	c.say("text", budi, `"message":"lima"`)
	p.find("button", "One new")
	p.away()
	p.until("it comes when the pointer goes", `document.querySelector('main tbody tr[data-key]').innerText.includes('lima')`)
	p.accessible()
}

func TestMessageFilter(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", ayu, `"message":"Promo hari ini"`)
	c.say("poll", budi, `"title":"Jam berapa?","options":["10","12"]`)
	c.Phone(ayu).Types("makasih")
	p := c.open("/messages")
	p.hasRows(3)

	// Completed while typing, by keyboard alone.
	p.press("/")
	p.until("the field has the focus", `document.activeElement.getAttribute('aria-label') === 'Filter messages'`)
	p.press("a", input.ModifierCtrl) // the driver, unlike a keyboard, also types a key that was taken
	p.typed("dir")
	p.find("option", "direction:")
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.find("option", "direction:in")
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.hasRows(1)
	p.until("the filter is in the address", `new URLSearchParams(location.search).get('q') === 'direction:in'`)
	p.see("One message found.")

	// Kept for another day.
	p.fill("Filter messages", `to:`+budi+` type:poll`)
	p.hasRows(1)
	p.click("button", "Save this filter")
	p.click("link", "All")
	p.hasRows(3)
	p.visit("/messages")
	p.live()
	p.click("link", `to:`+budi+` · Poll`)
	p.hasRows(1)
	p.click("button", "Remove this filter")
	p.lost("link", `to:`+budi+` · Poll`)

	// By the beginning of a number, also for what comes in meanwhile.
	p.visit("/messages?q=to:" + budi[:6])
	p.live()
	p.hasRows(1)
	p.away()
	c.say("text", "6281299999999", `"message":"siapa ini"`)
	c.say("text", ayu, `"message":"untuk Ayu"`)
	p.hasRows(2)

	// What comes in belongs to it or does not.
	p.visit("/messages?q=" + url.QueryEscape(`"promo"`))
	p.live()
	p.hasRows(1)
	p.away()
	c.say("text", budi, `"message":"besok"`)
	c.say("text", budi, `"message":"PROMO besok"`)
	p.hasRows(2)

	p.visit("/messages?q=status:failed")
	p.live()
	p.see("No message matches status:failed.")
	p.see("None failed.")
	p.accessible()
	p.click("button", "Clear the filter")
	p.hasRows(7)
}

// TestMessageDrawer reads the timeline of a message that failed, and of one that did not.
func TestMessageDrawer(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.hooks()
	first := c.say("text", ayu, `"message":"Pesanan #1042 sudah kami terima."`)
	c.Phone(ayu).Reads()
	c.Phone("6281377700099").Becomes(`{"on_network":false}`)
	c.Post("/api/send-message/text", `{"contact_id":"6281377700099@c.us","message":"Siap diambil"}`)
	c.Phone(ayu).Sends(`{"type":"text","message":"<b>Kapan</b> dikirim?","reply_to":"` + first[strings.LastIndex(first, "_")+1:] + `"}`)
	p := c.open("/messages")
	p.hasRows(3)

	p.openRow(2)
	p.see("The number has no WhatsApp account.")
	p.see("not_on_network")
	p.see("Check the number and its country code")
	p.accessible()

	// The next one: what answers another shows it, as text and nothing else.
	p.press("[")
	p.see("<b>Kapan</b> dikirim?")
	p.until("what it answers is quoted", `document.querySelector('.drawer .quoted')?.innerText.includes('Pesanan #1042')`)
	p.press("]")
	p.press("]")
	p.see("Read by Ayu")
	p.until("every step is shown",
		`['PENDING', 'SENT', 'DELIVERED', 'READ'].every((status) => document.querySelector('.line [data-status=' + status + ']'))`)
	p.see("Request id")
	p.until("the deliveries are shown", `document.querySelectorAll('.caused li').length >= 4`)
	p.accessible()

	// Under the mask nothing of it is read over a shoulder.
	p.press(".")
	p.gone("Pesanan #1042")
	p.gone("812-3456-7890")
	p.press(".")
	p.see("Pesanan #1042")

	p.click("button", "Send again")
	p.see("Sent again")
	c.Eventually("it came twice", func() bool { return len(c.Phone(ayu).Messages()) == 2 })
	p.click("button", "Open")
	p.until("the new one is open", `new URLSearchParams(location.search).get('open') !== `+quote("demo."+first))
	p.press(kb.Escape)
	p.until("the drawer is closed", `!document.querySelector('.drawer') && !location.search.includes('open')`)

	// A link that another page made, without the channel.
	p.visit("/messages?open=" + url.QueryEscape(first))
	p.live()
	p.see("Read by Ayu")
	p.click("link", "Open chat")
	p.until("the chat is open",
		`location.pathname === '/console/conversations/demo/`+ayu+`%40c.us' && document.querySelector('.bubble.marked')`)
}

func TestSendFromHere(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/messages")
	p.click("button", "Send one from here")
	p.find("dialog", "Send a message")
	p.allow("422")
	p.fill("Contact", "12")
	p.click("button", "Send")
	p.until("the number is wrong", `document.querySelector('[name=to][aria-invalid=true]')`)
	p.see("Enter the number with its country code, for example +62 812-3456-7890.")
	p.until("it is said once, and in no other words",
		`document.querySelectorAll('dialog .wrong').length === 1 && !document.querySelector('dialog .note.bad') && `+
			`!document.querySelector('dialog').innerText.includes('@c.us')`)
	p.fill("Contact", "+62 812-3456-7890")
	p.until("the number is right", `!document.querySelector('[name=to][aria-invalid=true]')`)
	p.click("button", "Send")
	p.until("the text is missing, which is said once",
		`document.querySelector('[name=message][aria-invalid=true]') && document.querySelectorAll('dialog .wrong').length === 1 && `+
			`!document.querySelector('dialog .note.bad')`)
	p.fill("Text", `<script>alert(1)</script> "halo"`)
	p.click("button", "As code")
	p.find("dialog", "As code")
	p.press(kb.Escape)
	p.lost("dialog", "As code")
	p.click("button", "Send")
	p.hasRows(1)
	p.see(`<script>alert(1)</script> "halo"`)
	if got := c.Phone(ayu).Expect("halo").Body; got != `<script>alert(1)</script> "halo"` {
		t.Errorf("the phone has %q", got)
	}

	// An answer to what came in.
	p.away()
	c.Phone(ayu).Types("siapa ini?")
	p.hasRows(2)
	p.openRow(1)
	p.see("Received from Ayu")
	p.press("r")
	p.find("dialog", "Send a message")
	p.fill("Text", "Toko Ayu")
	p.press(kb.Enter, input.ModifierCtrl)
	p.lost("dialog", "Send a message")
	if got := c.Phone(ayu).Expect("Toko Ayu").Body; got != "Toko Ayu" {
		t.Errorf("the phone has %q", got)
	}
	p.visit("/messages?q=" + url.QueryEscape(`"Toko Ayu"`))
	p.live()
	p.hasRows(1)
	p.openRow(1)
	p.until("it answers the other", `document.querySelector('.drawer .quoted')?.innerText.includes('siapa ini?')`)
}

// TestMessagesOfGroup lists what was sent to a group: such a message has no contact.
func TestMessagesOfGroup(t *testing.T) {
	t.Parallel()
	c := start(t)
	group := c.Post("/api/groups/create", `{"name":"Drivers","participants":["`+ayu+`@c.us"]}`).Expect(http.StatusOK).Text("data.id")
	c.Post("/api/send-message/text", `{"group_id":"`+group+`","message":"Meet at noon"}`).Expect(http.StatusOK)
	p := c.open("/messages")
	p.hasRows(1)
	p.until("it names the group", `/Drivers[^]*Meet at noon/.test(document.querySelector('main tbody').innerText)`)
	p.openRow(1)
	p.see("Open chat")
	p.press(kb.Escape)
	p.press("k", 2)
	p.until("so does the palette", `[...document.querySelectorAll('.palette [role=option]')].some((one) =>
		/Meet at noon\s+demo\s+Drivers/.test(one.innerText))`)
}

// TestFilterHalfTyped types a filter slowly: what is not a whole word yet is not looked for, and nothing moves.
func TestFilterHalfTyped(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", ayu, `"message":"Promo hari ini"`)
	p := c.open("/messages")
	p.hasRows(1)
	const top = `document.querySelector('[data-search]').getBoundingClientRect().top`
	const asked = `performance.getEntriesByType('resource').filter((one) => one.name.includes('/manage/messages?')).map((one) => new ` +
		`URL(one.name).search)`
	const q = `new URLSearchParams(location.search).get('q')`
	was := eval[float64](p, top)
	p.focus(p.findAny(inputs, "Filter messages"))
	for _, letter := range "promo status:del" {
		p.typed(string(letter))
	}
	p.find("option", "status:delivered")
	p.until("only what is whole is looked for", q+` === 'promo'`)
	p.hasRows(1)
	for _, letter := range "ivered" {
		p.typed(string(letter))
	}
	p.until("the whole word is looked for", q+` === 'promo status:delivered'`)
	p.see("One message found.")

	// What cannot be one is left out, and that is said.
	for text, out := range map[string]string{"status:lost": "status:lost", "promo after:3": "after:3", "to:6": "to:6"} {
		p.fill("Filter messages", text)
		p.press(kb.Enter)
		p.see(out + " was not understood, so it is ignored.")
		p.hasRows(1)
	}
	p.fill("Filter messages", "to:628")
	p.until("the beginning of a number is looked for", q+` === 'to:628'`)
	p.fill("Filter messages", "zzz")
	p.see("0 messages found.")
	if now := eval[float64](p, top); now != was {
		t.Errorf("the filter moved from %v to %v", was, now)
	}
	if said := eval[string](p,
		asked+`.filter((one) => /status=DEL(&|$)|status=LOST|after=3(&|$)|contact=6(&|$)/.test(one)).join()`); said != "" {
		t.Errorf("the server was asked for %s", said)
	}

	// A word that is left half typed is what the reader wants.
	p.fill("Filter messages", "to")
	p.find("option", "to:")
	p.click("heading", "Messages")
	p.until("it is looked for", q+` === 'to'`)
}

// TestMessageCodes finds the messages that carry codes, as the list calls them, and none of them shows one.
func TestMessageCodes(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", budi, `"message":"bukan kode"`)
	c.Post("/api/otp/code/request", `{"contact_id":"`+ayu+`@c.us","name":"Toko Ayu"}`).Expect(http.StatusOK)
	code := c.Phone(ayu).Expect("Toko Ayu").Codes[0]
	p := c.open("/messages?q=type:otp")
	p.hasRows(1)
	p.see("•••••• is your Toko Ayu verification code")
	p.gone("*•")
	p.openRow(1)
	p.see("As the phone shows it; the code is hidden here")
	p.gone(code)
	p.press(kb.Escape)
	p.away()

	// Also for what comes in meanwhile.
	c.say("text", budi, `"message":"bukan kode juga"`)
	c.Post("/api/otp/code/request", `{"contact_id":"`+budi+`@c.us","name":"Toko Budi"}`).Expect(http.StatusOK)
	p.click("button", "One new") // the row that was open has the focus
	p.hasRows(2)
	p.gone("bukan kode")
	p.press("k", input.ModifierCtrl)
	p.find("option", "•••••• is your Toko Budi…")
}

// TestDrawerFromLink opens a message by its address: the ones beside it are reached from there, also when the
// list comes after the message.
func TestDrawerFromLink(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", ayu, `"message":"satu"`)
	second := c.say("text", ayu, `"message":"dua"`)
	c.say("text", ayu, `"message":"tiga"`)
	p := c.open("/")
	p.must(do(p.ctx, func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`(() => {
			const { fetch } = window;
			const frame = () => new Promise((done) => setTimeout(done, 20));
			window.fetch = async (address, ...rest) => {
				if (String(address).includes('/manage/messages?')) while (!document.querySelector('.drawer .as-seen')) await frame();
				return fetch(address, ...rest);
			};
		})()`).Do(ctx)
		return err
	}))
	p.visit("/messages?open=demo." + url.QueryEscape(second))
	p.live()
	drawer := func(text string) {
		t.Helper()
		p.until(text+" is open", `document.querySelector('.drawer .as-seen')?.innerText.includes(`+quote(text)+`)`)
	}
	drawer("dua")
	p.hasRows(3)
	p.press("]")
	drawer("satu")
	p.press("[")
	p.press("[")
	drawer("tiga")
	p.press("y")
	p.see("Copied Message id")
}

// TestBetween holds that neither the channel nor the contact of a message is cut away while there is room.
func TestBetween(t *testing.T) {
	t.Parallel()
	c := start(t)
	shop := parleytest.As(c.CreateChannel("cabang-surabaya-timur"))
	c.Post("/api/send-message/text", `{"contact_id":"6281377700099@c.us","message":"`+strings.Repeat("Panjang sekali. ", 20)+`"}`, shop).
		Expect(http.StatusOK)
	c.Phone("6281377700098").Becomes(`{"name":"Siti Nurhaliza Kusumaningrum Wijayanti Rahayu"}`)
	c.say("text", "6281377700098", `"message":"Halo"`)
	p := c.open("/messages")
	for _, width := range []int64{1440, 1280, 390} {
		p.must(do(p.ctx, func(ctx context.Context) error {
			return emulation.SetDeviceMetricsOverride(width, 900, 1, false).Do(ctx)
		}))
		p.hasRows(2)
		p.until(fmt.Sprintf("the number is whole at %d px", width),
			`[...document.querySelectorAll('.between .mono-num')].every((one) => one.clientWidth > 0 && one.scrollWidth <= one.clientWidth)`)
		p.until(fmt.Sprintf("all are legible at %d px", width),
			`[...document.querySelectorAll('.between > span:not(.sr)')].every((one) => one.title && one.clientWidth >= Math.min(one.scrollWidth,`+
				` 60))`)
	}
}
