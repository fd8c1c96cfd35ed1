package api

import (
	"errors"
	"net/http"
	"strings"

	"parley"
)

const (
	// maxBody is how large a body may be.
	maxBody = 1 << 20
	// maxOpenBody is how large it may be where no token is asked for: the longest text fits, each of its characters
	// escaped, and many at once do not fill the memory.
	maxOpenBody = 64 << 10
)

// input says where a route's fields come from.
type input int

const (
	nothing      input = iota // it has none
	query                     // the query of the address
	body                      // the body, which must be a JSON object
	optionalBody              // the same, but no body at all means an empty object
	queryOrBody               // the query, or the body where the query names no message
	noRoute                   // a path or method that does not exist: nothing is read
)

var errTooLarge = parley.Errorf(parley.TooLarge, "The body is larger than 1 MiB, the most that is taken.")

var errOpenTooLarge = parley.Errorf(parley.TooLarge, "The body is larger than 64 KiB, the most that is taken here.")

// readOpen reads the body of a route that is open to everybody, and its fields.
func (rt *route) readOpen(r *request, w http.ResponseWriter) error {
	if rt.input == nothing {
		return nil
	}
	if err := rt.readBodyOf(r, w, maxOpenBody, errOpenTooLarge); err != nil {
		return err
	}
	return rt.readFields(r)
}

// readBody reads the whole body, whether or not the route needs it: an idempotency key covers it.
func (rt *route) readBody(r *request, w http.ResponseWriter) error {
	return rt.readBodyOf(r, w, maxBody, errTooLarge)
}

func (rt *route) readBodyOf(r *request, w http.ResponseWriter, most int64, errLarger error) error {
	hr := r.http
	if hr.ContentLength > most {
		return errLarger
	}
	if hr.ContentLength == 0 || hr.Body == nil || hr.Body == http.NoBody || hr.Method == http.MethodGet || hr.Method == http.MethodHead {
		return nil
	}
	r.body.Grow(int(max(hr.ContentLength, 0)) + minRead)
	_, err := r.body.ReadFrom(http.MaxBytesReader(w, hr.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return errLarger
	}
	if err != nil {
		return &parley.Error{Code: parley.BadRequest, Message: "The body could not be read to its end.", Cause: err}
	}
	return nil
}

// minRead is the room that a bytes.Buffer wants before it asks the reader whether there is more.
const minRead = 512

// readFields reads the fields that the route takes.
func (rt *route) readFields(r *request) (err error) {
	from := rt.input
	sent := r.body.Bytes()
	if from == queryOrBody {
		from = query
		if len(sent) > 0 && !r.http.URL.Query().Has("message_id") {
			from = body
		}
	}
	if from == optionalBody && len(sent) == 0 {
		from = nothing
	}
	switch from {
	case nothing:
		return nil
	case query:
		r.Form, err = r.reader.Query(r.http.URL.RawQuery)
		return err
	}
	if err := checkType(r.http.Header, sent); err != nil {
		return err
	}
	r.Form, err = r.reader.JSON(sent)
	return err
}

// checkType refuses a body that does not say that it is JSON.
func checkType(h http.Header, sent []byte) error {
	if len(sent) == 0 {
		return parley.Errorf(parley.BadRequest, "The body is empty. Send a JSON object with the header Content-Type: application/json.")
	}
	kind, _, _ := strings.Cut(headerOf(h, "Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return parley.Errorf(parley.BadRequest, "The body must be JSON. Send it with the header Content-Type: application/json.")
	}
	if coding := headerOf(h, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return parley.Errorf(parley.BadRequest, "The body must not be compressed. Send it without the header Content-Encoding.")
	}
	return nil
}

// headerOf is h.Get for a key in its canonical spelling, without the work of making it so.
func headerOf(h http.Header, key string) string {
	if values := h[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}
