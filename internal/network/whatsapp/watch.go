package whatsapp

import (
	"context"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"
)

// A connection can die without a sign: nothing comes any more, and what is written goes nowhere. whatsmeow
// pings by the clock, which finds that within 30 seconds. While a send waits for the network, a connection
// that has been silent for a while is pinged at once.

func init() { // whatsmeow reads these without a lock, so they are set before the first client exists
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 15*time.Second, 20*time.Second
	whatsmeow.KeepAliveResponseDeadline = 8 * time.Second
}

const (
	// silentFor is how long a connection may be silent, while a send waits, before it is pinged.
	silentFor = 5 * time.Second
	// pingTimeout is how long anything at all may take to come after the ping. Both are 9 seconds together.
	pingTimeout = 4 * time.Second
)

// watchdog counts the sends that wait for the network on a line.
type watchdog struct {
	mu      sync.Mutex
	waiting int
	running bool
}

// awaitNetwork has the line watched until done is called.
func (l *line) awaitNetwork() (done func()) {
	l.mu.Lock() // after it is closed no errand may begin
	defer l.mu.Unlock()
	w := &l.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	if !w.running && !l.closed {
		w.running = true
		l.errands.Go(l.watch)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
	}
}

// idle ends the watch if no send waits, and reports whether it did.
func (w *watchdog) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = w.waiting > 0
	return !w.running
}

// watch pings the network whenever it has been silent for a while, and ends the line when it stays silent.
func (l *line) watch() {
	began := time.Now()
	for {
		reference := began
		if heard := load(&l.s.evidence.heardAt); heard.After(began) {
			reference = heard
		}
		silent := min(time.Since(reference), l.s.d.silentFor)
		if silent < l.s.d.silentFor {
			if !l.pause(l.s.d.silentFor - max(silent, 0)) {
				return
			}
			if l.watchdog.idle() {
				return
			}
			continue
		}
		if !l.answers() {
			l.post(&events.KeepAliveTimeout{})
			return
		}
		began = time.Now()
	}
}

// answers pings the network. It reports whether anything came in time, be it the answer or something else.
func (l *line) answers() bool {
	before := l.s.evidence.heardAt.Load()
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	answered := make(chan struct{})
	l.errands.Go(func() { // it can be kept waiting by a write that does not end before the connection does
		if ok, _ := l.inner().SendKeepAlive(ctx); ok {
			close(answered)
		}
	})
	timer := time.NewTimer(l.s.d.pingTimeout)
	defer timer.Stop()
	select {
	case <-answered:
		return true
	case <-l.taking.Done():
		return true // it is being ended anyway
	case <-timer.C:
		return l.s.evidence.heardAt.Load() != before
	}
}
