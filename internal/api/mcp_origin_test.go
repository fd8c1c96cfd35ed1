package api

import (
	"net/http/httptest"
	"testing"
)

// TestOriginOfMCP: a page whose name was rebound to this machine sends its own name as Origin and as Host.
func TestOriginOfMCP(t *testing.T) {
	for _, c := range []struct {
		public, host, origin string
		own                  bool
	}{
		{"", "127.0.0.1:7275", "", true},
		{"", "127.0.0.1:7275", "http://127.0.0.1:7275", true},
		{"", "localhost:7275", "http://localhost:7275", true},
		{"", "evil.example", "http://evil.example", false},
		{"https://chat.example.com", "evil.example", "http://evil.example", false},
		{"https://chat.example.com", "chat.example.com", "https://chat.example.com", true},
		{"https://chat.example.com", "chat.example.com", "https://evil.example", false},
	} {
		s := &server{config: Config{PublicURL: c.public, URL: "http://127.0.0.1:7275"}}
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if s.isOwnOrigin(r) != c.own {
			t.Errorf("%+v: own %v", c, !c.own)
		}
	}
}
