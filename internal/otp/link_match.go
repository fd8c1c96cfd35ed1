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

	// maxCandidates is how many things that look like a code are looked up of one message. No prompt of 1,024
	// characters with a name in it has more, and in one that is filled with names over and over there are
	// fewer ends of runs.
	maxCandidates = 1100
)

// run is a part of a text, from one byte to before another, that is all characters of the alphabet.
type run struct{ from, to int }

// runs finds the runs in which a code has room, in either case. A text without any costs no more than
// reading it.
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

// candidates lists what may be the code of a link in a text, in upper case and each once. A prompt may
// have the code stand right beside other letters, so that it can be any part of a run. But nearly
// always there is something else at one side of it: so the ends of all runs come first, then what
// stands one character further in, and so on. However long the words of a prompt are, the code is
// among what comes first.
func candidates(text string) []string {
	left := runs(text)
	if len(left) == 0 {
		return nil
	}
	text = capitals(text)
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

// capitals makes the letters capital that codes are made of. Every byte stays where it is.
func capitals(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// place is where in a text a code stands.
type place struct {
	at   int // of its first byte
	code string
}

// placesOf finds a code wherever it stands in a text, in either case.
func placesOf(code, text string) []place {
	var found []place
	text = capitals(text)
	for at := 0; ; {
		next := strings.Index(text[at:], code)
		if next < 0 {
			return found
		}
		found = append(found, place{at + next, code})
		at += next + len(code)
	}
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

// hide masks the codes of links in a text, given in the order in which they stand in it.
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
