package app

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

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
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// handlers counts the running requests. [http.Server.Close] closes their connections, but does not wait for them; what
// they use must stay open until they end.
type handlers struct {
	http.Handler

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is left; nil: not stopping
}

func (h *handlers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.begin() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "The server is stopping. Try again soon.", http.StatusServiceUnavailable)
		return
	}
	defer h.end()
	h.Handler.ServeHTTP(w, r)
}

func (h *handlers) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle != nil {
		return false
	}
	h.running++
	return true
}

func (h *handlers) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.running == 0 && h.idle != nil {
		close(h.idle)
	}
}

// stop rejects new requests and waits for the running ones.
func (h *handlers) stop() {
	h.mu.Lock()
	if h.idle == nil {
		h.idle = make(chan struct{})
		if h.running == 0 {
			close(h.idle)
		}
	}
	h.mu.Unlock()
	<-h.idle
}
