package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
)

const (
	requestLogEvery = 5 * time.Second // between two writes; a reader does not wait for it
	requestLogStop  = 2 * time.Second // for the last one
	requestLogBatch = 100             // rows in one transaction, so that other writers do not wait long
	requestLogTrim  = 250             // rows of a channel after which its oldest are deleted
	// maxPendingRequests is how many requests wait in memory to be written. Those above it are dropped.
	maxPendingRequests = 10_000
	maxLoggedPath      = 300
)

// requestLog stores the latest requests of each channel. A request only appends to memory and never waits; run writes, every 5 s.
// Of a busy channel only the latest [parley.RequestsPerChannel] wait: older ones would be deleted at once. On a cluster the node that
// responded writes, in a transaction that is fenced like every other. What cannot be written is dropped and counted.
type requestLog struct {
	Config
	asked   chan chan struct{} // readers that wait for a write
	ended   chan struct{}      // closed when run returns
	running atomic.Bool
	untrim  map[parley.ChannelCode]int // rows written since the last trim; only run uses it

	written, dropped prometheus.Counter

	mu      sync.Mutex
	pending map[parley.ChannelCode]*latestRequests
	waiting int   // in pending
	last    int64 // seq
}

// latestRequests is a ring: once it is full, next is the oldest.
type latestRequests struct {
	all  []parley.LoggedRequest
	next int
}

func newRequestLog(c Config) *requestLog {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	l := &requestLog{
		Config: c, asked: make(chan chan struct{}), ended: make(chan struct{}),
		untrim: map[parley.ChannelCode]int{}, pending: map[parley.ChannelCode]*latestRequests{},
		written: counter("parley_request_log_written_total", "Requests written to the request log."),
		dropped: counter("parley_request_log_dropped_total",
			"Requests missing in the request log because its queue was full or the database did not accept them."),
	}
	c.Metrics.MustRegister(l.written, l.dropped)
	return l
}

// add appends a request, unless too many wait.
func (l *requestLog) add(r parley.LoggedRequest) {
	if l == nil || !l.running.Load() {
		return // in the process of a command
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(l.last+1, time.Now().UnixMicro())
	r.Seq = l.last
	p := l.pending[r.Channel]
	switch {
	case p != nil && len(p.all) == parley.RequestsPerChannel:
		p.all[p.next] = r
		p.next = (p.next + 1) % len(p.all)
	case l.waiting == maxPendingRequests:
		l.dropped.Inc()
	default:
		if p == nil {
			p = &latestRequests{}
			l.pending[r.Channel] = p
		}
		p.all = append(p.all, r)
		l.waiting++
	}
}

// run writes until ctx ends, and then what is left.
func (l *requestLog) run(ctx context.Context) {
	defer close(l.ended)
	l.running.Store(true)
	defer l.running.Store(false)
	ticker := time.NewTicker(requestLogEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.write(ctx)
		case done := <-l.asked:
			l.write(ctx)
			close(done)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLogStop)
			defer cancel()
			l.write(last)
			return
		}
	}
}

// write writes what waits. Only run calls it.
func (l *requestLog) write(ctx context.Context) {
	l.mu.Lock()
	pending := l.pending
	l.pending, l.waiting = make(map[parley.ChannelCode]*latestRequests, len(pending)), 0
	l.mu.Unlock()
	failed := 0
	for code, p := range pending {
		for rest := p.all; len(rest) > 0; {
			batch := rest[:min(requestLogBatch, len(rest))]
			rest = rest[len(batch):]
			if err := l.writeBatch(ctx, code, batch); err != nil {
				if failed == 0 {
					l.Log.Warn("some requests are missing in the request log", "error", err)
				}
				failed += len(batch)
				continue
			}
			l.written.Add(float64(len(batch)))
		}
	}
	l.dropped.Add(float64(failed))
}

func (l *requestLog) writeBatch(ctx context.Context, code parley.ChannelCode, batch []parley.LoggedRequest) error {
	n, known := l.untrim[code]
	n += len(batch)
	trim := !known || n >= requestLogTrim // another process may have written before
	err := l.Store.Tx(ctx, func(tx *store.Tx) error {
		err := tx.AddRequests(ctx, code, batch)
		if err == nil && trim {
			err = tx.TrimRequests(ctx, code, parley.RequestsPerChannel)
		}
		return err
	})
	if err == nil && trim {
		n = 0
	}
	l.untrim[code] = n
	return err
}

// flush writes what waits, so that a reader sees it.
func (l *requestLog) flush(ctx context.Context) error {
	if !l.running.Load() {
		return nil
	}
	done := make(chan struct{})
	select {
	case l.asked <- done:
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run does the API's work in the background until ctx ends: it writes the request log and checks the alert rules.
func (a *API) Run(ctx context.Context) error {
	var alerts sync.WaitGroup
	alerts.Go(func() { a.runAlerts(ctx) })
	a.requestLog.run(ctx)
	alerts.Wait()
	return nil
}

// record adds a request with a token to the log of its channel. The console's own requests are not part of it. The path is that of
// the route: the request's own may contain a number or a mistyped secret.
func (rt *route) record(r *request, status int, began time.Time, took time.Duration, err error) {
	code := r.channel.Code
	if code == "" && r.token.Kind == parley.ChannelToken { // refused before the channel was chosen
		code = r.token.Channel
	}
	if code == "" || r.token.Kind == console {
		return
	}
	entry := parley.LoggedRequest{
		Channel: code, At: began, Method: r.http.Method, Path: rt.path, Status: status, Took: took, Request: r.id,
		Token: r.token.ID,
	}
	if err != nil {
		entry.Code = callersError(err).Code.String()
	}
	if keys := r.http.Header[keyHeader]; len(keys) == 1 && validKey(keys[0]) {
		entry.IdempotencyKey = keys[0]
	}
	rt.requestLog.add(entry)
}

type loggedRequestRow struct {
	ID             int64          `json:"id"`
	At             string         `json:"at"`
	Method         string         `json:"method"`
	Path           string         `json:"path"`
	Status         int            `json:"status"`
	Code           *string        `json:"code"`
	TookMS         float64        `json:"took_ms"`
	RequestID      string         `json:"request_id"`
	IdempotencyKey *string        `json:"idempotency_key"`
	Token          parley.TokenID `json:"token"`
}

var statusPattern = regexp.MustCompile(`^([1-5])(xx|[0-9]{2})$`)

// parseStatuses reads a status (404) or a class of them (4xx).
func parseStatuses(text string) (statuses [2]int, err error) {
	match := statusPattern.FindStringSubmatch(text)
	if match == nil {
		return statuses, errors.New("no status")
	}
	class := int(match[1][0]-'0') * 100
	if match[2] == "xx" {
		return [2]int{class, class + 99}, nil
	}
	one := class + int(match[2][0]-'0')*10 + int(match[2][1]-'0')
	return [2]int{one, one}, nil
}

func (s *server) listRequests(ctx context.Context, r *request) (any, error) {
	q := parley.RequestQuery{
		Code: r.OptionalText("code", 1, 60), Path: r.OptionalText("path", 1, maxLoggedPath), Request: r.OptionalText("request_id", 1, 128),
		IdempotencyKey: r.OptionalText("idempotency_key", 1, 255), Token: parley.TokenID(r.OptionalText("token", 1, 100)),
		After: r.Whole("after", 0, 0, 1<<53),
	}
	if r.Has("method") {
		q.Method = r.Choice("method", true, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	if text := r.OptionalText("status", 1, 10); text != "" {
		var err error
		if q.Status, err = parseStatuses(text); err != nil {
			r.Fail("status", "must be an HTTP status such as 404, or a class of them such as 4xx.")
		}
	}
	page := r.Page()
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := s.requestLog.flush(ctx); err != nil {
		return nil, err
	}
	found, total, err := s.Store.Requests(ctx, r.code(), q, page)
	return okPage(mapped(found, func(l parley.LoggedRequest) loggedRequestRow {
		return loggedRequestRow{l.Seq, parley.Stamp(l.At), l.Method, l.Path, l.Status, textOrNil(l.Code),
			float64(l.Took.Microseconds()) / 1000, l.Request, textOrNil(l.IdempotencyKey), l.Token}
	}), page, total), notFoundAs(err, errNoChannel)
}
