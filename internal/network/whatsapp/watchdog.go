package whatsapp

import (
	"context"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"
)

// A connection can die silently: nothing arrives, and writes go nowhere. whatsmeow's own pings find that within 30
// seconds. While a send waits, a silent connection is pinged at once.

func init() { // whatsmeow reads these without a lock, so they are set before the first client exists
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 15*time.Second, 20*time.Second
	whatsmeow.KeepAliveResponseDeadline = 8 * time.Second
}

const (
	// silenceLimit is how long a connection may be silent, while a send waits, before it is pinged.
	silenceLimit = 5 * time.Second
	// pingTimeout is how long anything may take to arrive after the ping. Both together are 9 seconds.
	pingTimeout = 4 * time.Second
)

// watchdog counts sends that wait for the network.
type watchdog struct {
	mu      sync.Mutex
	waiting int
	running bool
}

// watchWhileSending watches the connection until done is called.
func (conn *connection) watchWhileSending() (done func()) {
	conn.mu.Lock() // after it is closed nothing may begin
	defer conn.mu.Unlock()
	w := &conn.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	if !w.running && !conn.closed {
		w.running = true
		conn.background.Go(conn.watch)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
	}
}

// stopIfIdle ends the watch if no send waits, and reports whether it did.
func (w *watchdog) stopIfIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = w.waiting > 0
	return !w.running
}

// watch pings a silent connection, and ends it if it stays silent.
func (conn *connection) watch() {
	began := time.Now()
	for {
		reference := began
		if heard := loadTime(&conn.s.evidence.heardAt); heard.After(began) {
			reference = heard
		}
		silent := min(time.Since(reference), conn.s.d.silenceLimit)
		if silent < conn.s.d.silenceLimit {
			if !conn.pause(conn.s.d.silenceLimit - max(silent, 0)) {
				return
			}
			if conn.watchdog.stopIfIdle() {
				return
			}
			continue
		}
		if !conn.ping() {
			conn.post(&events.KeepAliveTimeout{})
			return
		}
		began = time.Now()
	}
}

// ping reports whether anything arrived in time, the pong or something else.
func (conn *connection) ping() bool {
	before := conn.s.evidence.heardAt.Load()
	ctx, cancel := context.WithCancel(conn.ctx)
	defer cancel()
	answered := make(chan struct{})
	conn.background.Go(func() { // a blocked write may hold it until the connection ends
		if ok, _ := conn.inner().SendKeepAlive(ctx); ok {
			close(answered)
		}
	})
	timer := time.NewTimer(conn.s.d.pingTimeout)
	defer timer.Stop()
	select {
	case <-answered:
		return true
	case <-conn.handlerCtx.Done():
		return true // it is being ended anyway
	case <-timer.C:
		return conn.s.evidence.heardAt.Load() != before
	}
}
