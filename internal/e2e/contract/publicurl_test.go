package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestPublicURL makes links on the server itself: they lead to where everybody reaches it.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	const public = "https://chat.example.com"
	e := parleytest.Start(t, func(c *app.Config) { c.PublicURL, c.BehindProxy = public+"/", true })
	admin := parleytest.As(e.Admin)
	server := e.Get("/api/manage/server", admin).Expect(http.StatusOK)
	wantValue(t, server, "data.url", public)
	wantValue(t, server, "data.local_url", e.URL)

	for from, with := range map[string]parleytest.Option{
		"this machine":   func(*http.Request) {},
		"a proxy":        parleytest.With("X-Forwarded-Proto", "http"),
		"another header": func(r *http.Request) { r.Host = "evil.example" },
	} {
		link := e.Post("/api/otp/link/request", `{"contact_id":"6281234567890@c.us","expires":60}`, with).Expect(http.StatusOK).Text("data.link")
		if !strings.HasPrefix(link, public+"/phone/6281234567890?") {
			t.Errorf("asked for from %s, the login link is %s", from, link)
		}
	}
	e.Post(channels, `{"code":"toko","network":"whatsapp"}`, admin).Expect(http.StatusCreated)
	if link := e.Post(channels+"/toko/pair-link", "", admin).Expect(http.StatusOK).Text("data.url"); !strings.HasPrefix(link, public+"/pair#ticket=") {
		t.Errorf("the pairing link is %s", link)
	}
	if found := string(e.Get("/api/manage/doctor", admin).Body); !strings.Contains(found, "they lead to "+public) {
		t.Errorf("the doctor says %s", found)
	}
}
