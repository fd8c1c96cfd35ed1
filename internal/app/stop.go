package app

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"parley"
	"parley/internal/api"
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
