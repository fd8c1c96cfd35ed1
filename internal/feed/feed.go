// Package feed reads the event log for whoever follows it: from a place, and then live. The log in
// the store is the truth; a reader that loses its connection comes back with the place it reached.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/bus"
	"parley/internal/encrypt"
	"parley/internal/wait"
)

const (
	// again is how long to wait after the log could not be read.
	again = time.Second
	// pace is the least time between two looks at the log. What happens within it is told together,
	// so that many events in a second cost every reader few wake-ups.
	pace = 50 * time.Millisecond
	// group is how many readers are given events at once, and between is how long the next ones wait:
	// hundreds that write at the same moment would keep everybody else off the processor.
	group   = 8
	between = time.Millisecond
	// page is how many events are read at once. A full buffer of full pages is held once for all
	// readers, and takes about 20 MB.
	page = 128
	// buffer is how many pages a reader may fall behind: at least two seconds, beside what the kernel
	// holds of its connection.
	buffer = 200
)

// Errors that end a reader.
var (
	ErrSlow   = errors.New("the reader fell too far behind")
	ErrClosed = errors.New("the feed is closed")
)

// Store is what a feed needs of the store.
type Store interface {
	Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error)
	EventAdded() <-chan struct{}
	LastEvent(ctx context.Context) (int64, error)
}

// Config says what a feed works with.
type Config struct {
	Store   Store
	Keyring *encrypt.Keyring
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: nothing is counted
	Buffer  int                   // how many pages a reader may fall behind before it is cut off; zero: 200
}

// Feed follows the event log, once for all readers.
type Feed struct {
	Config
	live   bus.Topic[[]Item]
	joined chan struct{} // the log is followed again
	closed chan struct{}
	close  func()

	open   prometheus.Gauge
	cutOff prometheus.Counter

	mu        sync.Mutex
	readers   map[*Reader]struct{}
	following bool  // somebody subscribes, and everything after at will be published
	at        int64 // how far the log was read
}

// Item is an event with the JSON that tells of it. It is shared by all readers and must not be
// changed.
type Item struct {
	Event parley.Event
	Body  []byte
}

// New returns a feed. Until Run runs, readers get what is in the store only.
func New(c Config) *Feed {
	f := &Feed{
		Config: c, joined: make(chan struct{}, 1), closed: make(chan struct{}), readers: map[*Reader]struct{}{},
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_feed_readers", Help: "Readers of the event log that are open now."}),
		cutOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_feed_cut_off_total", Help: "Readers of the event log that fell behind and were cut off."}),
	}
	if f.Buffer == 0 {
		f.Buffer = buffer
	}
	f.close = sync.OnceFunc(func() { close(f.closed) })
	if c.Metrics != nil {
		c.Metrics.MustRegister(f.open, f.cutOff)
	}
	return f
}

// Close ends all readers with [ErrClosed], those to come too: a server that drains must not wait for
// streams that never end. It may be called twice.
func (f *Feed) Close() { f.close() }

// Listeners counts the readers that are told of events of a type on a channel.
func (f *Feed) Listeners(channel parley.ChannelCode, kind parley.EventType) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for r := range f.readers {
		if r.filter.Wants(&parley.Event{Channel: channel, Type: kind}) {
			n++
		}
	}
	return n
}

// Open puts the text of a message, a vote, or the code of a pairing into an event that has it only
// encrypted. What cannot be opened stays empty, and so does a code that cannot be used any more.
func (f *Feed) Open(e *parley.Event) {
	if e.Encrypted == nil || e.Type == parley.ChannelPairing && parley.PairingEnded(e.Data, time.Now()) {
		return
	}
	text, err := f.Keyring.Decrypt(e.Encrypted, parley.EventTextContext(e.Channel))
	if err != nil {
		return
	}
	if e.Type == parley.PollVoted || e.Type == parley.ChannelPairing {
		e.Data = text
		return
	}
	if e.Message == nil || e.Message.Content == nil {
		return
	}
	if whole, err := parley.DecodeContent(e.Message.Content.Kind(), string(text), nil); err == nil {
		opened := *e.Message // the message may be another event's too
		opened.Content = whole
		e.Message = &opened
	}
}

// Render opens an event and writes it as it is told.
func (f *Feed) Render(e *parley.Event) ([]byte, error) {
	f.Open(e)
	return e.Body()
}

// Run publishes what is added to the log until ctx ends, while somebody subscribes.
func (f *Feed) Run(ctx context.Context) {
	broken := false
	for ctx.Err() == nil {
		if !f.stillFollowed() {
			select {
			case <-f.joined:
			case <-ctx.Done():
			}
			continue
		}
		added := f.Store.EventAdded() // before reading: what comes after is a reason to read again
		err := f.publish(ctx)
		if ctx.Err() == nil && (err != nil) != broken { // once, not with every look
			if broken = err != nil; broken {
				f.Log.Error("the event log cannot be read: streams stand still", "error", err)
			} else {
				f.Log.Info("the event log can be read again")
			}
		}
		if err != nil {
			wait.Sleep(ctx, again)
			continue
		}
		select {
		case <-added:
			wait.Sleep(ctx, pace)
		case <-ctx.Done():
		}
	}
}

// stillFollowed reports whether anybody subscribes. If nobody does, the next one decides where to go
// on from.
func (f *Feed) stillFollowed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.following = f.following && f.live.Watched()
	return f.following
}

// publish gives everything new in the log to the readers.
func (f *Feed) publish(ctx context.Context) error {
	for f.stillFollowed() {
		f.mu.Lock()
		at := f.at
		f.mu.Unlock()
		events, reached, err := f.Store.Events(ctx, at, parley.EventFilter{}, page)
		if err != nil {
			return fmt.Errorf("read the event log: %w", err)
		}
		if reached == at {
			return nil
		}
		items := f.render(events)
		f.mu.Lock()
		f.at = reached // before publishing: who joins now reads up to here by itself
		f.mu.Unlock()
		if len(items) > 0 {
			f.live.PublishInGroups(items, group, func() { wait.Sleep(ctx, between) })
		}
	}
	return nil
}

// render makes items of events. One that cannot be written is left out: it would stop all others.
func (f *Feed) render(events []parley.Event) []Item {
	items := make([]Item, 0, len(events))
	for i := range events {
		body, err := f.Render(&events[i])
		if err != nil {
			f.Log.Error("an event cannot be told", "event", string(events[i].ID), "error", err)
			continue
		}
		items = append(items, Item{Event: events[i], Body: body})
	}
	return items
}

// join subscribes to what is added from now on and returns the place up to which the reader must
// have read by itself before it takes any of that.
func (f *Feed) join(at int64) (live <-chan []Item, leave func(), from int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	live, leave = f.live.Subscribe(f.Buffer)
	if !f.following {
		f.following, f.at = true, at
		wait.Notify(f.joined)
	}
	return live, leave, f.at
}
