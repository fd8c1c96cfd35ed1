package browsertest

import (
	"net/http"
	"testing"

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
