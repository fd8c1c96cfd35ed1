package form

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"parley"
)

const (
	// maxDepth is how deep a body may nest. The deepest that any endpoint reads is five: a body, its
	// pools, an item, its data, its file.
	maxDepth = 16
	// maxValues bounds the memory that a body of 1 MiB can take: the largest pool has some
	// hundreds of values.
	maxValues = 10_000
)

// value is one JSON value of a document, or one parameter of a query.
type value struct {
	kind  jsontext.Kind // '{' '[' '"' '0' 't' 'f' 'n', or parameter
	name  []byte        // of a member or parameter, unquoted; empty in an array
	raw   []byte        // as it is in the body; of a parameter, unescaped
	first int32         // the first member or element; none: there is none
	next  int32         // the next one of the same object or array; none: this is the last
	count int32         // how many members or elements it has
}

const (
	none      int32         = -1
	parameter jsontext.Kind = 'q' // a value from a query: text that may mean a number or a flag
)

// document holds the values of one request in the order in which they were read; the object that
// all others are part of is the first. It aliases the body.
type document struct {
	values []value
	input  bytes.Buffer
	decode *jsontext.Decoder
}

func (d *document) readJSON(body []byte) error {
	d.values = d.values[:0]
	d.input = *bytes.NewBuffer(body) // the decoder reads from it without copying
	d.decode.Reset(&d.input)
	switch kind := d.decode.PeekKind(); kind {
	case '{':
	case '[', '"', '0', 't', 'f', 'n':
		return parley.Errorf(parley.BadRequest, "The body must be a JSON object, for example {\"contact_id\": \"6281234567890@c.us\"}.")
	default:
		if len(bytes.TrimSpace(body)) == 0 {
			return parley.Errorf(parley.BadRequest, "The body is empty. Send a JSON object.")
		}
	}
	if _, err := d.read(body, nil, 1); err != nil {
		return explain(err, body)
	}
	if _, err := d.decode.ReadToken(); err != io.EOF {
		return parley.Errorf(parley.BadRequest, "The body goes on after the end of its JSON object. Send one object and nothing else.")
	}
	return nil
}

// read reads the next value with all that is in it and returns its index.
func (d *document) read(body, name []byte, depth int) (int32, error) {
	if depth > maxDepth {
		return none, parley.Errorf(parley.BadRequest, "The body nests deeper than %d levels.", maxDepth)
	}
	if len(d.values) == maxValues {
		return none, parley.Errorf(parley.BadRequest, "The body has more than %d values.", maxValues)
	}
	at := int32(len(d.values))
	kind := d.decode.PeekKind()
	d.values = append(d.values, value{kind: kind, name: name, first: none, next: none})
	if kind != '{' && kind != '[' {
		raw, err := d.decode.ReadValue()
		if err != nil {
			return none, err
		}
		d.values[at].raw = d.last(body, len(raw))
		return at, checkNUL(d.values[at].raw)
	}
	return at, d.readInside(body, at, depth)
}

func (d *document) readInside(body []byte, at int32, depth int) error {
	if _, err := d.decode.ReadToken(); err != nil {
		return err
	}
	isObject := d.values[at].kind == '{'
	previous := none
	for {
		if end := d.decode.PeekKind(); end == '}' || end == ']' {
			_, err := d.decode.ReadToken()
			return err
		}
		var name []byte
		if isObject {
			raw, err := d.decode.ReadValue()
			if err != nil {
				return err
			}
			if name, err = unquote(d.last(body, len(raw))); err != nil {
				return err
			}
		}
		child, err := d.read(body, name, depth+1)
		if err != nil {
			return err
		}
		if previous == none {
			d.values[at].first = child
		} else {
			d.values[previous].next = child
		}
		previous = child
		d.values[at].count++
	}
}

// last returns the last n bytes that the decoder went past.
func (d *document) last(body []byte, n int) []byte {
	end := d.decode.InputOffset()
	return body[end-int64(n) : end]
}

// unquote returns the text of a quoted string. Without escapes it is a part of the string itself.
func unquote(quoted []byte) ([]byte, error) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return nil, errors.New("no string")
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err == nil && bytes.IndexByte(text, 0) >= 0 {
		err = parley.Errorf(parley.BadRequest, "The body holds the character U+0000, which no text may contain.")
	}
	return text, err
}

// checkNUL refuses a string that holds a NUL, which can only be there as an escape: databases do not
// accept it in text.
func checkNUL(raw []byte) error {
	if raw[0] != '"' || !bytes.Contains(raw, []byte(`\u0000`)) {
		return nil
	}
	_, err := unquote(raw)
	return err
}

func explain(err error, body []byte) error {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return parley.Errorf(parley.BadRequest, "The body ends before its JSON object does.")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return parley.Errorf(parley.BadRequest, "The body gives the field %q twice, near byte %d. Send each field once.",
			shortened(wrong.JSONPointer.LastToken()), wrong.ByteOffset)
	case !utf8.Valid(body):
		return parley.Errorf(parley.BadRequest, "The body is not valid UTF-8.")
	case bytes.HasPrefix(body, []byte("\uFEFF")):
		return parley.Errorf(parley.BadRequest, "The body is not valid JSON: it begins with a byte order mark. Send it without.")
	case bytes.IndexByte(body, 0) >= 0:
		return parley.Errorf(parley.BadRequest, "The body is not valid JSON: it holds the character U+0000, which no text may contain.")
	case ok && strings.Contains(wrong.Error(), "surrogate"):
		return parley.Errorf(parley.BadRequest,
			"The body is not valid JSON: near byte %d it holds half of a surrogate pair, like \\ud83d alone, which is no character.",
			wrong.ByteOffset)
	case ok:
		return parley.Errorf(parley.BadRequest, "The body is not valid JSON near byte %d. Check its quotes, commas and braces.", wrong.ByteOffset)
	}
	return parley.Errorf(parley.BadRequest, "The body is not valid JSON.")
}

// shortened is the beginning of a name that may be as long as the body.
func shortened(name string) string {
	const shown = 40
	if utf8.RuneCountInString(name) <= shown {
		return name
	}
	return string([]rune(name)[:shown]) + "…"
}

func (d *document) readQuery(query string) error {
	d.values = append(d.values[:0], value{kind: '{', first: none, next: none})
	previous := none
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		n, err := unescape(name)
		if err != nil {
			return err
		}
		v, err := unescape(text)
		if err != nil {
			return err
		}
		if len(d.values) > maxParameters {
			return parley.Errorf(parley.BadRequest, "The address has more than %d query parameters.", maxParameters)
		}
		at := int32(len(d.values))
		d.values = append(d.values, value{kind: parameter, name: n, raw: v, first: none, next: none})
		if previous == none {
			d.values[0].first = at
		} else {
			d.values[previous].next = at
		}
		previous = at
	}
	return nil
}

// maxParameters is far above what any endpoint takes.
const maxParameters = 100

func unescape(s string) ([]byte, error) {
	text, err := url.QueryUnescape(s)
	if err != nil || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, parley.Errorf(parley.BadRequest, "The query of the address is not valid. Percent-encode its values as UTF-8.")
	}
	return []byte(text), nil
}

// member finds a member of an object by its name; none where it is missing or null. A query
// parameter that is given twice is found twice.
func (d *document) member(object int32, name string) (at int32, twice bool) {
	found := none
	for i := d.values[object].first; i != none; i = d.values[i].next {
		if string(d.values[i].name) != name {
			continue
		}
		if found != none {
			return found, true
		}
		if d.values[i].kind != 'n' {
			found = i
		}
	}
	return found, false
}

func (v *value) text() string {
	if v.kind == parameter {
		return string(v.raw)
	}
	text, err := unquote(v.raw)
	if err != nil {
		panic(fmt.Sprintf("a string that was read cannot be unquoted: %v", err))
	}
	return string(text)
}
