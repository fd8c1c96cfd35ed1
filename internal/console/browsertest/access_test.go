package browsertest

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestAccess reads the audit log and ends a session.
func TestAccess(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/manage/channels", `{"code":"toko","name":"Toko"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	c.Call(http.MethodPatch, "/api/manage/channels/toko", `{"name":"Toko Ayu"}`, parleytest.As(c.Admin)).Expect(http.StatusOK)
	c.Post("/api/manage/tokens", `{"kind":"global","name":"CI"}`, parleytest.As(c.Admin)).Expect(http.StatusCreated)
	other := &console{Env: c.Env, t: t, role: "viewer"}
	other.open("/access/sessions")

	p := c.open("/access")
	p.see("Changed a channel")
	p.see("Created a token")
	p.choose("What", "channel")
	p.gone("Created a token")
	// What is typed stays when the list is loaded again.
	on[any](p, "searchbox", "Object",
		`function() { this.value = 'tok'; this.dispatchEvent(new Event('input', { bubbles: true })); return null; }`)
	p.choose("What", "")
	p.see("Created a token")
	p.until("it is still there", `document.querySelector('[aria-label=Object]').value === 'tok'`)
	p.fill("Object", "toko")
	p.press(kb.Enter)
	p.gone("Created a token")
	p.until("it is in the address", `location.search.includes('object=toko')`)
	p.press(kb.Escape) // leaves the field, which keeps its text
	p.until("it is filtered still", `location.search.includes('object=toko')`)
	p.openRow(1)
	p.see(`"name": "Toko Ayu"`)
	p.accessible()
	p.visit("/access/sessions")
	p.live()
	p.see("this one")
	p.see("viewer")
	p.accessible()
	p.click("button", "End the session of viewer?")
	p.click("button", "End")
	p.see("The session has ended.")
	p.gone("viewer")
}
