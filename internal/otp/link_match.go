package otp

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"parley"
)

const (
	// linkAlphabet has 31 characters, so that a code of 13 has 64 bits and cannot be guessed. It leaves out characters that
	// look alike.
	linkAlphabet   = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
	linkCodeLength = 13

	// maxCandidates bounds the lookups for one message. No prompt of 1,024 characters with a name has more.
	maxCandidates = 1100
)

// run is a part of a text, in bytes, with characters of the alphabet only.
type run struct{ from, to int }

func runs(text string) []run {
	var found []run
	from := 0
	for at := 0; at <= len(text); at++ {
		if at < len(text) && inAlphabet[text[at]] {
			continue
		}
		if at-from >= linkCodeLength {
			found = append(found, run{from, at})
		}
		from = at + 1
	}
	return found
}

// candidates lists possible codes of a link in a text, in upper case and each once. A prompt may have letters right beside
// the code, so it can be any part of a run. Nearly always one side of it is free: so the ends of all runs come first, then
// the parts one character further in, and so on.
func candidates(text string) []string {
	left := runs(text)
	if len(left) == 0 {
		return nil
	}
	text = uppercase(text)
	var codes []string
	seen := map[string]bool{}
	for len(left) > 0 {
		inner := left[:0]
		for _, r := range left {
			for _, at := range [...]int{r.from, r.to - linkCodeLength} {
				code := text[at : at+linkCodeLength]
				if seen[code] {
					continue
				}
				if len(codes) == maxCandidates {
					return codes
				}
				seen[code] = true
				codes = append(codes, code)
			}
			if r = (run{r.from + 1, r.to - 1}); r.to-r.from >= linkCodeLength {
				inner = append(inner, r)
			}
		}
		left = inner
	}
	return codes
}

// uppercase makes a to z uppercase. Other bytes stay as they are.
func uppercase(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

func matchLink(link parley.OTPLink, code, text string) (found []match) {
	text = uppercase(text)
	for at := 0; ; at += len(code) {
		next := strings.Index(text[at:], code)
		if next < 0 {
			return found
		}
		at += next
		found = append(found, match{at, code, link})
	}
}

// inAlphabet says which bytes are in linkAlphabet, in either case.
var inAlphabet = func() (is [256]bool) {
	for _, c := range []byte(linkAlphabet + strings.ToLower(linkAlphabet)) {
		is[c] = true
	}
	return is
}()

const mask = "••••••••"

// maskText masks codes in a text. The matches are sorted by position.
func maskText(text string, matches []match) string {
	var b strings.Builder
	end := 0
	for _, p := range matches {
		if p.at < end {
			continue // it overlaps the one before
		}
		b.WriteString(text[end:p.at])
		b.WriteString(mask)
		end = p.at + linkCodeLength
	}
	b.WriteString(text[end:])
	return b.String()
}

// maskContent masks codes in a content. It drops a preview, which may repeat the text.
func maskContent(c parley.Content, matches []match) parley.Content {
	text := maskText(c.Text(), matches)
	switch c.(type) {
	case parley.Text:
		return parley.Text{Body: text}
	case parley.Contacts: // the cards may repeat the title
		return parley.Contacts{Title: text}
	}
	return parley.WithText(c, text)
}

// samePrompt compares a text with the prompt. It ignores what keyboards change: how accents are composed, letter case,
// blanks, and the shape of quotation marks.
func samePrompt(text, prompt string) bool { return fold(text) == fold(prompt) }

func fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	gap := false // there were blanks since the last character
	for _, r := range norm.NFC.String(s) {
		if isBlank(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte(' ')
		}
		gap = false
		b.WriteRune(foldRune(r))
	}
	return norm.NFC.String(b.String()) // lower case letters may compose again
}

// isBlank reports whether a character is a blank, or an invisible one that comes with copied text.
func isBlank(r rune) bool {
	switch r {
	case '\u200b', '\u2060', '\ufeff': // zero-width space, word joiner, byte order mark
		return true
	}
	return unicode.IsSpace(r)
}

// foldRune returns one form for both cases of a letter, and one for all double and all single quotation marks.
func foldRune(r rune) rune {
	switch r {
	case '“', '”', '„', '‟', '«', '»', '″', '〝', '〞', '＂':
		return '"'
	case '‘', '’', '‚', '‛', '‹', '›', '′', '`', '´', '＇':
		return '\''
	}
	return unicode.ToLower(unicode.ToUpper(r))
}
