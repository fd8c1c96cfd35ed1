package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
)

const (
	maxBody = 1 << 20
	// maxPublicBody is for routes without a token. The longest text fits, with every character escaped.
	maxPublicBody = 64 << 10
)

// input is where a route's fields come from.
type input int

const (
	nothing      input = iota // no fields
	query                     // the URL query
	body                      // the body, a JSON object
	optionalBody              // the same; no body means an empty object
	queryOrBody               // the query, or the body if the query has no message_id; they must not differ
	upload                    // the body is a file
	noRoute                   // a path or method that does not exist: nothing is read
)

var errTooLarge = parley.Errorf(parley.TooLarge, "The body is larger than 1 MiB, which is the limit.")

var errPublicTooLarge = parley.Errorf(parley.TooLarge, "The body is larger than 64 KiB, which is the limit here.")

// readBody reads the whole body, even if the route has no fields: the idempotency key covers it.
func (rt *route) readBody(r *request, w http.ResponseWriter) error {
	hr, most, errLarger := r.http, int64(maxBody), errTooLarge
	if rt.input == upload {
		return nil // receiveUpload does, once the channel is known
	}
	if rt.access == public {
		most, errLarger = maxPublicBody, errPublicTooLarge
	}
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
		return &parley.Error{Code: parley.BadRequest, Message: "The request body is incomplete.", Cause: err}
	}
	return nil
}

// Limits on what is read of a refused request.
const (
	maxRest  = media.MaxUpload + 2*maxPreamble
	restTime = 30 * time.Second
)

// readRest returns what reads and drops the rest of a refused request, after the answer was written: many clients read it only when they
// have sent the whole body, and would see a closed connection. Strangers get what the HTTP server does by itself.
func (r *request) readRest(w http.ResponseWriter) func() {
	hr, control := r.http, http.NewResponseController(w)
	waits := readHeader(hr.Header, "Expect") != "" // the answer keeps the body from being sent
	if r.token.ID == "" || hr.ProtoMajor != 1 || hr.Body == nil || hr.Body == http.NoBody || waits || control.EnableFullDuplex() != nil {
		return func() {}
	}
	return func() {
		if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(restTime)) == nil {
			_, _ = io.CopyN(io.Discard, hr.Body, maxRest) // an error ends the connection
		}
	}
}

// minRead is the free space that bytes.Buffer needs to read up to the end without growing.
const minRead = 512

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
	case nothing, upload:
		return nil
	case query:
		if r.Form, err = r.reader.Query(r.http.URL.RawQuery); err == nil && rt.input == queryOrBody && len(sent) > 0 {
			compareMessageID(r, sent)
		}
		return err
	}
	if err := checkType(r.http.Header, sent); err != nil {
		return err
	}
	r.Form, err = r.reader.JSON(sent)
	return err
}

// compareMessageID fails the field message_id if the body names another message than the query. A body that is not a JSON
// object is ignored, as where none is expected.
func compareMessageID(r *request, sent []byte) {
	reader := form.NewReader()
	defer reader.Release()
	inBody, err := reader.JSON(sent)
	if err != nil || !inBody.Has("message_id") {
		return
	}
	if id, isText := inBody.String("message_id", ""); !isText || !sameMessage(id, r.http.URL.Query().Get("message_id")) {
		r.Fail("message_id", "is another one in the body than in the query. Send it once.")
	}
}

// sameMessage reports whether two ids can be of one message: they are equal, or one is the bare id of the other.
func sameMessage(a, b string) bool {
	x, errX := parley.ParseMessageRef(a)
	y, errY := parley.ParseMessageRef(b)
	return errX == nil && errY == nil && (x == y || x.ID == y.ID && (x.IsBare() || y.IsBare()))
}

func checkType(h http.Header, sent []byte) error {
	if len(sent) == 0 {
		return parley.Errorf(parley.BadRequest, "The body is empty. Send a JSON object with the header Content-Type: application/json.")
	}
	kind, _, _ := strings.Cut(readHeader(h, "Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return parley.Errorf(parley.BadRequest, "The body must be JSON. Send it with the header Content-Type: application/json.")
	}
	if coding := readHeader(h, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return parley.Errorf(parley.BadRequest, "The body must not be compressed. Send it without the header Content-Encoding.")
	}
	return nil
}

// readHeader is h.Get for a key in its canonical spelling, without the work of making it so.
func readHeader(h http.Header, key string) string {
	if values := h[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}
