// Package form reads and validates the fields of a request, from its JSON body or its query.
//
// Invariants:
//   - Errors are collected by dotted path: a request is refused once, with all of them.
//   - Types are strict, null means not given, and unknown fields are ignored.
//   - A body is one JSON object of at most 16 levels and 10,000 values, without duplicate names and without U+0000.
//   - A [Reader] aliases the body. A [Form] returns copies, which stay valid after [Reader.Release].
package form

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"parley"
)

// Reader reads the fields of one request. Readers are pooled.
type Reader struct {
	doc   document
	wrong []parley.FieldError
}

var readers = sync.Pool{New: func() any {
	r := &Reader{doc: document{values: make([]value, 0, 16)}}
	r.doc.decode = jsontext.NewDecoder(&r.doc.input)
	return r
}}

func NewReader() *Reader { return readers.Get().(*Reader) }

// Release returns the reader to the pool. Its forms must not be used after that.
func (r *Reader) Release() {
	clear(r.wrong) // the sentences
	r.wrong = r.wrong[:0]
	readers.Put(r)
}

func (r *Reader) Empty() Form { return Form{doc: &r.doc, at: none, wrong: &r.wrong} }

// JSON reads a body, which must be one JSON object. Every error is a BadRequest that says what to fix.
func (r *Reader) JSON(body []byte) (Form, error) {
	return Form{doc: &r.doc, wrong: &r.wrong}, r.doc.readJSON(body)
}

// Query reads the parameters of an address. Every error is a BadRequest that says what to fix.
func (r *Reader) Query(query string) (Form, error) {
	return Form{doc: &r.doc, wrong: &r.wrong}, r.doc.readQuery(query)
}
