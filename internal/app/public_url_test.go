package app

import "testing"

func TestPublicURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "https://chat.example.com": "https://chat.example.com", "https://Chat.Example.com/": "https://chat.example.com",
		"HTTPS://chat.example.com":     "https://chat.example.com",
		"https://chat.example.com:443": "https://chat.example.com", "https://chat.example.com:8443//": "https://chat.example.com:8443",
		"http://localhost:80/": "http://localhost", "http://[::1]:7275": "http://[::1]:7275",
		"http://chat.example.com:443": "http://chat.example.com:443",
	} {
		if got, err := PublicURL(text); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}
