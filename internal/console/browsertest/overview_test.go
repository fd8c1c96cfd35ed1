package browsertest

import (
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestOverviewInEveryLanguage holds that the page is in the reader's language, and that what needs attention and what
// the doctor finds is shown in it as the server says it.
func TestOverviewInEveryLanguage(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	c.Post("/api/manage/channels", `{"code":"toko","network":"sandbox"}`, admin).Expect(http.StatusCreated)
	c.Post("/api/manage/channels/toko/logout", "", admin).Expect(http.StatusOK)
	p := c.open("/")
	for language, words := range map[string]struct{ act, tile, doctor string }{
		"en":    {"Pair", "since the server started at", "Run checks"},
		"id":    {"Tautkan", "sejak server dimulai pukul", "Periksa server"},
		"pt-BR": {"Conectar", "desde o início do servidor às", "Verificar servidor"},
	} {
		eval[any](p, `document.cookie = 'lang=`+language+`; Path=/console', null`)
		p.visit("/")
		p.live()
		p.see("Channel toko is logged out and sends nothing. Pair it again.")
		p.find("link", words.act)
		p.see(words.tile)
		p.click("button", words.doctor)
		p.see("LOGGED_OUT since ")
		p.see(", this machine alone")
		p.accessible()
	}
}

// TestOverviewOfOneChannel holds that the picked channel decides what needs somebody, and that figures which
// are of all channels say so.
func TestOverviewOfOneChannel(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko"`)
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	p := c.open("/")
	p.see("One problem needs attention.")
	p.gone("These figures cover all channels.")
	p.choose("Channel", "demo")
	p.see("All clear.")
	p.see("These figures cover all channels.")
	p.accessible()
	p.choose("Channel", "toko")
	p.see("One problem needs attention.")
	p.click("link", "Pair")
	p.until("its page is open, and it is still picked",
		`location.pathname === '/console/channels/toko/pair' && new URLSearchParams(location.search).get('channel') === 'toko'`)
}
