package otp

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"parley"
)

const (
	// linkAlphabet has 31 characters, so that a code of 13 has 64 bits: however many links are open,
	// guessing one is hopeless. It leaves out what looks like something else.
	linkAlphabet   = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
	linkCodeLength = 13

	// maxCandidates is how many things that look like a code are looked up of one message. More stand
	// only in messages that nobody types.
	maxCandidates = 32
)

// place is where in a text something stands that may be the code of a link.
type place struct {
	at   int // of its first byte
	code string
}

// places finds what may be the code of a link, in either case: every 13 characters of the alphabet in
// a row, because a prompt may have the code stand right beside other letters. A text without any costs
// no more than reading it.
func places(text string) []place {
	var found []place
	run := 0
	for at := range len(text) {
		if !inAlphabet[text[at]] {
			run = 0
			continue
		}
		if run++; run < linkCodeLength {
			continue
		}
		if len(found) == maxCandidates {
			return found
		}
		from := at + 1 - linkCodeLength
		found = append(found, place{from, strings.ToUpper(text[from : at+1])})
	}
	return found
}

// inAlphabet tells the bytes that a code is made of, in either case, from all others.
var inAlphabet = func() (is [256]bool) {
	for _, c := range []byte(linkAlphabet + strings.ToLower(linkAlphabet)) {
		is[c] = true
	}
	return is
}()

// mask is what history shows in place of a code.
const mask = "••••••••"

// hide masks the codes of links in a text.
func hide(text string, known []hit) string {
	var b strings.Builder
	end := 0
	for _, p := range known {
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

// hideIn masks the codes in what a message says. A preview may repeat the text, so it goes.
func hideIn(c parley.Content, known []hit) parley.Content {
	text := hide(c.Text(), known)
	switch c := c.(type) {
	case parley.Text:
		return parley.Text{Body: text}
	case parley.Image:
		c.Caption = text
		return c
	case parley.Video:
		c.Caption = text
		return c
	case parley.File:
		c.Caption = text
		return c
	case parley.Location:
		c.Title = text
		return c
	case parley.Poll:
		c.Title = text
		return c
	}
	return c
}

// samePrompt reports whether a text is the prompt as it was given. Keyboards and people change some
// things that mean nothing: how accents are composed, upper and lower case, blanks, and the shape of
// quotation marks.
func samePrompt(text, prompt string) bool { return fold(text) == fold(prompt) }

// fold takes a text down to what counts of it.
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
	return norm.NFC.String(b.String()) // letters may compose anew once they are lower case
}

// isBlank reports whether a character is a blank, or one of those that nobody sees and that come along
// when a text is copied.
func isBlank(r rune) bool {
	switch r {
	case '\u200b', '\u2060', '\ufeff': // zero-width space, word joiner, byte order mark
		return true
	}
	return unicode.IsSpace(r)
}

// foldRune returns one shape of a character for all its cases, and one for all double and one for all
// single quotation marks.
func foldRune(r rune) rune {
	switch r {
	case '“', '”', '„', '‟', '«', '»', '″', '〝', '〞', '＂':
		return '"'
	case '‘', '’', '‚', '‛', '‹', '›', '′', '`', '´', '＇':
		return '\''
	}
	return unicode.ToLower(unicode.ToUpper(r))
}
