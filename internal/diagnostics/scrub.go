package diagnostics

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	addresses = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)
	numbers   = regexp.MustCompile(`\+\d(?:[ .()-]*\d){6,}|\b\d{8,}\b|\d{8,}@`)
	tokens    = regexp.MustCompile(`\beyJ[\w-]+\.[\w-]*\.[\w-]*|\bwhsec_[\w+/=-]+`)
)

// scrub removes from a sentence what its writer should have omitted: addresses except their host, phone numbers except
// their last digits, and tokens and secrets.
func scrub(sentence string) string {
	sentence = addresses.ReplaceAllStringFunc(sentence, func(found string) string {
		address := strings.TrimRight(found, ".,;:!?)")
		scheme, _, _ := strings.Cut(address, "://")
		return scheme + "://" + toHost(address) + found[len(address):]
	})
	sentence = tokens.ReplaceAllString(sentence, "[secret]")
	return scrubNumbers(sentence)
}

func scrubNumbers(text string) string {
	return numbers.ReplaceAllStringFunc(text, func(found string) string {
		number, at := strings.CutSuffix(found, "@")
		if at {
			return maskNumber(number) + "@"
		}
		return maskNumber(number)
	})
}

// shownDigits are enough to recognise one of a few numbers.
const shownDigits = 3

func maskNumber(number string) string {
	if number == "" {
		return ""
	}
	return "…" + number[max(0, len(number)-shownDigits):]
}

// toHost is the host and port of an address. The rest may contain secrets.
func toHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "unknown"
	}
	return u.Host
}
