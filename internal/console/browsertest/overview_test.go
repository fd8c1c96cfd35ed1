package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestOverviewInEveryLanguage holds that the page is in the reader's language, and that what needs attention is said in it. What the
// doctor finds is English everywhere, and marked so.
func TestOverviewInEveryLanguage(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	c.Post("/api/manage/channels", `{"code":"toko","network":"sandbox"}`, admin).Expect(http.StatusCreated)
	c.Post("/api/manage/channels/toko/logout", "", admin).Expect(http.StatusOK)
	p := c.open("/")
	for language, words := range map[string]struct{ said, act, tile, doctor string }{
		"en":    {"Channel toko is logged out and sends nothing. Pair it again.", "Pair", "Webhook success rate", "Run checks"},
		"id":    {"Kanal toko ter-logout dan tidak mengirim apa pun.", "Tautkan", "Tingkat keberhasilan webhook", "Periksa server"},
		"pt-BR": {"O canal toko foi desconectado e não envia nada.", "Conectar", "Taxa de sucesso dos webhooks", "Verificar servidor"},
	} {
		p.prefer("lang", language)
		p.visit("/")
		p.live()
		p.see(words.said)
		p.find("link", words.act)
		p.see(words.tile)
		p.click("button", words.doctor)
		p.see("LOGGED_OUT since ")
		eval[any](p, `document.querySelector('dialog summary').click(), null`)
		p.see(", this machine alone")
		p.until("findings are marked as English", `[...document.querySelectorAll('dialog .needs bdi')].every((bdi) => bdi.lang === 'en')`)
		p.accessible()
	}
}

// TestManyLoggedOut holds that many channels with one problem are one line, which leads to the list of them.
func TestManyLoggedOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	const n = 12 // more than the response lists
	for i := range n {
		c.Post("/api/manage/channels", fmt.Sprintf(`{"code":"toko-%d","network":"sandbox"}`, i), admin).Expect(http.StatusCreated)
		c.Post(fmt.Sprintf("/api/manage/channels/toko-%d/logout", i), "", admin).Expect(http.StatusOK)
	}
	p := c.open("/")
	p.see("12 problems need attention.")
	p.see("12 channels are logged out and send nothing. Pair them again.")
	if rows := eval[int](p, `document.querySelectorAll('main .needs li').length`); rows != 1 {
		t.Errorf("%d lines", rows)
	}
	p.click("link", "See channels")
	p.hasRows(n)
	p.visit("/?channel=toko-0") // one of those that the response leaves out
	p.live()
	p.see("Channel toko-0 is logged out and sends nothing.")
}

// TestOverviewOfOneChannel holds that the picked channel decides what needs attention, and that figures which
// are of all channels say so.
func TestOverviewOfOneChannel(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p := c.open("/")
	p.see("One problem needs attention.")
	p.gone("These figures cover all channels.")
	p.visit("/?channel=demo")
	p.live()
	p.see("All clear.")
	p.see("These figures cover all channels.")
	p.accessible()
	p.visit("/?channel=toko")
	p.live()
	p.see("One problem needs attention.")
	p.click("link", "Pair")
	p.until("its page is open, and it is still picked",
		`location.pathname === '/console/channels/toko/pair' && new URLSearchParams(location.search).get('channel') === 'toko'`)
}

// TestOverviewCounts holds that the overview, the checks and the API count the same, that the worst comes first, and that
// the first steps are only for a new installation and below what needs attention.
func TestOverviewCounts(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	for i := range 8 {
		code := fmt.Sprintf("toko-%d", i)
		c.makeChannel(`"code":"` + code + `"`)
		if i < 2 {
			c.Post("/api/manage/channels/"+code+"/logout", "", admin).Expect(http.StatusOK)
			c.Post("/api/send-message/text?channel="+code, `{"contact_id":"`+ayu+`@c.us","message":"hi"}`)
		}
	}
	p := c.open("/")
	p.see("2 problems need attention.")
	p.gone("First steps")
	p.until("the tiles have no hole", `(() => {
		const tiles = [...document.querySelectorAll('.tile')].map((tile) => tile.getBoundingClientRect());
		const rows = Map.groupBy(tiles, ({ top }) => top);
		return new Set([...rows.values()].map((row) => row.length)).size === 1;
	})()`)
	p.accessible()
	p.click("button", "Run checks")
	p.see("2 problems,")
	p.press(kb.Escape)
	p.size(390, 844)
	p.visit("/")
	p.live()
	p.rest()
	p.until("what needs attention is on the first screen",
		`document.querySelector('.needs li').getBoundingClientRect().bottom < innerHeight`)
	p.accessible()
}

// TestFirstSteps holds that they are below what needs attention.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p := c.open("/")
	p.see("First steps")
	p.until("they are below", `document.querySelector('.needs').getBoundingClientRect().bottom <
		document.querySelector('.first-run').getBoundingClientRect().top`)
}
