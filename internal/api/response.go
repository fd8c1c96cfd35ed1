package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"parley"
	"parley/internal/api/form"
	"parley/internal/api/limit"
	"parley/internal/network"
)

type response struct {
	status      int
	contentType []string // one element, as in a header map
	body        []byte
	header      []field

	file io.ReadCloser // written instead of the body; nil: the body
	size int64         // of the file; sizeUnknown: until its end

	stream func(w http.ResponseWriter) error // writes all of the response; nil: write does
}

const sizeUnknown = -1

type field struct{ key, value string }

var (
	typeJSON  = []string{"application/json"}
	typePlain = []string{"text/plain; charset=utf-8"}
)

// envelope is the form of nearly all responses.
type envelope struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	Meta    any    `json:"meta,omitempty"`
}

func ok(message string, data any) envelope {
	return envelope{Success: true, Message: message, Data: data}
}

func mapped[T, R any](list []T, row func(T) R) []R {
	rows := make([]R, len(list))
	for i, one := range list {
		rows[i] = row(one)
	}
	return rows
}

func okPage(rows any, page parley.Page, total int64) envelope {
	limit := int64(page.Limit)
	return envelope{Success: true, Message: "OK", Data: rows, Meta: pageMeta{
		CurrentPage: page.Offset/limit + 1,
		PerPage:     limit,
		Total:       total,
		TotalPages:  max(1, (total+limit-1)/limit),
		HasNextPage: total-limit > page.Offset,
		HasPrevPage: page.Offset > 0,
	}}
}

type pageMeta struct {
	CurrentPage int64 `json:"current_page,omitzero"`
	PerPage     int64 `json:"per_page"`
	Total       int64 `json:"total"`
	TotalPages  int64 `json:"total_pages"`
	HasNextPage bool  `json:"has_next_page"`
	HasPrevPage bool  `json:"has_prev_page"`
}

// listMeta is the meta of a list by seq.
type listMeta struct {
	cursorMeta
	Total int64 `json:"total"`
}

// seqPage reads limit and cursor of a list by seq. It asks for one row more, which shows whether there is another page.
func seqPage(f form.Form) parley.Page {
	return parley.Page{Limit: int(f.Whole("limit", 50, 1, 100)) + 1, Beyond: seqCursor(f)}
}

// cutPage leaves out the row that is one too many, and says where the list continues.
func cutPage[T any](found []T, page parley.Page, total int64, seq func(T) int64) ([]T, listMeta) {
	meta := listMeta{Total: total}
	if len(found) == page.Limit {
		found = found[:page.Limit-1]
		meta.NextCursor = toCursor(seq(found[len(found)-1]))
	}
	return found, meta
}

const cursorStart = "m" // prefix of a cursor, so that it is no number

// seqCursor reads the field cursor; zero: it was not sent.
func seqCursor(f form.Form) int64 {
	text := f.OptionalText("cursor", 1, 20)
	if text == "" {
		return 0
	}
	digits, ok := strings.CutPrefix(text, cursorStart)
	seq, err := strconv.ParseInt(digits, 36, 64)
	if !ok || err != nil || seq < 1 {
		f.Fail("cursor", "must be a cursor from an earlier response.")
	}
	return seq
}

func toCursor(seq int64) *string { return textOrNil(cursorStart + strconv.FormatInt(seq, 36)) }

// encode writes JSON. Text from a chat network may be invalid UTF-8; it is repaired instead of failing.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return body, nil
}

func jsonResponse(v any) (response, error) {
	body, err := encode(v)
	return response{status: http.StatusOK, contentType: typeJSON, body: body}, err
}

func stampOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := parley.Stamp(t)
	return &s
}

// notFoundAs returns another error instead of [parley.ErrNotFound].
func notFoundAs(err, instead error) error {
	if errors.Is(err, parley.ErrNotFound) {
		return instead
	}
	return err
}

var statuses = map[parley.Code]int{
	parley.Internal:         http.StatusInternalServerError,
	parley.BadRequest:       http.StatusBadRequest,
	parley.Unauthenticated:  http.StatusUnauthorized,
	parley.TokenExpired:     http.StatusUnauthorized,
	parley.Forbidden:        http.StatusForbidden,
	parley.NotFound:         http.StatusNotFound,
	parley.MethodNotAllowed: http.StatusMethodNotAllowed,
	parley.Conflict:         http.StatusConflict,
	parley.TooLarge:         http.StatusRequestEntityTooLarge,
	parley.Invalid:          http.StatusUnprocessableEntity,
	parley.TooMany:          http.StatusTooManyRequests,
	parley.QueueFull:        http.StatusTooManyRequests,
	parley.StorageLimit:     http.StatusTooManyRequests,
	parley.StorageFull:      http.StatusInsufficientStorage,
	parley.ChannelNotReady:  http.StatusBadRequest,
	parley.NotSupported:     http.StatusBadRequest,
	parley.Unavailable:      http.StatusServiceUnavailable,
}

type withHeader struct {
	error
	field
}

func (e *withHeader) Unwrap() error { return e.error }

func methodNotAllowed(allow string) error {
	return &withHeader{parley.Errorf(parley.MethodNotAllowed, "Use %s for this path.", allow), field{"Allow", allow}}
}

// refusal is the response to an error. Only a [parley.Error] shows its text.
func refusal(err error) response {
	if e, ok := errors.AsType[*noRange](err); ok {
		a := errorResponse(parley.Errorf(parley.BadRequest, "%s", e.Error()))
		a.status = http.StatusRequestedRangeNotSatisfiable
		a.header = append(a.header, field{"Content-Range", fmt.Sprintf("bytes */%d", e.size)})
		return a
	}
	e := callersError(err)
	a := errorResponse(e)
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		a.header = append(a.header, field{"Retry-After", strconv.FormatInt(max(1, limit.WholeSeconds(e.RetryAfter)), 10)})
	}
	if q, ok := toQuota(err); ok {
		a.header = append(a.header, quotaFields(q)...)
	}
	for h, ok := errors.AsType[*withHeader](err); ok; h, ok = errors.AsType[*withHeader](h.error) {
		a.header = append(a.header, h.field)
	}
	return a
}

func callersError(err error) *parley.Error {
	if e, ok := errors.AsType[*parley.Error](err); ok && e.Code != parley.Internal {
		return e
	}
	if e, ok := errors.AsType[*network.Error](err); ok {
		if e.Class == network.Permanent {
			code := parley.BadRequest
			if e.Failure.Code == parley.Unsupported {
				code = parley.NotSupported
			}
			return &parley.Error{Code: code, Message: e.Failure.Message, Cause: err}
		}
		return &parley.Error{Code: parley.Unavailable, Message: "The chat network does not respond. Try again later.", Cause: err}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return &parley.Error{Code: parley.Unavailable, Message: "The server's disk is full. Try again later.", Cause: err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &parley.Error{Code: parley.Unavailable, Message: "The request took too long. Try again.", Cause: err}
	}
	return &parley.Error{Code: parley.Internal, Message: "Internal server error", Cause: err}
}

// errorResponse writes the body of all errors: a message, a code and, for wrong fields, a list of sentences for each, in
// the order in which they were found.
func errorResponse(e *parley.Error) response {
	var fields []string
	sentences := map[string][]string{}
	for _, wrong := range e.Fields {
		if len(sentences[wrong.Field]) == 0 {
			fields = append(fields, wrong.Field)
		}
		sentences[wrong.Field] = append(sentences[wrong.Field], wrong.Sentence)
	}
	b := appendString([]byte(`{"message":`), e.Message)
	b = appendString(append(b, `,"code":`...), e.Code.String())
	before := `,"errors":{`
	for _, name := range fields {
		list, _ := encode(sentences[name]) // strings cannot fail
		b = append(appendString(append(b, before...), name), ':')
		b = append(b, list...)
		before = ","
	}
	if len(fields) > 0 {
		b = append(b, '}')
	}
	return response{status: statuses[e.Code], contentType: typeJSON, body: append(b, '}')}
}

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only says that invalid UTF-8 was replaced
	return b
}
