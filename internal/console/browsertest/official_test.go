package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/internal/app"
	"parley/internal/network/cloud/cloudtest"
	"parley/internal/parleytest"
)

// startMeta runs a Graph server with a number until the test ends.
func startMeta(t *testing.T) (*cloudtest.Server, *cloudtest.Number) {
	t.Helper()
	meta := cloudtest.Start()
	t.Cleanup(meta.Close)
	return meta, meta.AddNumber("6281100000001")
}

// addOfficial creates a channel on the official network, and waits until it works.
func (c *console) addOfficial(code string) {
	c.t.Helper()
	meta, number := startMeta(c.t)
	c.Post("/api/manage/channels", fmt.Sprintf(`{"code":%q,"network":"cloud","cloud":{"phone_number_id":%q,"waba_id":%q,"access_token":%q,`+
		`"app_secret":%q,"graph_url":%q}}`, code, number.ID, cloudtest.BusinessID, meta.Token, meta.AppSecret, meta.URL),
		parleytest.As(c.Admin)).Expect(http.StatusCreated)
	c.Becomes(code, parley.ChannelWorking)
}

// version is a change that gives the server a version as releases have it. The pictures show it.
func version(c *app.Config) { c.Version = "1.0.0" }

// TestOfficialAPI creates a channel on the official network, replaces its credentials, and moves a sandbox channel there.
func TestOfficialAPI(t *testing.T) {
	t.Parallel()
	meta, number := startMeta(t)
	c := start(t, version)
	p := c.open("/channels")
	fill := func(secret string) {
		t.Helper()
		p.fill("Phone number ID", number.ID)
		p.fill("WhatsApp Business Account ID", cloudtest.BusinessID)
		p.fill("Access token", meta.Token)
		p.fill("App secret", secret)
		p.fill("API address", meta.URL)
		if n := eval[int](p, `document.querySelectorAll('input[type=password][autocomplete=new-password]').length`); n != 2 {
			t.Errorf("%d fields are hidden", n)
		}
	}
	p.click("button", "New channel")
	p.lost("textbox", "Access token")
	p.click("radio", "WhatsApp’s official API: a number at Meta, without a phone")
	p.fill("Code", "toko")
	fill("wrong")
	p.accessible()
	p.allow("422")
	p.click("button", "Create channel")
	p.see("does not belong to the app of this token")
	p.fill("App secret", meta.AppSecret)
	p.click("button", "Create channel")
	p.see("Meta accepted the access token and its permissions")
	p.see("CONNECTED")
	p.see("APPROVED")
	p.see("never expires")
	p.see("Set --public-url, then: ") // what helps is a sentence here, not a command
	p.find("link", "Account")
	p.lost("link", "Pair")
	p.accessible()

	meta.SetToken("EAAnew")
	p.fill("Access token", "EAAold")
	p.click("button", "Replace credentials")
	p.see("is not valid, or has expired")
	p.fill("Access token", "EAAnew")
	p.click("button", "Replace credentials")
	p.see("Meta accepted the new credentials.")
	p.until("no secret stays", `[...document.querySelectorAll('input[type=password]')].every((field) => !field.value)`)
	p.visit("/channels/toko/pair")
	p.live()
	p.see("CONNECTED")
	if text := eval[string](p, `document.documentElement.outerHTML`); strings.Contains(text, "EAA") || strings.Contains(text, meta.AppSecret) {
		t.Error("a secret came back")
	}
	p.visit("/channels/toko/settings")
	p.live()
	p.fill("Template for texts after 24 hours", "order_update")
	p.fill("Language of that template", "id")
	p.choose("When it’s unclear whether a message left", "fail")
	p.click("checkbox", "Mark received messages as read at once")
	p.accessible()
	p.click("button", "Save")
	p.see("Saved")
	if a := c.Get("/api/manage/channels/toko", parleytest.As(c.Admin)).Expect(http.StatusOK); !a.Bool("data.settings.cloud.mark_read") ||
		a.Text("data.settings.cloud.on_unknown") != "fail" || a.Text("data.settings.cloud.outside_window.language") != "id" {
		t.Errorf("the settings are %s", a.Body)
	}
	p.fill("Template for texts after 24 hours", "")
	p.click("button", "Save")
	c.Eventually("no template", func() bool {
		return c.Get("/api/manage/channels/toko", parleytest.As(c.Admin)).Expect(http.StatusOK).Value("data.settings.cloud.outside_window") == nil
	})

	p.visit("/channels/toko/danger")
	p.find("button", "Delete channel")
	p.lost("button", "Log out") // it has no phone
	c.Post("/api/manage/channels/toko/stop", "", parleytest.As(c.Admin)).Expect(http.StatusOK)

	number = meta.AddNumber("6281100000002")
	p.visit("/channels/demo?golive=1")
	p.live()
	p.find("dialog", "Move demo to WhatsApp")
	p.click("radio", "WhatsApp’s official API")
	p.find("dialog", "Move demo to WhatsApp’s official API")
	fill(meta.AppSecret)
	p.click("radio", "Everybody")
	p.accessible()
	on[bool](p, "dialog", "Move demo to WhatsApp’s official API", `function() { return !this.querySelector('[type=submit]').click(); }`)
	p.see("Meta accepted the access token and its permissions")
	c.Becomes("demo", parley.ChannelWorking)
	if got := c.Get("/api/manage/channels/demo", parleytest.As(c.Admin)).Text("data.number"); got != "6281100000002" {
		t.Errorf("demo has the number %q", got)
	}
}

// TestReportsByHand shows what somebody gives Meta who wants no address to be set.
func TestReportsByHand(t *testing.T) {
	t.Parallel()
	meta, number := startMeta(t)
	c := start(t, func(c *app.Config) { c.PublicURL = "https://parley.example.com" })
	c.Post("/api/manage/channels", fmt.Sprintf(`{"code":"toko","network":"cloud","cloud":{"phone_number_id":%q,"waba_id":%q,`+
		`"access_token":%q,"app_secret":%q,"graph_url":%q,"webhook":"none"}}`, number.ID, cloudtest.BusinessID, meta.Token, meta.AppSecret,
		meta.URL), parleytest.As(c.Admin)).Expect(http.StatusCreated)
	c.Becomes("toko", parley.ChannelWorking)
	p := c.open("/channels/toko/pair")
	p.see("CONNECTED")
	p.choose("Reports of messages", "none")
	p.click("button", "Replace credentials")
	p.see("Paste these into Meta’s pages now")
	p.see("https://parley.example.com/network/cloud/toko")
	p.accessible()
	p.visit("/channels/toko/pair")
	p.live()
	p.see("CONNECTED")
	p.gone("https://parley.example.com/network/cloud/toko")
}

// TestTemplates creates, filters, shows and deletes templates.
func TestTemplates(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/templates", `{"name":"late","language":"id","body":"Pesanan terlambat.","status":"REJECTED"}`).Expect(http.StatusCreated)
	p := c.open("/channels/demo/templates")
	p.see("Pesanan terlambat.")
	p.click("button", "New template")
	p.fill("Name", "Order ready")
	p.fill("Language", "en_US")
	p.fill("Text", "Hello {{1}}, order {{2}} is ready.")
	p.fill("Example for {{1}}", "Ayu")
	p.accessible()
	p.allow("422")
	p.click("button", "Create template")
	p.see("lower-case letters, digits and _")
	p.fill("Name", "order_ready")
	p.fill("Example for {{2}}", "A-17")
	p.click("button", "Create template")
	p.see("The template is created: approved.")
	p.lost("dialog", "New template")
	p.click("button", "rejected 1")
	p.gone("order_ready")
	p.click("button", "All 2")
	p.click("link", "order_ready")
	p.find("dialog", "order_ready")
	p.see("utility")
	p.accessible()
	p.click("button", "Delete")
	p.find("dialog", "Delete the template order_ready?")
	on[bool](p, "dialog", "Delete the template order_ready?", `function() { return !this.querySelector('.button.danger').click(); }`)
	p.see("The template is deleted.")
	p.gone("order_ready")

	viewer := &console{Env: c.Env, t: t, role: parley.Viewer}
	p = viewer.open("/channels/demo/templates?open=late.id")
	p.find("dialog", "late")
	p.see("rejected")
	p.lost("button", "New template")
	p.lost("button", "Delete")
}
