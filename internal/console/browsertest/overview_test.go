package browsertest

import (
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestOverviewInEveryLanguage holds that what needs somebody, and what the doctor finds, is said in the
// reader's language, with the reasons that others gave as they gave them.
func TestOverviewInEveryLanguage(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := parleytest.As(c.Admin)
	c.Post("/api/manage/channels", `{"code":"toko","network":"sandbox"}`, admin).Expect(http.StatusCreated)
	c.Post("/api/manage/channels/toko/logout", "", admin).Expect(http.StatusOK)
	p := c.open("/")
	for language, words := range map[string]struct{ need, act, tile, doctor, status, exposure string }{
		"en":    {"Channel toko is logged out. It sends nothing until somebody pairs it.", "Pair", "since the start at", "Doctor", "logged out since", "for this machine alone."},
		"id":    {"Kanal toko telah keluar. Tidak ada yang terkirim sampai ditautkan lagi.", "Tautkan", "sejak dimulai pukul", "Dokter", "keluar sejak", "hanya untuk mesin ini."},
		"pt-BR": {"O canal toko foi desconectado. Ele não envia nada até alguém vinculá-lo.", "Vincular", "desde o início às", "Diagnóstico", "desconectado desde", "só para esta máquina."},
	} {
		eval[any](p, `document.cookie = 'lang=`+language+`; Path=/console', null`)
		p.visit("/")
		p.live()
		p.see(words.need)
		p.find("link", words.act)
		p.see(words.tile)
		p.click("button", words.doctor)
		p.see(words.status)
		p.see(words.exposure)
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
	p.see("One problem needs you.")
	p.gone("These figures are of all channels.")
	p.choose("Channel", "demo")
	p.see("Nothing needs you.")
	p.see("These figures are of all channels.")
	p.accessible()
	p.choose("Channel", "toko")
	p.see("One problem needs you.")
	p.click("link", "Pair")
	p.until("its page is open, and it is still picked", `location.pathname === '/console/channels/toko/pair' && new URLSearchParams(location.search).get('channel') === 'toko'`)
}
