package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"parley"
)

// TestLinkChannelIsRandom draws 10,000 times among five channels that can, and two that cannot.
func TestLinkChannelIsRandom(t *testing.T) {
	t.Parallel()
	var channels []parley.Channel
	for i := range 7 {
		c := parley.Channel{Code: parley.ChannelCode(fmt.Sprint("c", i)), Number: "999",
			State: parley.ChannelState{Status: parley.ChannelWorking}}
		switch i {
		case 2:
			c.Number = "" // not known yet
		case 4:
			c.Settings.AllowOnly = []parley.ContactID{"6281111111111@c.us"}
		}
		channels = append(channels, c)
	}
	const draws = 10_000
	counts := map[parley.ChannelCode]int{}
	for range draws {
		c, err := linkChannel(channels, ayu)
		if err != nil {
			t.Fatal(err)
		}
		counts[c.Code]++
	}
	expected, chi := draws/5.0, 0.0
	for _, n := range counts {
		d := float64(n) - expected
		chi += d * d / expected
	}
	if len(counts) != 5 || counts["c2"] > 0 || counts["c4"] > 0 || chi > 28 { // 4 degrees of freedom: once in 80,000
		t.Errorf("they were drawn %v, chi-square %.1f", counts, chi)
	}
	if _, err := linkChannel(channels[4:5], ayu); parley.ToCode(err) != parley.Forbidden {
		t.Errorf("a channel that may not write to the contact: %v", err)
	}
	if _, err := linkChannel(channels[2:3], ayu); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("a channel without a number: %v", err)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	s := &server{config: Config{URL: "http://10.0.0.1:7275", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}}}
	for _, c := range []struct{ host, from, proto, want string }{
		{"127.0.0.1:7275", "127.0.0.1:5", "", "http://127.0.0.1:7275"},
		{"localhost:7275", "127.0.0.1:5", "", "http://localhost:7275"},
		{"[::1]:7275", "[::1]:5", "", "http://[::1]:7275"},
		{"localhost", "203.0.113.5:5", "https", "http://localhost"}, // nobody's word on TLS
		{"evil.example", "127.0.0.1:5", "", "http://10.0.0.1:7275"},
		{"localhost.evil.example", "127.0.0.1:5", "", "http://10.0.0.1:7275"},
		{"evil.example#localhost", "127.0.0.1:5", "", "http://10.0.0.1:7275"},
		{"user@localhost", "127.0.0.1:5", "", "http://10.0.0.1:7275"},
		{"", "127.0.0.1:5", "", "http://10.0.0.1:7275"},
		{"parley.example", "192.168.1.1:5", "https", "https://parley.example"},
		{"parley.example", "192.168.1.1:5", "javascript", "http://parley.example"},
		{"a b", "192.168.1.1:5", "", "http://10.0.0.1:7275"},
		{"a/b", "192.168.1.1:5", "", "http://10.0.0.1:7275"},
	} {
		hr := httptest.NewRequest(http.MethodPost, "/api/otp/link/request", nil)
		hr.Host, hr.RemoteAddr = c.host, c.from
		if c.proto != "" {
			hr.Header.Set("X-Forwarded-Proto", c.proto)
		}
		if got := s.baseURL(hr); got != c.want {
			t.Errorf("host %q from %s: %q, want %q", c.host, c.from, got, c.want)
		}
		said := &server{config: s.config}
		said.config.PublicURL = "https://chat.example.com"
		if got := said.baseURL(hr); got != said.config.PublicURL {
			t.Errorf("host %q from %s: %q, although the operator said another", c.host, c.from, got)
		}
	}
}
