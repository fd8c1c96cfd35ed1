package safehttp

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL is how long an address may be, in characters: the limit that the interface sets for voice,
// used for all.
const maxURL = 2048

// BadURL says what is wrong with a URL and what to send instead.
type BadURL struct{ Sentence string }

func (e *BadURL) Error() string { return e.Sentence }

// CheckURL checks what is wrong with a URL in any configuration; its address is checked when it is dialled. It returns
// the URL with its host in ASCII and without a fragment, which is never sent to a server. An error is a *BadURL.
func CheckURL(raw string) (*url.URL, error) {
	bad := func(sentence string) (*url.URL, error) { return nil, &BadURL{sentence} }
	switch {
	case raw == "":
		return bad("The address is empty. Send an http:// or https:// URL.")
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, unicode.IsControl):
		return bad("The address contains control characters. Send it percent-encoded.")
	case utf8.RuneCountInString(raw) > maxURL:
		return bad("The address is too long. Send at most 2048 characters.")
	case strings.Contains(raw, `\`):
		return bad(`The address contains a backslash. Use "/" instead.`)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return bad("The address is not a URL. Send one such as https://example.com/file.")
	}
	return checkParsed(u)
}

var linkForm = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"“”«»` + "`" + `]+`)

// Links returns the http and https addresses in a text, each once, in order, without the end of the sentence around them:
// punctuation, marks of emphasis, and a bracket that was opened before the address.
func Links(text string) []string {
	var links []string
	for _, link := range linkForm.FindAllString(text, -1) {
		for before := ""; before != link; {
			before = link
			link = strings.TrimRight(link, ".,;:!?'*_~…’")
			for _, pair := range []string{"()", "[]", "{}"} {
				if strings.HasSuffix(link, pair[1:]) && strings.Count(link, pair[1:]) > strings.Count(link, pair[:1]) {
					link = link[:len(link)-1]
				}
			}
		}
		if u, err := url.Parse(link); err == nil && u.Host != "" && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	return links
}

// checkParsed is CheckURL for an address that was read already, and may have grown by that.
func checkParsed(u *url.URL) (*url.URL, error) {
	bad := func(sentence string) (*url.URL, error) { return nil, &BadURL{sentence} }
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("The address must begin with http:// or https://.")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return bad("The address must not contain a user name or password.")
	case u.Opaque != "" || u.Hostname() == "":
		return bad("The address has no host. Send one such as https://example.com/file.")
	case strings.ContainsRune(u.Path, 0):
		return bad("The address contains a NUL character (%00).")
	}
	host, sentence := checkHost(u)
	if sentence != "" {
		return bad(sentence)
	}
	checked := *u
	checked.Host = host
	checked.Fragment, checked.RawFragment = "", ""
	return &checked, nil
}

func checkHost(u *url.URL) (host, wrong string) {
	host, wrong = checkHostname(u.Hostname(), strings.HasPrefix(u.Host, "["))
	port := u.Port()
	if wrong != "" || port == "" {
		return host, wrong
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "The port of the address must be a number from 1 to 65535."
	}
	return host + ":" + port, ""
}

func checkHostname(name string, bracketed bool) (host, wrong string) {
	if bracketed {
		addr, err := netip.ParseAddr(name)
		if err != nil || addr.Is4() || addr.Zone() != "" {
			return "", "The host of the address is not an IPv6 address without a zone, for example [2001:db8::1]."
		}
		return "[" + addr.String() + "]", ""
	}
	ascii, err := toASCII(name)
	if err != nil || !isHostname(ascii) {
		return "", "The host of the address is not a host name or IP address."
	}
	if _, err := netip.ParseAddr(ascii); err != nil && endsInNumber(ascii) {
		return "", "The host of the address ends in a number but is not an IPv4 address. " +
			"Write one as four decimal numbers, for example 192.0.2.1."
	}
	return ascii, ""
}

func toASCII(name string) (string, error) {
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return idna.Lookup.ToASCII(name)
	}
	return strings.ToLower(name), nil // underscores and the like, which IDNA refuses, are in use
}

func isHostname(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// endsInNumber reports whether a resolver may read a name as an old spelling of an IPv4 address: 127.1, 2130706433,
// 0x7f000001, 0177.0.0.1.
func endsInNumber(name string) bool {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}
