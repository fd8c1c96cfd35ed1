package safehttp

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckURLAccepts(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("é", 2028)
	for raw, want := range map[string]string{
		"http://example.com":                      "http://example.com",
		"HTTPS://Example.COM/A?b=c":               "https://example.com/A?b=c",
		"http://example.com:8080/":                "http://example.com:8080/",
		"http://example.com:/x":                   "http://example.com/x",
		"http://example.com:22/":                  "http://example.com:22/",
		"https://example.com/a.png#part":          "https://example.com/a.png",
		"https://example.com/#":                   "https://example.com/",
		"http://localhost:9000/hook":              "http://localhost:9000/hook",
		"http://127.0.0.1:9000/hook":              "http://127.0.0.1:9000/hook",
		"http://[::1]:9000/":                      "http://[::1]:9000/",
		"http://[2001:DB8:0::1]/":                 "http://[2001:db8::1]/",
		"http://under_score.example/":             "http://under_score.example/",
		"http://bücher.example/ü":                 "http://xn--bcher-kva.example/%C3%BC",
		"http://①②⑦.⓪.⓪.①/":                       "http://127.0.0.1/", // refused when it is dialled
		"http://example.com./":                    "http://example.com./",
		"http://example.com/?u=http://a@b":        "http://example.com/?u=http://a@b",
		"http://example.com/two words.ogg":        "http://example.com/two%20words.ogg",
		"http://example.com/%e2%82%ac?x=%00":      "http://example.com/%e2%82%ac?x=%00",
		"http://a.b.c.example/~user;v=1/x,y/'z()": "http://a.b.c.example/~user;v=1/x,y/'z()",
		long: "https://example.com/" + strings.Repeat("%C3%A9", 2028),
	} {
		u, err := CheckURL(raw)
		if err != nil {
			t.Errorf("%q: %v", raw, err)
		} else if u.String() != want {
			t.Errorf("%q: %q, want %q", raw, u, want)
		}
	}
}

func TestCheckURLRefuses(t *testing.T) {
	for raw, says := range map[string]string{
		"":                                 "is empty",
		"example.com/a.png":                "must begin with http:// or https://",
		"ftp://example.com/":               "must begin with http:// or https://",
		"file:///etc/passwd":               "must begin with http:// or https://",
		"gopher://example.com/":            "must begin with http:// or https://",
		"http:example.com":                 "has no host",
		"http://":                          "has no host",
		"http:///x":                        "has no host",
		"http://:80/":                      "has no host",
		"http://user@example.com/":         "user name or password",
		"http://u:p@example.com/":          "user name or password",
		"http://@example.com/":             "user name or password",
		"http://example.com:0/":            "from 1 to 65535",
		"http://example.com:65536/":        "from 1 to 65535",
		"http://example.com:http/":         "not a URL",
		"http://exa mple.com/":             "not a URL",
		"http://example.com/%zz":           "not a URL",
		"http://example.com/%00":           "NUL",
		"http://example.com/\x00":          "control characters",
		"http://example.com/a\tb":          "control characters",
		"http://example.com/\r\nX: y":      "control characters",
		"http://example.com/\xff":          "control characters",
		`http://example.com\@evil.example`: "backslash",
		"http://127.1/":                    "four decimal numbers",
		"http://2130706433/":               "four decimal numbers",
		"http://0x7f000001/":               "four decimal numbers",
		"http://0177.0.0.1/":               "four decimal numbers",
		"http://1.2.3.4.5/":                "four decimal numbers",
		"http://[fe80::1%25eth0]/":         "IPv6",
		"http://[1.2.3.4]/":                "not a URL",
		"http://a..b/":                     "not a host name",
		"http://.example/":                 "not a host name",
		"http://exa,mple/":                 "not a host name",
		"http://" + strings.Repeat("a", 64) + ".example/":  "not a host name",
		"http://" + strings.Repeat("a.", 127) + "example/": "not a host name",
		"https://example.com/" + strings.Repeat("é", 2029): "at most 2048",
	} {
		_, err := CheckURL(raw)
		if _, ok := errors.AsType[*BadURL](err); !ok {
			t.Errorf("%q: %v, want a *BadURL", raw, err)
		} else if !strings.Contains(err.Error(), says) || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%q: %q, want a sentence with %q", raw, err, says)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, raw := range hostile {
		f.Add(raw)
	}
	f.Add("https://example.com/a.png?x=y#z")
	f.Add("http://bücher.example:8080/ü")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := CheckURL(raw)
		if err != nil {
			if _, ok := errors.AsType[*BadURL](err); !ok {
				t.Errorf("%T, want a *BadURL", err)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || u.Opaque != "" {
			t.Errorf("%q is accepted as %#v", raw, u)
		}
		if utf8.RuneCountInString(raw) > maxURL {
			t.Errorf("%d characters are accepted", utf8.RuneCountInString(raw))
		}
		again, err := CheckURL(u.String())
		if len(u.String()) > maxURL {
			again, err = checkParsed(u) // percent-encoding made it longer
		}
		if err != nil || again.String() != u.String() {
			t.Errorf("%q becomes %q and then %v, %v", raw, u, again, err)
		}
	})
}

func TestLinks(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"no link, only http:// and https://", nil},
		{"See https://example.com.", []string{"https://example.com"}},
		{"(https://example.com/a_(b)?c=d&e=%20)", []string{"https://example.com/a_(b)?c=d&e=%20"}},
		{"*https://example.com/x*, <http://localhost:3000/y> \"HTTPS://EXAMPLE.com\"",
			[]string{"https://example.com/x", "http://localhost:3000/y", "HTTPS://EXAMPLE.com"}},
		{"https://a.example https://a.example", []string{"https://a.example"}},
		{"ftp://example.com mailto:a@example.com", nil},
		{"baca https://example.com/kopi-☕?x=1!", []string{"https://example.com/kopi-☕?x=1"}},
	} {
		if got := Links(test.text); !slices.Equal(got, test.want) {
			t.Errorf("Links(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func FuzzLinks(f *testing.F) {
	for _, seed := range []string{"see (https://example.com/(a)).", "\x00#’https://é\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, link := range Links(text) {
			if !strings.Contains(text, link) || !strings.Contains(strings.ToLower(link), "://") {
				t.Errorf("Links(%q) has %q", text, link)
			}
		}
	})
}
