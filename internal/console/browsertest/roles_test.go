package browsertest

import (
	"testing"

	"parley"
	"parley/internal/parleytest"
)

// TestPagesByRole: what a role may not do is not offered.
func TestPagesByRole(t *testing.T) {
	t.Parallel()
	for _, role := range parley.Roles {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.role = role
			c.Post("/api/manage/webhooks", `{"url":"https://shop.example.com/hook"}`, parleytest.As(c.Admin))
			p := c.open("/channels")
			offered := func(path, kind, name string, least parley.Role) {
				t.Helper()
				p.visit(path)
				p.live()
				p.rest()
				if got, want := p.count(kind, name) > 0, role.Includes(least); got != want {
					t.Errorf("%s: %s %q is offered: %t, want %t", path, kind, name, got, want)
				}
			}
			offered("/channels", "button", "New channel", parley.Operator)
			offered("/channels/demo", "button", "Stop", parley.Operator)
			offered("/channels/demo", "link", "Pair", parley.Operator)
			offered("/channels/demo/settings", "button", "Save", parley.Operator)
			offered("/messages", "button", "Send a message", parley.Support)
			offered("/webhooks", "button", "Add webhook", parley.Operator)
			offered("/tokens", "button", "Create token", parley.Owner)
			offered("/settings", "button", "Back up now", parley.Operator)
			p.accessible()
			p.click("button", "Account")
			p.see("Signed in as " + string(role))
		})
	}
}

// TestRoleOfAToken gives an admin token another role.
func TestRoleOfAToken(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/manage/tokens", `{"kind":"admin","role":"viewer","name":"Night shift"}`, parleytest.As(c.Admin))
	p := c.open("/tokens")
	p.see("admin, viewer")
	p.click("link", "Night shift")
	p.choose("Role", "support")
	p.click("button", "Change role")
	p.see("The role is now support.")
	p.see("admin, support")
	p.accessible()
}
