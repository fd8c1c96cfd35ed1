package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/api/form"
	"parley/internal/api/limit"
	"parley/internal/gateway"
)

// route is one method of one path: who may call it, what it reads and what it does. It brings every
// request through the same order of checks, whose errors are 429 and 401, 403, 404 and 405, 413,
// 400, 422, before any work is done.
type route struct {
	*server
	door   door // nil: that of tokens
	method string
	path   string
	access access
	input  input
	work

	duration *prometheus.HistogramVec // by route and status
	ok       prometheus.Observer      // the same of this route and 200, found once
}

// work is what a route does.
type work struct {
	// do does the work and says what to answer.
	do func(ctx context.Context, r *request) (answer, error)
	// again says what to answer from the messages that the work made, where the answer itself was
	// lost; nil: the work makes none.
	again func(ctx context.Context, r *request, ms []parley.Message) (answer, error)
}

// request is one request on its way through a route.
type request struct {
	http      *http.Request
	id        string
	token     parley.Token
	channel   parley.Channel // zero where the endpoint is not about one
	form.Form                // the fields of the body, or of the query
	prefer    preference
	quota     limit.Quota // the limit that the request came closest to; without a name: to none

	key      *parley.Answer // stored with the work; nil: no idempotency key was sent
	accepted bool           // the work was accepted, and with it the key stored
	replaces bool           // the response replaces the one that was stored with the work

	reader *form.Reader
	body   bytes.Buffer
}

var requests = sync.Pool{New: func() any { return &request{} }}

func newRequest(hr *http.Request) *request {
	r := requests.Get().(*request)
	body := r.body
	body.Reset()
	*r = request{http: hr, id: requestID(hr), reader: form.NewReader(), body: body}
	r.Form = r.reader.Empty()
	return r
}

// maxPooled is the largest body buffer that is kept for later requests.
const maxPooled = 64 << 10

func (r *request) release() {
	r.reader.Release()
	if r.body.Cap() > maxPooled {
		r.body = bytes.Buffer{}
	}
	r.http, r.reader, r.key = nil, nil, nil
	requests.Put(r)
}

// handle makes work of an endpoint that answers JSON.
func handle[T any](endpoint func(ctx context.Context, r *request) (T, error)) work {
	return work{do: func(ctx context.Context, r *request) (answer, error) {
		v, err := endpoint(ctx, r)
		if err != nil {
			return answer{}, err
		}
		return jsonAnswer(v)
	}}
}

// onUsable has an endpoint refuse a channel that cannot be used before it looks at any field: what is
// wrong with the request as a whole is told first.
func onUsable[T any](endpoint func(ctx context.Context, r *request) (T, error)) func(ctx context.Context, r *request) (T, error) {
	return func(ctx context.Context, r *request) (T, error) {
		if err := r.channel.Usable(); err != nil {
			var none T
			return none, err
		}
		return endpoint(ctx, r)
	}
}

// handleCreated is handle for an endpoint that makes something with an address of its own.
func handleCreated[T any](endpoint func(ctx context.Context, r *request) (T, error)) work {
	made := handle(endpoint)
	return work{do: func(ctx context.Context, r *request) (answer, error) {
		a, err := made.do(ctx, r)
		a.status = http.StatusCreated
		return a, err
	}}
}

// handleString is handle for an endpoint whose answer is declared as a string: its text is JSON, and
// it comes as JSON to a caller that asks for that.
func handleString[T any](endpoint func(ctx context.Context, r *request) (T, error)) work {
	asJSON := handle(endpoint)
	return work{do: func(ctx context.Context, r *request) (answer, error) {
		a, err := asJSON.do(ctx, r)
		a.header = append(a.header, field{"Vary", "Accept"})
		if !acceptsJSON(r.http.Header) {
			a.contentType = typePlain
		}
		return a, err
	}}
}

// acceptsJSON reports whether the caller names JSON among what it takes. A wildcard does not name it.
func acceptsJSON(h http.Header) bool {
	for _, line := range h["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			kind, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(kind), typeJSON[0]) {
				return true
			}
		}
	}
	return false
}

// handleText makes work of an endpoint that answers only that it is done, as plain text.
func handleText(endpoint func(ctx context.Context, r *request) error) work {
	return work{do: func(ctx context.Context, r *request) (answer, error) {
		if err := endpoint(ctx, r); err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, contentType: typePlain, body: []byte("OK")}, nil
	}}
}

const (
	longRequest = 10 * time.Second // beyond it, the time to write the answer is counted anew
	timeToWrite = 30 * time.Second
)

func (rt *route) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newRequest(hr)
	defer r.release()
	a, err := rt.answer(hr.Context(), r, w)
	if err != nil {
		a = refusal(err)
	}
	if r.quota.Name != "" && a.status != http.StatusTooManyRequests { // which tells of its own
		a.header = append(a.header, quotaFields(r.quota)...)
	}
	if time.Since(began) > longRequest {
		// The server's deadline for writing runs since the request came in, and a file to fetch and a
		// network to wait for can take longer than that.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeToWrite))
	}
	write(w, r.id, a)
	took := time.Since(began)
	rt.measure(a.status, took)
	rt.logRequest(hr.Context(), r, a.status, took, err)
}

// answer brings the request through the checks and has the work done. A panic in it is this
// request's trouble only.
func (rt *route) answer(ctx context.Context, r *request, w http.ResponseWriter) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if rt.access != everybody {
		if r.token, err = rt.identify(ctx, r.http); err != nil {
			return a, err
		}
		if err := rt.permit(r.token, r.http); err != nil {
			return a, err
		}
	}
	if rt.input == noRoute {
		return rt.do(ctx, r)
	}
	if rt.access == everybody {
		if err := rt.readOpen(r, w); err != nil {
			return a, err
		}
		return rt.do(ctx, r)
	}
	if err := rt.withinLimit(r); err != nil {
		return a, err
	}
	if err := rt.readBody(r, w); err != nil {
		return a, err
	}
	if err := rt.choose(ctx, r); err != nil {
		return a, err
	}
	if err := rt.readFields(r); err != nil {
		return a, err
	}
	r.prefer = preferenceOf(r.http.Header)
	a, err = rt.once(ctx, r)
	if r.channel.Code != "" && errors.Is(err, gateway.ErrChannelNotFound) { // it was deleted meanwhile
		err = parley.Errorf(parley.BadRequest, "Channel %s does not exist any more.", r.channel.Code)
	}
	return a, err
}

// withinLimit counts the request towards the token's general limit, if one is set.
func (s *server) withinLimit(r *request) error {
	if s.perToken == nil || r.token.Kind == console {
		return nil
	}
	q := s.perToken.Spend(r.token.ID, time.Now())
	q.Name = limitRequests
	if q.Refused {
		return limit.Exceeded(q, "This token sends more requests than it may. Slow down.")
	}
	r.within(q)
	return nil
}

// panicError is a panic on its way to the log.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return "panic while answering" }

// said is what may be logged of a panic's value: the words of the runtime, or of whoever wrote them
// into the program. Any other value is told by its type, because it may hold what a caller sent.
func (e *panicError) said() string {
	switch v := e.value.(type) {
	case string:
		return v
	case runtime.Error:
		return v.Error()
	}
	return fmt.Sprintf("%T", e.value)
}

// The headers of every answer. They are shared, so nobody may change them in place.
var (
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
	noReferrer = []string{"no-referrer"}
)

// newline ends every body that is JSON, so that a terminal's prompt does not stick to it. Other plain text has
// none: the interface says what it is, to the letter.
var newline = []byte("\n")

// setHeaders writes what every answer carries.
func setHeaders(h http.Header, id string) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = noContent
	h["Referrer-Policy"] = noReferrer
	h["X-Request-Id"] = []string{id}
}

func write(w http.ResponseWriter, id string, a answer) {
	h := w.Header()
	setHeaders(h, id)
	h["Content-Type"] = a.contentType
	size := a.size + int64(len(a.body))
	endLine := a.file == nil && bytes.HasPrefix(a.body, []byte("{")) // JSON, of whatever declared type
	if endLine {
		size++
	}
	if a.size != sizeUnknown {
		h["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	}
	for _, f := range a.header {
		h.Set(f.key, f.value)
	}
	w.WriteHeader(a.status)
	if a.file != nil {
		if err := sendFile(w, a.file); err != nil && a.size == sizeUnknown && !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(http.ErrAbortHandler) // else the caller would take it for complete
		}
		return
	}
	w.Write(a.body) // a caller that is gone learns nothing
	if endLine {
		w.Write(newline) // not appended to the body, which may be shared
	}
}

// requestID returns the caller's id for the request if it is fit to stand in a log, else a new one.
func requestID(hr *http.Request) string {
	if ids := hr.Header["X-Request-Id"]; len(ids) == 1 && saneID(ids[0]) {
		return ids[0]
	}
	var random [12]byte
	rand.Read(random[:]) // never fails
	var id [4 + 2*len(random)]byte
	copy(id[:], "req_")
	hex.Encode(id[4:], random[:])
	return string(id[:])
}

func saneID(id string) bool {
	const longest = 128
	if id == "" || len(id) > longest {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}

func (rt *route) measure(status int, took time.Duration) {
	if status == http.StatusOK {
		rt.ok.Observe(took.Seconds())
		return
	}
	rt.duration.WithLabelValues(rt.name(), strconv.Itoa(status)).Observe(took.Seconds())
}

// name is what metrics and logs call the route: never the path itself, which may hold a number.
func (rt *route) name() string { return rt.method + " " + rt.path }

// logRequest writes one line: at debug where all went well, at info where the caller was refused, as
// a warning where something did not answer, as an error where we failed. It holds no body, no query,
// no number and no token but its id.
func (rt *route) logRequest(ctx context.Context, r *request, status int, took time.Duration, err error) {
	level := slog.LevelDebug
	switch {
	case status < http.StatusBadRequest, errors.Is(err, context.Canceled): // the caller is gone
	case status < http.StatusInternalServerError:
		level = slog.LevelInfo
	case status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	default:
		level = slog.LevelError
	}
	if !rt.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs,
		slog.String("request_id", r.id), slog.String("route", rt.name()),
		slog.Int("status", status), slog.String("took", took.Round(time.Microsecond).String()))
	if r.token.ID != "" {
		attrs = append(attrs, slog.String("token", string(r.token.ID)))
	}
	if r.channel.Code != "" {
		attrs = append(attrs, slog.String("channel", string(r.channel.Code)))
	}
	if level >= slog.LevelWarn && err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		if p, ok := err.(*panicError); ok {
			attrs = append(attrs, slog.String("panic", p.said()), slog.String("stack", string(p.stack)))
		}
	}
	rt.Log.LogAttrs(ctx, level, "request", attrs...)
}

// foreign serves a handler that writes its own answers, with the headers, the figures and the log of
// all routes. What it sets itself goes before.
type foreign struct {
	*route
	handler http.Handler
}

func (f *foreign) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newRequest(hr)
	defer r.release()
	setHeaders(w.Header(), r.id)
	seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	f.handler.ServeHTTP(seen, hr)
	took := time.Since(began)
	f.measure(seen.status, took)
	f.logRequest(hr.Context(), r, seen.status, took, nil)
}

// statusWriter notes the status that a handler writes.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
