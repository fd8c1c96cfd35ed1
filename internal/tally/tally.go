// Package tally counts what happened in the last day, by the minute, from the event log. It reads the log
// behind everybody's back, a moment after it was written, so that counting costs no send anything. After a
// start it reads the last day once more.
package tally

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
)

const (
	// Day is how far back is counted.
	Day = 24 * time.Hour

	lookEvery = 2 * time.Second // how often the log is looked at
	// atOnce is how many events are read at once, and pauseAfter how long others have the machine after
	// each time: on a busy server a day has millions.
	atOnce     = 4096
	pauseAfter = 5 * time.Millisecond
	// maxBehind is how many events are read after a start: beyond it, what is longer ago is not counted.
	maxBehind = 20_000_000
	// stepsNow is how often whoever asks reads on before it takes what there is.
	stepsNow = 4
)

// Config says what is counted from. Only the store is required.
type Config struct {
	Store parley.Store
	Log   *slog.Logger
	// Metrics is where the times to the network's confirmation are; nil: they are not told. The log has
	// only when that was recorded.
	Metrics prometheus.Gatherer
}

// Tally counts. Its methods may be called from several goroutines.
type Tally struct {
	Config
	one sync.Mutex // held while the log is read

	// What is held by one.
	begun   bool
	place   int64          // how far the log was read
	traces  []parley.Trace // what was read last: its room is used again
	minutes int64          // deliveries are counted up to this minute
	sent    sentTimes

	mu        sync.Mutex
	counting  bool      // the last day is still being read
	from      time.Time // what happened before is not counted
	all       ring[minute]
	channels  map[parley.ChannelCode]*channel
	delivered samples            // how long messages took to reach a phone
	codes     map[int64]struct{} // the Seqs of messages with one-time codes that are on their way
	webhooks  ring[uint32]       // deliveries that were made
}

// New makes a tally; Run has it count. Whoever asks before is told what there is by then.
func New(c Config) *Tally {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Tally{Config: c, sent: sentTimes{start: time.Now()}, counting: true, all: newRing[minute](dayMinutes), webhooks: newRing[uint32](dayMinutes),
		channels: map[parley.ChannelCode]*channel{}, codes: map[int64]struct{}{}}
}

// Run counts until ctx ends.
func (t *Tally) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	broken := false
	for {
		err := t.catchUp(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if (err != nil) != broken { // once, not with every look
			if broken = err != nil; broken {
				t.Log.Error("the event log cannot be counted", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// catchUp reads everything that is there, with pauses.
func (t *Tally) catchUp(ctx context.Context) error {
	for {
		done, err := t.step(ctx)
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(pauseAfter)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// step reads the next rows of the log and reports whether that was all.
func (t *Tally) step(ctx context.Context) (done bool, err error) {
	t.one.Lock()
	defer t.one.Unlock()
	if !t.begun {
		if err := t.begin(ctx); err != nil {
			return false, err
		}
		t.begun = true
	}
	traces := t.traces[:0]
	reached, err := t.Store.Traces(ctx, t.place, atOnce, func(e parley.Trace) { traces = append(traces, e) })
	t.traces = traces
	if err != nil {
		return false, err
	}
	looked, err := t.lookUp(ctx, traces)
	if err != nil {
		return false, err
	}
	t.count(traces, looked, time.Now())
	done, t.place = reached == t.place, reached
	if !done {
		return false, nil
	}
	t.mu.Lock()
	t.counting = false
	t.mu.Unlock()
	t.sent.note(t.Metrics, time.Now())
	return true, t.countDeliveries(ctx, time.Now())
}

// begin finds where the last day begins.
func (t *Tally) begin(ctx context.Context) error {
	now := time.Now()
	from := now.Add(-Day)
	place, err := t.Store.PlaceBefore(ctx, from)
	if err != nil {
		return err
	}
	last, err := t.Store.LastEvent(ctx)
	if err != nil {
		return err
	}
	if last-place > maxBehind {
		place = last - maxBehind
		if from, err = t.timeAt(ctx, place); err != nil {
			return err
		}
	}
	t.place, t.minutes = place, minuteOf(now.Add(-Day))
	t.mu.Lock()
	t.from = from
	t.mu.Unlock()
	return t.countLinks(ctx, from)
}

// timeAt is when the next event after a place happened.
func (t *Tally) timeAt(ctx context.Context, place int64) (at time.Time, err error) {
	_, err = t.Store.Traces(ctx, place, 1, func(e parley.Trace) {
		if at.IsZero() {
			at = e.At
		}
	})
	return at, err
}
