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
	"parley/internal/store"
)

// route is one method of one path. Every request passes the same checks in the same order before any work is
// done. Their errors are 429 and 401, 403, 404 and 405, 413, 400, 422.
type route struct {
	*router
	row
	method string
	path   string
	ok     func() prometheus.Observer // of this route and 200; made at the first request, because a histogram has 18 lines
}

// work is what a route does: do, draft, stream or handler, and how.
type work struct {
	do func(ctx context.Context, r *request) (response, error)
	// draft reads what goes through the outbox: a message, or a change of a message or a chat. The response is fromMessages.
	draft func(ctx context.Context, r *request) (gateway.Draft, error)
	// fromMessages makes the response from the messages that the work created, also again if it was lost; nil: it creates none.
	fromMessages func(ctx context.Context, r *request, ms []parley.Message) (response, error)
	// stream opens a response that has no end by itself.
	stream func(rt *route, ctx context.Context, r *request) (response, error)
	// handler writes its own responses, and does its own checks.
	handler http.Handler
	// signed is done instead for a request without a token whose query has a signature, which it must verify; nil: never.
	signed func(ctx context.Context, r *request) (response, error)
	// anywhere: every node can do it, not only the one that serves the channel.
	anywhere bool
	// certain: a request without a key is repeated too while its result is unknown.
	certain bool
	// readsLog: it reads only the store, so its channel need not run.
	readsLog bool
	// namesChannels: the field channels may name the channels instead of X-Channel.
	namesChannels bool
}

// perform does the work.
func (rt *route) perform(ctx context.Context, r *request) (response, error) {
	switch {
	case rt.stream != nil:
		return rt.stream(rt, ctx, r)
	case rt.draft != nil:
		return rt.submit(ctx, r)
	}
	return rt.do(ctx, r)
}

type request struct {
	http      *http.Request
	id        string
	token     parley.Token
	ticket    []byte           // the hash of the console session or pairing link; nil: none
	channel   parley.Channel   // zero: the endpoint needs none
	channels  []parley.Channel // those of the field channels; the first one is channel. Nil: there is no such field
	form.Form                  // the fields of the body, or of the query
	prefer    preference
	upload    *parley.Media // the received file, until it is an upload; nil: none
	quota     limit.Quota   // the limit with the least left; no name: none
	certain   bool          // it is repeated while its result is unknown

	key      *store.StoredResponse // stored with the work; nil: no idempotency key was sent
	accepted bool                  // the work was accepted and the key stored with it
	replaces bool                  // the response replaces the one stored with the work
	// phoneMessage is the id of the message that a simulated phone sends under the key; empty: a new one.
	phoneMessage parley.MessageID

	action  string // of the audit log; empty: none
	from    string // the client's address, for the audit log
	inAudit bool   // the act is in the audit log, or was rolled back with it

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

// maxPooled is the largest body buffer that later requests reuse.
const maxPooled = 64 << 10

func (r *request) release() {
	r.reader.Release()
	if r.body.Cap() > maxPooled {
		r.body = bytes.Buffer{}
	}
	r.http, r.reader, r.key = nil, nil, nil
	requests.Put(r)
}

// endpoint returns what the response contains as JSON. After an error the value is ignored.
type endpoint func(ctx context.Context, r *request) (any, error)

func handle(do endpoint) work {
	return work{do: func(ctx context.Context, r *request) (response, error) {
		v, err := do(ctx, r)
		if err != nil {
			return response{}, err
		}
		return jsonResponse(v)
	}}
}

// onUsable refuses a channel that cannot be used before any field is checked.
func onUsable(do endpoint) endpoint {
	return func(ctx context.Context, r *request) (any, error) {
		if err := r.channel.Usable(); err != nil {
			return nil, err
		}
		return do(ctx, r)
	}
}

// handleAs is handle with a status of its own.
func handleAs(status int, do endpoint) work {
	asJSON := handle(do)
	return work{do: func(ctx context.Context, r *request) (response, error) {
		a, err := asJSON.do(ctx, r)
		a.status = status
		return a, err
	}}
}

// handleCreated is handle with the status 201.
func handleCreated(do endpoint) work { return handleAs(http.StatusCreated, do) }

// handleString is handle for an endpoint whose response is declared as a string of JSON. A caller that asks
// for JSON gets that.
func handleString(do endpoint) work {
	asJSON := handle(do)
	return work{do: func(ctx context.Context, r *request) (response, error) {
		a, err := asJSON.do(ctx, r)
		a.header = append(a.header, field{"Vary", "Accept"})
		if !acceptsJSON(r.http.Header) {
			a.contentType = typePlain
		}
		return a, err
	}}
}

// acceptsJSON reports whether Accept names JSON. A wildcard does not.
func acceptsJSON(h http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(h["Accept"], ","), ",") {
		kind, _, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(kind), typeJSON[0]) {
			return true
		}
	}
	return false
}

// handleText wraps an endpoint without a result. The response is the plain text OK.
func handleText(do func(ctx context.Context, r *request) error) work {
	return work{do: func(ctx context.Context, r *request) (response, error) {
		return response{status: http.StatusOK, contentType: typePlain, body: []byte("OK")}, do(ctx, r)
	}}
}

const (
	longRequest = 10 * time.Second // after it, the write deadline is extended
	timeToWrite = 30 * time.Second
)

func (rt *route) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newRequest(hr)
	defer func() { r.release() }()
	r.certain = rt.mustBeCertain(hr)
	a, forwarded, err := rt.runOrForward(r, w)
	for r.repeats(began, err) {
		r = r.again()
		a, forwarded, err = rt.runOrForward(r, w)
	}
	if forwarded != 0 { // the other node records it
		rt.logRequest(hr.Context(), r, forwarded, time.Since(began), nil)
		return
	}
	if err != nil {
		a = refusal(err)
		defer r.readRest(w)()
	}
	if a.stream != nil {
		rt.measure(a.status, time.Since(began)) // the duration of the stream is up to the caller
		if err = a.stream(w); err != nil {
			a.status = http.StatusInternalServerError // too late for the caller; for the log
		}
		took := time.Since(began)
		rt.logRequest(hr.Context(), r, a.status, took, err)
		rt.record(r, a.status, began, took, err)
		if errors.Is(err, errIncomplete) {
			panic(http.ErrAbortHandler) // else it would look complete
		}
		return
	}
	if r.quota.Name != "" && a.status != http.StatusTooManyRequests && rt.stream == nil { // 429 carries its own
		a.header = append(a.header, quotaFields(r.quota)...)
	}
	if time.Since(began) > longRequest {
		// The server's write deadline starts with the request. Fetching a file or waiting for the network can
		// take longer.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeToWrite))
	}
	write(w, r.id, a)
	took := time.Since(began)
	rt.measure(a.status, took)
	rt.logRequest(hr.Context(), r, a.status, took, err)
	rt.record(r, a.status, began, took, err)
}

// runOrForward runs the request here or on the node that serves its channel. forwarded is the status of the response that the other
// node gave, and the caller has; 0: none.
func (rt *route) runOrForward(r *request, w http.ResponseWriter) (a response, forwarded int, err error) {
	a, err = rt.run(r.http.Context(), r, w)
	if to, ok := errors.AsType[*otherNode](err); ok {
		forwarded, err = rt.forwardTo(w, r, to)
	}
	return a, forwarded, err
}

// run passes the request through the checks and does the work. A panic fails only this request.
func (rt *route) run(ctx context.Context, r *request, w http.ResponseWriter) (a response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if rt.signed != nil && isSigned(r.http) {
		return rt.signed(ctx, r)
	}
	if rt.access != public {
		if r.token, err = rt.identify(ctx, r); err != nil {
			return a, err
		}
		if err := rt.permitKind(r.token, r.http); err != nil {
			return a, err
		}
		if err := rt.permitRole(r.token); err != nil {
			rt.auditRefused(ctx, r)
			return a, err
		}
		ctx = store.For(ctx, string(r.token.ID))
	}
	if rt.input == noRoute || rt.access == public && rt.input == nothing {
		return rt.do(ctx, r)
	}
	if rt.access == public {
		if err := rt.readBody(r, w); err != nil {
			return a, err
		}
		if err := rt.readFields(r); err != nil {
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
	var unreadable error // a wrong channel is reported first
	if rt.namesChannels {
		if unreadable = rt.readFields(r); unreadable != nil {
			r.Form = r.reader.Empty()
		}
	}
	if err := rt.chooseChannel(ctx, r); err != nil {
		return a, err
	}
	if err := rt.checkNode(ctx, r); err != nil {
		return a, err
	}
	if rt.input == upload {
		defer rt.discardUpload(ctx, r)
		if err := rt.receiveUpload(ctx, r, w); err != nil {
			return a, err
		}
	}
	if !rt.namesChannels {
		unreadable = rt.readFields(r)
	}
	if unreadable != nil {
		return a, unreadable
	}
	r.prefer = readPreference(r.http.Header)
	a, err = rt.idempotent(ctx, r)
	if r.channel.Code != "" && errors.Is(err, gateway.ErrChannelNotFound) { // deleted meanwhile
		err = parley.Errorf(parley.BadRequest, "Channel %s no longer exists.", r.channel.Code)
	}
	return a, rt.checkStillOwner(err)
}

func (rt *route) withinLimit(r *request) error {
	if rt.perToken == nil || r.token.Kind == console {
		return nil
	}
	if !rt.anywhere && r.token.Kind == parley.ChannelToken && !rt.config.Cluster.Owns(string(r.token.Channel)) {
		return nil // the node that serves the channel counts it
	}
	q := rt.perToken.Spend(r.token.ID, time.Now())
	q.Name = limitRequests
	if q.Refused {
		return limit.Exceeded(q, "This token exceeds its rate limit. Slow down.")
	}
	r.noteQuota(q)
	return nil
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return "panic in an endpoint" }

// loggable returns what may be logged of a panic: a text of the runtime or of this program. For any other value
// that is its type, because the value may contain what a caller sent.
func (e *panicError) loggable() string {
	switch v := e.value.(type) {
	case string:
		return v
	case runtime.Error:
		return v.Error()
	}
	return fmt.Sprintf("%T", e.value)
}

// The headers of every response. They are shared: do not change them in place.
var (
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
	noReferrer = []string{"no-referrer"}
)

// newline ends JSON bodies, for terminals. Plain text is specified to the letter and has none.
var newline = []byte("\n")

func setHeaders(h http.Header, id string) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["Content-Security-Policy"] = noContent
	h["Referrer-Policy"] = noReferrer
	h["X-Request-Id"] = []string{id}
}

func write(w http.ResponseWriter, id string, a response) {
	h := w.Header()
	setHeaders(h, id)
	h["Content-Type"] = a.contentType
	size := a.size + int64(len(a.body))
	endLine := a.file == nil && bytes.HasPrefix(a.body, []byte("{")) // JSON, also if declared as text
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
			panic(http.ErrAbortHandler) // else an incomplete file would look complete
		}
		return
	}
	w.Write(a.body) // the only error is a closed connection
	if endLine {
		w.Write(newline) // not appended to the body, which may be shared
	}
}

// requestID returns the caller's id of the request if it is safe to log, else a new one.
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
	const longest, sane = 128, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+="
	return id != "" && len(id) <= longest && strings.Trim(id, sane) == ""
}

func (rt *route) measure(status int, took time.Duration) {
	if status == http.StatusOK {
		rt.ok().Observe(took.Seconds())
		return
	}
	rt.duration.WithLabelValues(rt.name(), strconv.Itoa(status)).Observe(took.Seconds())
}

// name is the route in metrics and logs: never the request's path, which may contain a number.
func (rt *route) name() string { return rt.method + " " + rt.path }

// logRequest writes one line: debug for success, info for a caller's error, warning for 503, error for other
// failures. It contains no body, query, number or token, only the token's id.
func (rt *route) logRequest(ctx context.Context, r *request, status int, took time.Duration, err error) {
	level := slog.LevelDebug
	switch {
	case status < http.StatusBadRequest, errors.Is(err, context.Canceled): // the caller left
	case status < http.StatusInternalServerError:
		level = slog.LevelInfo
	case status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	default:
		level = slog.LevelError
	}
	if !rt.config.Log.Enabled(ctx, level) {
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
			attrs = append(attrs, slog.String("panic", p.loggable()), slog.String("stack", string(p.stack)))
		}
	}
	rt.config.Log.LogAttrs(ctx, level, "request", attrs...)
}

// rawRoute serves a handler that writes its own responses, with the headers, metrics and log of all routes.
type rawRoute struct {
	*route
	handler http.Handler
}

func (f *rawRoute) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
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

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
