package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/api"
)

// The states of a server. Load balancers should send requests only while it is ready.
const (
	starting int32 = iota
	ready
	draining
)

// checkReady returns nil if the server is ready, else the reason. A server that cannot write is not ready, so it makes a
// test write.
func (s *server) checkReady(ctx context.Context) error {
	switch s.state.Load() {
	case starting:
		return parley.Errorf(parley.Unavailable, "The server is starting.")
	case draining:
		return parley.Errorf(parley.Unavailable, "The server is stopping.")
	}
	if err := s.checkNodeReady(); err != nil {
		return err
	}
	if err := s.data.Store.Writable(ctx); err != nil {
		return err
	}
	if _, err := s.data.Store.Revision(ctx); err != nil {
		return &parley.Error{Code: parley.Unavailable, Message: "The database does not answer.", Cause: err}
	}
	return nil
}

// measureWritable is the metric for whether the database is writable.
func (s *server) measureWritable() {
	s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_database_writable", Help: "1 if the database takes a write, 0 if it does not: the disk is full, it is locked or damaged.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.data.Store.Writable(ctx) != nil {
			return 0
		}
		return 1
	}))
}

// smallDatabase is the size up to which the whole database is checked before the server is ready, in a few milliseconds.
// Of a larger one only the beginning is; the rest is checked while the server runs.
const smallDatabase = 8 << 20

// checkBefore looks for damage before the first request, and reports whether it checked everything.
func (s *server) checkBefore(ctx context.Context) (all bool, err error) {
	size, err := s.data.Store.Size(ctx)
	if err != nil {
		return false, err
	}
	if size <= smallDatabase {
		return true, s.data.Store.Check(ctx)
	}
	return false, s.data.Store.CheckStart(ctx)
}

// checkRest looks for damage while the server runs.
func (s *server) checkRest(ctx context.Context) {
	err := s.data.Store.CheckSlowly(ctx)
	if err != nil && ctx.Err() == nil && s.data.Store.Damage() == nil { // reportDamage reports damage
		s.log.Warn("the database could not be checked for damage", "error", err)
	}
}

// reportDamage waits until a check or a request finds damage. From then on nothing is accepted; reads still work.
func (s *server) reportDamage(ctx context.Context) {
	select {
	case <-s.data.Store.Damaged():
		s.log.Error("nothing is accepted from now on: " + s.data.Dir.explain(s.data.Store.Damage()).Error())
	case <-ctx.Done():
	}
}

// stopLimits bounds the steps of stopping. A database or request that hangs must not block the exit: supervisors kill
// the process after 30 s. Nothing is lost, because acknowledged messages are on disk.
type stopLimits struct {
	requests time.Duration // to finish running requests
	parts    time.Duration // including that: to end what sends, receives and delivers
	files    time.Duration // after that, to close the databases
}

var usualLimits = stopLimits{requests: 20 * time.Second, parts: 25 * time.Second, files: 3 * time.Second}

var errStuck = errors.New("stopped without waiting any longer for what hangs; what was acknowledged is stored")

// within calls f and reports whether it returned in time. Otherwise f runs until the process ends.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// handlers waits for the running requests. [http.Server.Close] closes their connections, but does not wait for them; what
// they use must stay open until they end.
type handlers struct {
	http.Handler
	running sync.RWMutex // every request holds it for reading
	stopped bool
}

func (h *handlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.running.TryRLock() { // fails while stop waits
		defer h.running.RUnlock()
		if !h.stopped {
			h.Handler.ServeHTTP(w, r)
			return
		}
	}
	api.Refuse(w, r, errStopping)
}

var errStopping = &parley.Error{Code: parley.Unavailable, RetryAfter: 5 * time.Second, Message: "The server is stopping. Try again soon."}

// stop rejects new requests and waits for the running ones.
func (h *handlers) stop() {
	h.running.Lock()
	h.stopped = true
	h.running.Unlock()
}
