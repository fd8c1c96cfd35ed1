package sandbox

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Codes returns what looks like a one-time code in a text: 4 to 8 digits, or 4 to 13 letters and digits. A code without
// digits, or in lower case, looks like a word, so it must also be set apart: emphasised, alone on a line, or after
// "code:". Codes in a sentence about codes come first. Phone numbers, prices, dates and the like are not codes.
func Codes(text string) []string {
	if len(text) < minCode {
		return nil
	}
	masked, about := text, codeWord.MatchString(text)
	if strings.ContainsAny(text, "0123456789") {
		masked = mask(text)
	} else if !about {
		return nil // most texts are about something else
	}
	var near, far []string
	for _, at := range wordPattern.FindAllStringIndex(masked, -1) {
		start, end := at[0], at[1]
		token := masked[start:end]
		if !isCode(masked, start, end, about) || slices.Contains(near, token) || slices.Contains(far, token) {
			continue
		}
		if about && codeWord.MatchString(sentence(masked, start)) {
			near = append(near, token)
		} else {
			far = append(far, token)
		}
	}
	return append(near, far...)
}

const (
	minCode   = 4
	maxDigits = 8  // longer ones are numbers of orders, accounts and phones
	maxCode   = 13 // the code of a login link
)

var (
	wordPattern = regexp.MustCompile(`[\p{L}\p{Nd}\p{M}]+`) // the same characters as inWord

	codeWord = regexp.MustCompile(`(?i)\b(?:code|kode|otp|pin|passcode|password|sandi|token|verif[a-z]*)\b`)

	// What contains digits and is not a code.
	noise = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b(?:https?://|www\.)\S+`),                                                  // links
		regexp.MustCompile(`\S+@\S+`),                                                                       // addresses of mail
		regexp.MustCompile(`\+\d{1,15}(?:[ .()-]{1,2}\d{1,5}\b){0,5}`),                                      // phone numbers: +62 812-…
		regexp.MustCompile(`\b(?:0|62)\d{1,4}(?:[ .-]\d{3,5}){2,4}\b`),                                      // 0812 3456 7890
		regexp.MustCompile(`\b\d{2,5}(?:-\d{2,5}){2,4}\b`),                                                  // 812-3456-7890
		regexp.MustCompile(`(?i)(?:\b(?:rp|idr|usd|eur|sgd|myr|rm)\.?|[$€£¥₹])\s?\d[\d.,]*\b`),              // prices: Rp 150.000
		regexp.MustCompile(`(?i)\b\d[\d.,]*(?:k\b|,-|\s?(?:rupiah|ribu|juta|rb|jt|idr|usd|eur|sgd|myr)\b)`), // 150000 rupiah
		regexp.MustCompile(`\b\d[\d.,]*\s?%`),                                                               // shares
		regexp.MustCompile(`\b\d{1,4}[/-]\d{1,2}[/-]\d{1,4}\b`),                                             // dates: 2026-11-15
		regexp.MustCompile(`(?i)\b(?:jan|feb|mar|apr|may|mei|jun|jul|aug|agu|sep|o[ck]t|nov|de[cs])[a-z]*\.?\s(?:\d{1,2},?\s)?(?:19|20)\d\d\b`),
		regexp.MustCompile(`\b\d{1,2}:\d{2}(?::\d{2})?\b`), // times
		regexp.MustCompile(`\b\d+(?:[.,]\d+)+\b`),          // 12,500 and 3.14
		regexp.MustCompile(`(?i)\b\d+(?:kb|mb|gb|tb|kg|ml|km|cm|mm|am|pm|wib|wita|wit)\b`),
	}
)

// mask blanks out what is not a code, without moving anything. A code can look like a price or a size: *rp88*, *25kg*.
func mask(text string) string {
	masked := []byte(text)
	for _, pattern := range noise {
		for _, at := range pattern.FindAllIndex(masked, -1) {
			if !emphasised.Match(masked[max(at[0]-1, 0):min(at[1]+1, len(masked))]) {
				clear(masked[at[0]:at[1]])
			}
		}
	}
	return string(masked)
}

var emphasised = regexp.MustCompile(`^\*[0-9A-Za-z]+\*$`)

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// isCode decides about one run of letters and digits. about says whether the text speaks of codes.
func isCode(text string, start, end int, about bool) bool {
	token := text[start:end]
	digits, upper, lower, plain := count(token)
	if !plain || len(token) < minCode || len(token) > maxCode || joined(text, start, end) {
		return false
	}
	switch {
	case upper+lower == 0:
		return digits <= maxDigits
	case digits > 0 && lower == 0:
		return true
	case digits == 0 && upper > 0 && lower > 0:
		return false // a word at the beginning of a sentence, or a name
	}
	return about && !codeWord.MatchString(token) && isSetApart(text, start, end)
}

func count(token string) (digits, upper, lower int, plain bool) {
	for i := range len(token) {
		switch c := token[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		default:
			return 0, 0, 0, false
		}
	}
	return digits, upper, lower, true
}

// joined reports whether a token is part of something longer: a file's name, an order's number.
func joined(text string, start, end int) bool {
	const joints = "-_./\\@&'’#+%\x00"
	before, size := utf8.DecodeLastRuneInString(text[:start])
	if start > 0 && strings.ContainsRune(joints, before) {
		further, _ := utf8.DecodeLastRuneInString(text[:start-size])
		if before == '#' || before == '+' || before == '\x00' || start > size && inWord(further) {
			return true
		}
	}
	after, size := utf8.DecodeRuneInString(text[end:])
	if end < len(text) && strings.ContainsRune(joints, after) {
		further, _ := utf8.DecodeRuneInString(text[end+size:])
		return after == '%' || after == '\x00' || end+size < len(text) && inWord(further)
	}
	return false
}

var (
	introduced = regexp.MustCompile(`(?i)\b(?:code|kode|otp|pin|passcode|password|sandi|token)\b` +
		`[^.!?:=\n]{0,40}(?:\bis|\badalah|\byaitu|:|=)\s*$`)
	explained = regexp.MustCompile(`(?i)^\s(?:is your|is the|adalah kode|merupakan kode)\b`)
	pointing  = regexp.MustCompile(`(?i)^(?:here|this|that|below|ini|itu|berikut)$`)
)

const (
	openers = "*_`\"“'‘«([<"
	closers = "*_`\"”'’»)]>"
)

// isSetApart reports whether a token is where texts put a code and not a word.
func isSetApart(text string, start, end int) bool {
	before, after := text[:start], text[end:]
	opened, _ := utf8.DecodeLastRuneInString(before)
	closed, _ := utf8.DecodeRuneInString(after)
	if before != "" && after != "" && strings.ContainsRune(openers, opened) && strings.ContainsRune(closers, closed) {
		return true
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	beginsLine := strings.TrimSpace(line) == ""
	rest, _, _ := strings.Cut(after, "\n")
	if beginsLine && strings.TrimSpace(rest) == "" && (before != "" || after != "") {
		return true
	}
	if beginsLine && explained.MatchString(after) && !pointing.MatchString(text[start:end]) {
		return true
	}
	ends := after == "" || strings.ContainsRune(".,;!?)\n", closed) || strings.HasPrefix(after, " (")
	return ends && introduced.MatchString(before)
}

func sentence(text string, at int) string {
	begin := strings.LastIndexAny(text[:at], ".!?\n") + 1
	if end := strings.IndexAny(text[at:], ".!?\n"); end >= 0 {
		return text[begin : at+end]
	}
	return text[begin:]
}
