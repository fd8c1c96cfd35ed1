package api

import (
	"strings"
	"testing"
)

// TestProxySetting checks that credentials of a proxy are stored encrypted and shown nowhere, and kept when a caller sends back what it
// was shown.
func TestProxySetting(t *testing.T) {
	e, live := newLive(t)
	const path = "/api/manage/channels/toko"
	settings := func(proxy any) m { return m{"settings": m{"proxy": proxy}} }
	stored := func() (key, credentials string) {
		t.Helper()
		c, err := e.config.Store.Channel(t.Context(), "toko")
		if err != nil {
			t.Fatal(err)
		}
		current, _, err := e.config.Callbacks.Secrets.Credentials(t.Context(), c)
		if err != nil || strings.Contains(c.Settings.Proxy, "secret") {
			t.Fatalf("%+v, %v", c.Settings, err)
		}
		return c.Settings.ProxyKey, string(current)
	}
	r := e.call("POST", "/api/manage/channels", e.admin, m{"code": "toko", "network": "whatsapp",
		"settings": m{"proxy": "socks5://user:secret@proxy.example.com:1080"}})
	r.want(t, 201)
	const shown = "socks5://***@proxy.example.com:1080"
	first, credentials := stored()
	if !strings.Contains(r.text, `"proxy":"`+shown+`"`) || strings.Contains(r.text, "secret") || strings.Contains(r.text, "proxy_key") ||
		!strings.Contains(credentials, "user:secret@") {
		t.Errorf("%s; stored: %s", r.text, credentials)
	}
	e.call("PATCH", path, e.admin, settings(shown)).want(t, 200)
	if key, now := stored(); key != first || now != credentials || live.opened.Load() != 1 {
		t.Errorf("what is shown was sent back, and now %s is stored; %d sessions were opened", now, live.opened.Load())
	}
	e.call("PATCH", path, e.admin, settings("socks5://user:secret2@proxy.example.com:1080")).want(t, 200)
	if key, now := stored(); key == first || !strings.Contains(now, "secret2") || live.opened.Load() != 2 {
		t.Errorf("after another password %s is stored, and %d sessions were opened", now, live.opened.Load())
	}
	for _, wrong := range []any{"socks5://***@other.example.com:1080", "ftp://proxy.example.com", "proxy:1080", "http://", "http://h:0",
		"http://h/x", 1} {
		if r := e.call("PATCH", path, e.admin, settings(wrong)); r.StatusCode != 422 || r.wrong()["settings.proxy"] == nil {
			t.Errorf("%v: %s", wrong, r.text)
		}
	}
	e.call("PATCH", path, e.admin, m{"settings": m{}}).want(t, 200)
	if key, now := stored(); key != "" || strings.Contains(now, "secret") {
		t.Errorf("without a proxy %q, %s is stored", key, now)
	}
	if r := e.call("PATCH", "/api/manage/channels/main", e.admin, settings("http://proxy.example.com:3128")); r.StatusCode != 422 {
		t.Errorf("on the sandbox: %s", r.text)
	}
	audit := e.call("GET", "/api/manage/audit", e.admin, nil)
	if strings.Contains(audit.text, "secret") || !strings.Contains(audit.text, shown) {
		t.Errorf("the audit log has %s", audit.text)
	}
}
