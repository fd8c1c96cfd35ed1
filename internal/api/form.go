package api

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
)

// form hands out the fields of a request, checked: each method reads one field, and what is wrong
// with it is noted under its dotted path, so that a caller learns of everything at once. After a
// failure the methods return zero values; [form.err] says whether any was noted.
type form struct {
	doc   *document
	at    int32  // the object whose members are the fields; none: it is missing or no object
	path  string // of that object, with a dot at the end; empty at the top
	wrong *[]parley.FieldError
}

// err returns everything that is wrong so far as one error, or nil.
func (f form) err() error {
	if len(*f.wrong) == 0 {
		return nil
	}
	return parley.InvalidFields(slices.Clone(*f.wrong))
}

// failed is err with everything that is wrong where anything is: checks find what would otherwise be found out
// only when the request is carried out.
func (f form) failed(checks ...func() error) error {
	if len(*f.wrong) == 0 {
		return nil
	}
	for _, check := range checks {
		e, ok := errors.AsType[*parley.Error](check())
		if !ok || e.Code != parley.Invalid {
			continue
		}
		for _, found := range e.Fields {
			if !slices.ContainsFunc(*f.wrong, func(known parley.FieldError) bool { return known.Field == found.Field }) {
				f.note(found.Field, found.Sentence)
			}
		}
	}
	return f.err()
}

// fail notes that a field is wrong. The sentence begins with the field's path.
func (f form) fail(name, format string, args ...any) {
	path := f.path + name
	f.note(path, path+" "+fmt.Sprintf(format, args...))
}

// note notes a sentence of its own wording.
func (f form) note(path, sentence string) {
	*f.wrong = append(*f.wrong, parley.FieldError{Field: path, Sentence: sentence})
}

// find looks a field up; nil: it is not given.
func (f form) find(name string) *value {
	if f.at == none {
		return nil
	}
	at, twice := f.doc.member(f.at, name)
	if twice {
		f.fail(name, "must be given once.")
	}
	if at == none {
		return nil
	}
	return &f.doc.values[at]
}

// has reports whether a field is given and not null.
func (f form) has(name string) bool {
	if f.at == none {
		return false
	}
	at, _ := f.doc.member(f.at, name)
	return at != none
}

// text returns a required string of min to max characters.
func (f form) text(name string, min, max int) string {
	v := f.find(name)
	if v == nil {
		f.fail(name, "is required.")
		return ""
	}
	return f.checkText(v, name, min, max)
}

// optionalText returns a string of min to max characters, or "" where it is not given.
func (f form) optionalText(name string, min, max int) string {
	v := f.find(name)
	if v == nil {
		return ""
	}
	return f.checkText(v, name, min, max)
}

func (f form) checkText(v *value, name string, min, max int) string {
	if v.kind != '"' && v.kind != parameter {
		f.fail(name, "must be a string.")
		return ""
	}
	s := v.text()
	// A character has 1 to 4 bytes, so most lengths need no counting.
	if len(s) >= min*utf8.UTFMax && len(s) <= max {
		return s
	}
	switch n := utf8.RuneCountInString(s); {
	case n < min && n == 0:
		f.fail(name, "must not be empty.")
		return ""
	case n < min || n > max:
		f.fail(name, "must be %s long; it has %d.", amount(min, max, "character"), n)
		return ""
	}
	return s
}

// amount says "1 to 100 characters" or "at most 64 characters".
func amount(min, max int, unit string) string {
	if min == 0 {
		return fmt.Sprintf("at most %d %ss", max, unit)
	}
	return fmt.Sprintf("%d to %d %ss", min, max, unit)
}

// matching returns a required string that fits a pattern; what says what it must be.
func (f form) matching(name string, pattern *regexp.Regexp, what string) string {
	v := f.find(name)
	switch {
	case v == nil:
		f.fail(name, "is required: it must be %s.", what)
	case v.kind != '"' && v.kind != parameter:
		f.fail(name, "must be a string: %s.", what)
	default:
		if s := v.text(); pattern.MatchString(s) {
			return s
		}
		f.fail(name, "must be %s.", what)
	}
	return ""
}

// choice returns one of a few words; without the field, the first where it is optional.
func (f form) choice(name string, required bool, words ...string) string {
	v := f.find(name)
	switch {
	case v == nil && !required:
		return words[0]
	case v == nil:
		f.fail(name, "is required: one of %s.", strings.Join(words, ", "))
		return ""
	case v.kind == '"' || v.kind == parameter:
		if s := v.text(); slices.Contains(words, s) {
			return s
		}
	}
	f.fail(name, "must be one of %s.", strings.Join(words, ", "))
	return ""
}

// boolean returns true or false; byDefault where the field is not given.
func (f form) boolean(name string, byDefault bool) bool {
	v := f.find(name)
	if v == nil {
		return byDefault
	}
	switch {
	case v.kind == 't', v.kind == parameter && string(v.raw) == "true":
		return true
	case v.kind == 'f', v.kind == parameter && string(v.raw) == "false":
		return false
	}
	f.fail(name, "must be true or false.")
	return byDefault
}

// flag returns a boolean that callers may also write as a string or a number.
func (f form) flag(name string, byDefault bool) bool {
	v := f.find(name)
	if v == nil {
		return byDefault
	}
	switch string(v.raw) {
	case `true`, `"true"`, `1`, `"1"`:
		return true
	case `false`, `"false"`, `0`, `"0"`:
		return false
	}
	if v.kind == '"' { // perhaps written with escapes
		switch v.text() {
		case "true", "1":
			return true
		case "false", "0":
			return false
		}
	}
	f.fail(name, `must be true or false (also taken: "true", "false", 1, 0, "1", "0").`)
	return byDefault
}

// whole returns a whole number from min to max; byDefault where the field is not given.
func (f form) whole(name string, byDefault, min, max int64) int64 {
	v := f.find(name)
	if v == nil {
		return byDefault
	}
	return f.checkWhole(v, name, byDefault, min, max)
}

// requiredWhole returns a whole number from min to max.
func (f form) requiredWhole(name string, min, max int64) int64 {
	v := f.find(name)
	if v == nil {
		f.fail(name, "is required: %s.", bounds(min, max))
		return min
	}
	return f.checkWhole(v, name, min, min, max)
}

func (f form) checkWhole(v *value, name string, byDefault, min, max int64) int64 {
	if v.kind != '0' && v.kind != parameter {
		f.fail(name, "must be a number: %s.", bounds(min, max))
		return byDefault
	}
	n, ok := parseWhole(string(v.raw), v.kind == parameter)
	if !ok || n < min || n > max {
		f.fail(name, "must be %s.", bounds(min, max))
		return byDefault
	}
	return n
}

func bounds(min, max int64) string {
	if max == math.MaxInt64 {
		return fmt.Sprintf("a whole number of at least %d", min)
	}
	return fmt.Sprintf("a whole number from %d to %d", min, max)
}

// parseWhole reads a whole number: 300, 300.0 and 3e2 are one, 300.5 is none. What is too large to
// hold becomes the largest that can be held. In a query only digits count.
func parseWhole(s string, onlyDigits bool) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return n, !onlyDigits || s[0] != '+'
	case errors.Is(err, strconv.ErrRange):
		return n, true // ParseInt gives the nearest
	case onlyDigits:
		return 0, false
	}
	return parseFraction(s)
}

// parseFraction reads a number of JSON that is written with a fraction or an exponent. It looks at the digits
// themselves: as a float 300.0000000000000000000001 would be whole.
func parseFraction(s string) (int64, bool) {
	const most = 20 // digits, more than fit
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(before+after, "0")
	// Where the point stands among the digits. No body has so many that a larger exponent says more.
	point := min(max(exponent, -2*maxBody), 2*maxBody) + len(digits) - len(after)
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return 0, true
	case len(digits) > point:
		return 0, false // some stand behind the point
	}
	whole := digits + strings.Repeat("0", min(point, most)-min(len(digits), most))
	if negative {
		whole = "-" + whole
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange) // ParseInt gives the nearest
}

// object returns the form of a nested object, and whether it is given and is one.
func (f form) object(name string, required bool) (form, bool) {
	inside := form{doc: f.doc, at: none, path: f.path + name + ".", wrong: f.wrong}
	if f.at == none {
		return inside, false
	}
	at, _ := f.doc.member(f.at, name)
	switch {
	case at == none && required:
		f.fail(name, "is required: it must be an object.")
	case at == none:
	case f.doc.values[at].kind != '{':
		f.fail(name, "must be an object.")
	default:
		inside.at = at
		return inside, true
	}
	return inside, false
}

// list calls visit for each element of an array of min to max elements, with the form by which the
// element is read and its index as the field's name.
func (f form) list(name string, min, max int, required bool, visit func(f form, index string, at int32)) {
	v := f.find(name)
	switch {
	case v == nil && required:
		f.fail(name, "is required: it must be an array of %s.", amount(min, max, "element"))
	case v == nil:
	case v.kind != '[':
		f.fail(name, "must be an array of %s.", amount(min, max, "element"))
	case int(v.count) < min || int(v.count) > max:
		f.fail(name, "must have %s; it has %d.", amount(min, max, "element"), v.count)
	default:
		inside := form{doc: f.doc, at: none, path: f.path + name + ".", wrong: f.wrong}
		n := 0
		for i := v.first; i != none; i = f.doc.values[i].next {
			visit(inside, strconv.Itoa(n), i)
			n++
		}
	}
}

// element returns the form of an array's element, and whether it is an object.
func (f form) element(index string, at int32) (form, bool) {
	inside := form{doc: f.doc, at: none, path: f.path + index + ".", wrong: f.wrong}
	if f.doc.values[at].kind != '{' {
		f.fail(index, "must be an object.")
		return inside, false
	}
	inside.at = at
	return inside, true
}

// texts returns an array of min to max strings of shortest to longest characters.
func (f form) texts(name string, min, max, shortest, longest int) []string {
	var texts []string
	f.list(name, min, max, true, func(f form, index string, at int32) {
		texts = append(texts, f.checkText(&f.doc.values[at], index, shortest, longest))
	})
	return texts
}
