// Package requestlog stores the latest requests of each channel, for the people who look for what went wrong.
//
// Invariants:
//   - A request only appends to memory, and never waits. Run writes, every 5 s.
//   - Of a busy channel only the latest [store.RequestsPerChannel] wait: older ones would be deleted at once.
//   - On a cluster the node that responded writes, in a transaction that is fenced like every other.
//   - What cannot be written is dropped and counted.
package requestlog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
)

const (
	writeEvery = 5 * time.Second // a reader does not wait for it
	stopTime   = 2 * time.Second // for the last write
	batchSize  = 100             // rows in one transaction, so that other writers do not wait long
	trimAfter  = 250             // rows of a channel after which its oldest are deleted
	// maxPending is how many requests wait in memory to be written. Those above it are dropped.
	maxPending = 10_000
)

// Log is the writer of the request log.
type Log struct {
	store   *store.DB
	log     *slog.Logger
	asked   chan chan struct{} // readers that wait for a write
	ended   chan struct{}      // closed when Run returns
	running atomic.Bool
	untrim  map[parley.ChannelCode]int // rows written since the last trim; only Run uses it

	written, dropped prometheus.Counter

	mu      sync.Mutex
	pending map[parley.ChannelCode]*latest
	waiting int   // in pending
	last    int64 // seq
}

// latest is a ring: once it is full, next is the oldest.
type latest struct {
	all  []store.LoggedRequest
	next int
}

// New makes a log. It drops what is added while Run does not run, as in the process of a command.
func New(db *store.DB, log *slog.Logger, metrics prometheus.Registerer) *Log {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	l := &Log{
		store: db, log: log, asked: make(chan chan struct{}), ended: make(chan struct{}),
		untrim: map[parley.ChannelCode]int{}, pending: map[parley.ChannelCode]*latest{},
		written: counter("parley_request_log_written_total", "Requests written to the request log."),
		dropped: counter("parley_request_log_dropped_total",
			"Requests missing in the request log because its queue was full or the database did not accept them."),
	}
	metrics.MustRegister(l.written, l.dropped)
	return l
}

// Add appends a request, unless too many wait.
func (l *Log) Add(r store.LoggedRequest) {
	if !l.running.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(l.last+1, time.Now().UnixMicro())
	r.Seq = l.last
	p := l.pending[r.Channel]
	switch {
	case p != nil && len(p.all) == store.RequestsPerChannel:
		p.all[p.next] = r
		p.next = (p.next + 1) % len(p.all)
	case l.waiting == maxPending:
		l.dropped.Inc()
	default:
		if p == nil {
			p = &latest{}
			l.pending[r.Channel] = p
		}
		p.all = append(p.all, r)
		l.waiting++
	}
}

// Run writes until ctx ends, and then what is left.
func (l *Log) Run(ctx context.Context) error {
	defer close(l.ended)
	l.running.Store(true)
	defer l.running.Store(false)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.write(ctx)
		case done := <-l.asked:
			l.write(ctx)
			close(done)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			l.write(last)
			return nil
		}
	}
}

// Running reports whether Run runs.
func (l *Log) Running() bool { return l.running.Load() }

// write writes what waits. Only Run calls it.
func (l *Log) write(ctx context.Context) {
	l.mu.Lock()
	pending := l.pending
	l.pending, l.waiting = make(map[parley.ChannelCode]*latest, len(pending)), 0
	l.mu.Unlock()
	failed := 0
	for code, p := range pending {
		for rest := p.all; len(rest) > 0; {
			batch := rest[:min(batchSize, len(rest))]
			rest = rest[len(batch):]
			if err := l.writeBatch(ctx, code, batch); err != nil {
				if failed == 0 {
					l.log.Warn("some requests are missing in the request log", "error", err)
				}
				failed += len(batch)
				continue
			}
			l.written.Add(float64(len(batch)))
		}
	}
	l.dropped.Add(float64(failed))
}

func (l *Log) writeBatch(ctx context.Context, code parley.ChannelCode, batch []store.LoggedRequest) error {
	n, known := l.untrim[code]
	n += len(batch)
	trim := !known || n >= trimAfter // another process may have written before
	err := l.store.Tx(ctx, func(tx *store.Tx) error {
		err := tx.AddRequests(ctx, code, batch)
		if err == nil && trim {
			err = tx.TrimRequests(ctx, code, store.RequestsPerChannel)
		}
		return err
	})
	if err == nil && trim {
		n = 0
	}
	l.untrim[code] = n
	return err
}

// Flush writes what waits, so that a reader sees it.
func (l *Log) Flush(ctx context.Context) error {
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
