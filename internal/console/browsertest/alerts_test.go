package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestAlerts makes a rule, tries it, reads what it found and deletes it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.makeChannel(`"code":"toko","name":"Toko"`)
	p := c.open("/alerts")
	p.see("No rules yet.")
	p.see("No alerts in the last 30 days.")
	p.accessible()
	p.click("button", "New rule")
	p.choose("Watches", "failing_sends")
	p.see("Over minutes")
	p.choose("Watches", "channel_logged_out")
	p.fill("Name", `<img src=x onerror=alert(1)>`)
	p.accessible()
	p.allow("422")
	p.click("button", "Create rule")
	p.see("The address is empty.")
	p.fill("Address", "https://ops.example.com/alerts")
	p.click("button", "Create rule")
	p.see("It is shown only now.")
	p.accessible()
	p.click("button", "Close")
	p.see("<img src=x onerror=alert(1)>")
	p.see("ops.example.com")

	c.Post("/api/manage/alerts", `{"kind":"channel_logged_out","name":"By message","channel":"toko","via":"demo","contact_id":"`+ayu+`@c.us"}`,
		parleytest.As(c.Admin)).Expect(http.StatusCreated)
	c.Post("/api/manage/channels/toko/logout", "", parleytest.As(c.Admin)).Expect(http.StatusOK)
	c.Eventually("it is raised", func() bool {
		return c.Get("/api/manage/alerts", parleytest.As(c.Admin)).Expect(http.StatusOK).Count("data.alerts") >= 2
	})
	p.visit("/alerts")
	p.live()
	p.see("Channel toko is logged out")
	p.click("button", "Send test: By message")
	p.see("The notice was accepted.")
	p.accessible()

	// The form begins with what the rule has, and replaces all of it.
	p.click("button", "Edit: By message")
	p.until("the number is there", `document.querySelector('[name=contact]').value.replace(/\D/g, '') === '`+ayu+`'`)
	p.lost("radio", "A webhook")
	p.choose("Watches", "failing_sends")
	p.fill("From this share on, in percent", "35")
	p.click("checkbox", "Quiet hours")
	p.fill("Time zone", "Asia/Jakarta")
	p.click("checkbox", "The rule is on")
	p.accessible()
	p.click("button", "Save")
	p.see("The rule is changed.")
	p.see("22:00–07:00 Asia/Jakarta")
	changed := c.Get("/api/manage/alerts", parleytest.As(c.Admin)).Expect(http.StatusOK)
	for i := range changed.Count("data.rules") {
		rule := fmt.Sprintf("data.rules.%d", i)
		if changed.Text(rule+".name") != "By message" {
			continue
		}
		if kind, share := changed.Text(rule+".kind"), changed.Number(rule+".share"); kind != "failing_sends" || share != 35 {
			t.Errorf("the rule is %s of %v", kind, share)
		}
		if via, channel := changed.Text(rule+".via"), changed.Text(rule+".channel"); via != "demo" || channel != "toko" {
			t.Errorf("the rule is of %s through %s", channel, via)
		}
	}
	p.click("button", "Delete the rule By message?")
	p.click("button", "Delete")
	p.see("The rule is deleted.")
	p.gone("By message")
}
