package app

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// stopLimits bounds the steps of stopping. A database or a request that hangs must not keep the process from ending:
// supervisors kill what is still there after 30 s. Nothing is lost by that, because what was acknowledged is on disk.
type stopLimits struct {
	requests time.Duration // to answer those under way
	parts    time.Duration // to do that and to end what sends, receives and delivers
	files    time.Duration // after that, to close the databases
}

var usualLimits = stopLimits{requests: 20 * time.Second, parts: 25 * time.Second, files: 3 * time.Second}

var errStuck = errors.New("stopped without waiting any longer for what hangs; what was acknowledged is stored")

// within calls f and reports whether it returned in time. If it did not, it goes on until the process ends.
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

// handlers counts the requests that are being answered. [http.Server.Close] closes their connections, but does not
// wait for them; what they use must not be closed before they end.
type handlers struct {
	http.Handler

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none is left; nil: they go on coming
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

// stop lets no more begin and waits for those that run.
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
