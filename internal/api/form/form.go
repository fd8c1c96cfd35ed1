package form

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

	"github.com/go-json-experiment/json/jsontext"

	"parley"
)

// Form reads and validates the fields of a request. Each method reads one field and collects its error under its
// dotted path. After an error the methods return zero values; [Form.Err] returns all errors.
type Form struct {
	doc     *document
	at      int32  // the object with the fields; none: missing or no object
	element bool   // at is an element of an array, and every name means it
	path    string // of that object or array, with a dot at the end; empty at the top
	wrong   *[]parley.FieldError
}

// Err returns all errors so far as one, or nil.
func (f Form) Err() error {
	if len(*f.wrong) == 0 {
		return nil
	}
	return parley.InvalidFields(slices.Clone(*f.wrong))
}

// Failed is Err, but if there is an error it also runs checks that otherwise run only later, to report all at once.
func (f Form) Failed(checks ...func() error) error {
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
				f.Note(found.Field, found.Sentence)
			}
		}
	}
	return f.Err()
}

// Fail adds an error. The sentence begins with the field's path.
func (f Form) Fail(name, format string, args ...any) {
	path := f.path + name
	f.Note(path, path+" "+fmt.Sprintf(format, args...))
}

// Note adds an error with a complete sentence.
func (f Form) Note(path, sentence string) {
	*f.wrong = append(*f.wrong, parley.FieldError{Field: path, Sentence: sentence})
}

func (f Form) Path(name string) string { return f.path + name }

// find returns a field; nil: not given.
func (f Form) find(name string) *value {
	switch {
	case f.at == none:
		return nil
	case f.element:
		return &f.doc.values[f.at]
	}
	at, twice := f.doc.member(f.at, name)
	if twice {
		f.Fail(name, "must be sent once.")
	}
	if at == none {
		return nil
	}
	return &f.doc.values[at]
}

// Has reports whether a field is given and not null.
func (f Form) Has(name string) bool { return f.kind(name) != 0 }

func (f Form) IsObject(name string) bool { return f.kind(name) == '{' }

func (f Form) IsArray(name string) bool { return f.kind(name) == '[' }

// Names lists the names of the fields that are given, in order.
func (f Form) Names() (names []string) {
	if f.at == none {
		return nil
	}
	for i := f.doc.values[f.at].first; i != none; i = f.doc.values[i].next {
		names = append(names, string(f.doc.values[i].name))
	}
	return names
}

// kind returns zero if the field is missing or null.
func (f Form) kind(name string) jsontext.Kind {
	at := f.at
	if at != none && !f.element {
		at, _ = f.doc.member(f.at, name)
	}
	if at == none || f.doc.values[at].kind == 'n' {
		return 0
	}
	return f.doc.values[at].kind
}

func (v *value) isText() bool { return v.kind == '"' || v.kind == parameter }

// text returns a string of any length. It fails with the sentence missing if the field is not given, unless that is
// empty, and with noText if it is no string.
func (f Form) text(name, missing, noText string) (string, bool) {
	v := f.find(name)
	switch {
	case v != nil && v.isText():
		return v.text(), true
	case v != nil:
		f.Fail(name, "%s", noText)
	case missing != "":
		f.Fail(name, "%s", missing)
	}
	return "", false
}

// String returns a required string of any length; what describes it. It reports false if there is none.
func (f Form) String(name, what string) (string, bool) {
	return f.text(name, "is required: "+what+".", "must be a string: "+what+".")
}

// Parse parses an optional string; what describes it. It reports false if it is missing or invalid.
func Parse[T any](f Form, name string, parse func(text string) (T, error), what string) (T, bool) {
	var zero T
	s, given := f.text(name, "", "must be "+what+".")
	if !given {
		return zero, false
	}
	t, err := parse(s)
	if err != nil {
		f.Fail(name, "must be %s.", what)
		return zero, false
	}
	return t, true
}

// Text returns a required string of min to max characters.
func (f Form) Text(name string, min, max int) string {
	return f.checkedText(name, "is required.", min, max)
}

// OptionalText returns a string of min to max characters, or "" if it is not given.
func (f Form) OptionalText(name string, min, max int) string {
	return f.checkedText(name, "", min, max)
}

func (f Form) checkedText(name, missing string, min, max int) string {
	s, given := f.text(name, missing, "must be a string.")
	if !given {
		return ""
	}
	// A character has 1 to 4 bytes, so most lengths need no counting.
	if len(s) >= min*utf8.UTFMax && len(s) <= max {
		return s
	}
	switch n := utf8.RuneCountInString(s); {
	case n < min && n == 0:
		f.Fail(name, "must not be empty.")
		return ""
	case n < min || n > max:
		f.Fail(name, "must be %s long; it has %d.", amount(min, max, "character"), n)
		return ""
	}
	return s
}

// amount returns "1 to 100 characters" or "at most 64 characters".
func amount(min, max int, unit string) string {
	if min == 0 {
		return fmt.Sprintf("at most %d %ss", max, unit)
	}
	return fmt.Sprintf("%d to %d %ss", min, max, unit)
}

// Matching returns a required string that matches a pattern; what describes it.
func (f Form) Matching(name string, pattern *regexp.Regexp, what string) string {
	s, given := f.text(name, "is required: "+what+".", "must be "+what+".")
	if given && !pattern.MatchString(s) {
		f.Fail(name, "must be %s.", what)
		return ""
	}
	return s
}

// Choice returns one of some words; if the field is optional and missing, the first.
func (f Form) Choice(name string, required bool, words ...string) string {
	v := f.find(name)
	switch {
	case v == nil && !required:
		return words[0]
	case v == nil:
		f.Fail(name, "is required: one of %s.", strings.Join(words, ", "))
		return ""
	case v.isText():
		if s := v.text(); slices.Contains(words, s) {
			return s
		}
	}
	f.Fail(name, "must be one of %s.", strings.Join(words, ", "))
	return ""
}

// Bool returns byDefault if the field is not given.
func (f Form) Bool(name string, byDefault bool) bool {
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
	f.Fail(name, "must be true or false.")
	return byDefault
}

// Flag returns a boolean that callers may also write as a string or a number.
func (f Form) Flag(name string, byDefault bool) bool {
	v := f.find(name)
	if v == nil {
		return byDefault
	}
	word := string(v.raw)
	if v.kind == '"' {
		word = v.text()
	}
	switch word {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	f.Fail(name, `must be true or false (also accepted: "true", "false", 1, 0, "1", "0").`)
	return byDefault
}

// Whole returns a whole number from min to max; byDefault if the field is not given.
func (f Form) Whole(name string, byDefault, min, max int64) int64 {
	v := f.find(name)
	if v == nil {
		return byDefault
	}
	if v.kind != '0' && v.kind != parameter {
		f.Fail(name, "must be a number: %s.", bounds(min, max))
		return byDefault
	}
	n, ok := parseWhole(string(v.raw), v.kind == parameter)
	if !ok || n < min || n > max {
		f.Fail(name, "must be %s.", bounds(min, max))
		return byDefault
	}
	return n
}

func (f Form) RequiredWhole(name string, min, max int64) int64 {
	if !f.Has(name) {
		f.Fail(name, "is required: %s.", bounds(min, max))
		return min
	}
	return f.Whole(name, min, min, max)
}

func bounds(min, max int64) string {
	if max == math.MaxInt64 {
		return fmt.Sprintf("a whole number of at least %d", min)
	}
	return fmt.Sprintf("a whole number from %d to %d", min, max)
}

// parseWhole accepts 300, 300.0 and 3e2, but not 300.5. A number that is too large becomes the largest int64. In a
// query only digits are allowed.
func parseWhole(s string, onlyDigits bool) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return n, !onlyDigits || s[0] != '+'
	case errors.Is(err, strconv.ErrRange):
		return n, true // ParseInt returns the nearest
	case onlyDigits:
		return 0, false
	}
	return parseFraction(s)
}

// parseFraction reads a JSON number with a fraction or an exponent. It works on the digits, because as a float
// 300.0000000000000000000001 would be whole.
func parseFraction(s string) (int64, bool) {
	const (
		most = 20      // digits, more than fit
		far  = 1 << 30 // larger exponents make no difference
	)
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(before+after, "0")
	// The position of the point among the digits.
	point := min(max(exponent, -far), far) + len(digits) - len(after)
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return 0, true
	case len(digits) > point:
		return 0, false // digits after the point
	}
	whole := digits + strings.Repeat("0", min(point, most)-min(len(digits), most))
	if negative {
		whole = "-" + whole
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange) // ParseInt returns the nearest
}

// Object returns the form of a nested object, and whether it is given and is one.
func (f Form) Object(name string, required bool) (Form, bool) {
	inside := Form{doc: f.doc, at: none, path: f.path + name + ".", wrong: f.wrong}
	at := f.at
	if at != none && !f.element {
		at, _ = f.doc.member(f.at, name)
	}
	switch {
	case at == none && required && f.at != none:
		f.Fail(name, "is required: an object.")
	case at == none:
	case f.doc.values[at].kind != '{':
		f.Fail(name, "must be an object.")
	default:
		inside.at = at
		return inside, true
	}
	return inside, false
}

// List calls visit for each element of an array. The index is the name of the element in the form.
func (f Form) List(name string, min, max int, required bool, visit func(f Form, index string)) {
	v := f.find(name)
	switch {
	case v == nil && required:
		f.Fail(name, "is required: an array of %s.", amount(min, max, "element"))
	case v == nil:
	case v.kind != '[':
		f.Fail(name, "must be an array of %s.", amount(min, max, "element"))
	case int(v.count) < min || int(v.count) > max:
		f.Fail(name, "must have %s; it has %d.", amount(min, max, "element"), v.count)
	default:
		inside := Form{doc: f.doc, element: true, path: f.path + name + ".", wrong: f.wrong}
		n := 0
		for i := v.first; i != none; i = f.doc.values[i].next {
			inside.at = i
			visit(inside, strconv.Itoa(n))
			n++
		}
	}
}

// Texts returns an array of min to max strings of shortest to longest characters.
func (f Form) Texts(name string, min, max, shortest, longest int) []string {
	var texts []string
	f.List(name, min, max, true, func(f Form, index string) {
		texts = append(texts, f.Text(index, shortest, longest))
	})
	return texts
}
