package doctor

import (
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		public string
		proxy  bool
		level  Level // empty: there is nothing to say
		says   string
	}{
		{"", false, "", ""},
		{"", true, Warning, "the address of the proxy is not set"},
		{"https://chat.example.com", true, Fine, "they lead to https://chat.example.com"},
		{"http://localhost:7275", false, Fine, "they lead to http://localhost:7275"},
		{"http://[::1]:7275", false, Fine, "they lead to http://[::1]:7275"},
		{"http://chat.example.com", true, Warning, "is not encrypted"},
		{"http://127.0.0.1.example.com", false, Warning, "is not encrypted"},
	} {
		found := Links(c.public, c.proxy)
		if c.level == "" {
			if len(found) > 0 {
				t.Errorf("%q: %+v", c.public, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Level != c.level || !strings.Contains(found[0].Found, c.says) ||
			(found[0].Remedy == "") != (c.level == Fine) {
			t.Errorf("%q: %+v", c.public, found)
		}
	}
}
