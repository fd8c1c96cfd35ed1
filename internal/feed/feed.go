// Package feed streams the event log to subscribers: from a cursor, then live.
//
// Invariants:
//
//   - The log in the store is the source: a subscriber that lost its connection resumes from its cursor.
//   - A reader gets every event after its cursor that its filter accepts, once and in order.
//   - A slow reader is cut off. It never delays the others.
package feed

import (
	"cmp"
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
	"parley/internal/wire"
)

const (
	// retryDelay is how long to wait after the log could not be read.
	retryDelay = time.Second
	// minInterval is the minimum time between two reads of the log. Events within it are sent together, so that each reader
	// wakes up less often.
	minInterval = 50 * time.Millisecond
	// groupSize is how many readers get events at once, and between is the pause before the next ones: hundreds of parallel
	// writes would starve other work.
	groupSize  = 8
	groupPause = time.Millisecond
	// pageSize is how many events are read at once. A full buffer of full pages is shared by all readers, and takes about
	// 20 MB.
	pageSize = 128
	// defaultBuffer is how many pages a reader may fall behind: at least two seconds, beside the kernel's buffer.
	defaultBuffer = 200
)

var (
	ErrSlow   = errors.New("the reader fell too far behind")
	ErrClosed = errors.New("the feed is closed")
)

// Store is the part of the store that a feed needs.
type Store interface {
	Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error)
	EventAdded() <-chan struct{}
	LastEvent(ctx context.Context) (int64, error)
}

type Config struct {
	Store   Store
	Keyring *encrypt.Keyring
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: nothing is counted
	Buffer  int                   // how many pages a reader may fall behind before it is cut off; zero: 200
	Links   parley.MediaLinks     // to files
	Names   wire.Names            // nil: no names are known
}

// Feed follows the event log, once for all readers.
type Feed struct {
	config     Config
	live       bus.Topic[[]Item]
	subscribed chan struct{} // the log is followed again
	closed     chan struct{}
	close      func()

	open   prometheus.Gauge
	cutOff prometheus.Counter

	mu        sync.Mutex
	readers   map[*Reader]struct{}
	following bool  // there are subscribers, and everything after at will be published
	cursor    int64 // how far the log was read
}

// Item is an event with its JSON. All readers share it: do not change it.
type Item struct {
	Event parley.Event
	Body  []byte
}

// New returns a feed. Before Run, readers get only what is already in the store.
func New(c Config) *Feed {
	f := &Feed{
		config: c, subscribed: make(chan struct{}, 1), closed: make(chan struct{}), readers: map[*Reader]struct{}{},
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_feed_readers", Help: "Readers of the event log that are open now."}),
		cutOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_feed_cut_off_total", Help: "Readers of the event log that fell behind and were cut off."}),
	}
	f.config.Buffer = cmp.Or(f.config.Buffer, defaultBuffer)
	f.close = sync.OnceFunc(func() { close(f.closed) })
	if c.Metrics != nil {
		c.Metrics.MustRegister(f.open, f.cutOff)
	}
	return f
}

// Close ends all readers with [ErrClosed], those to come too: a server that drains must not wait for
// streams that never end. It may be called twice.
func (f *Feed) Close() { f.close() }

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

// Decrypt decrypts the text of a message, a vote, or a pairing code into an event. What cannot be decrypted stays empty,
// and so does an expired code.
func (f *Feed) Decrypt(e *parley.Event) {
	if e.Encrypted == nil || e.Type == parley.ChannelPairing && parley.PairingEnded(e.Data, time.Now()) {
		return
	}
	text, err := f.config.Keyring.Decrypt(e.Encrypted, parley.EventTextContext(e.Channel))
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
	if whole, err := parley.DecodeEventContent(e.Message.Content.Kind(), text); err == nil {
		opened := *e.Message // the message may be another event's too
		opened.Content = whole
		e.Message = &opened
	}
}

// RenderPlain renders an event as streams show it: with links to files that need a token.
func (f *Feed) RenderPlain(e *parley.Event) ([]byte, error) { return f.Render(e, f.config.Links.Plain) }

// Render writes the body of an event, with links to its file.
func (f *Feed) Render(e *parley.Event, linkTo parley.MediaLink) ([]byte, error) {
	f.Decrypt(e)
	return wire.EncodeEvent(e, linkTo, f.config.Names)
}

// Run publishes new events until ctx ends, while there are subscribers.
func (f *Feed) Run(ctx context.Context) {
	broken := false
	for ctx.Err() == nil {
		if !f.hasSubscribers() {
			select {
			case <-f.subscribed:
			case <-ctx.Done():
			}
			continue
		}
		added := f.config.Store.EventAdded() // before reading, so that no later event is missed
		err := f.publish(ctx)
		if ctx.Err() == nil && (err != nil) != broken { // once, not with every look
			if broken = err != nil; broken {
				f.config.Log.Error("the event log cannot be read: streams are stopped", "error", err)
			} else {
				f.config.Log.Info("the event log can be read again")
			}
		}
		if err != nil {
			wait.Sleep(ctx, retryDelay)
			continue
		}
		select {
		case <-added:
			wait.Sleep(ctx, minInterval)
		case <-ctx.Done():
		}
	}
}

// hasSubscribers reports whether there are subscribers. If not, the next one sets the cursor.
func (f *Feed) hasSubscribers() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.following = f.following && f.live.HasSubscribers()
	return f.following
}

func (f *Feed) publish(ctx context.Context) error {
	for f.hasSubscribers() {
		f.mu.Lock()
		at := f.cursor
		f.mu.Unlock()
		events, reached, err := f.config.Store.Events(ctx, at, parley.EventFilter{}, pageSize)
		if err != nil {
			return fmt.Errorf("read the event log: %w", err)
		}
		if reached == at {
			return nil
		}
		items := f.render(events)
		f.mu.Lock()
		f.cursor = reached // before publishing: a reader that joins now reads up to here from the store
		f.mu.Unlock()
		if len(items) > 0 {
			f.live.PublishInGroups(items, groupSize, func() { wait.Sleep(ctx, groupPause) })
		}
	}
	return nil
}

// render makes items of events. One that cannot be written is left out: it would stop all others.
func (f *Feed) render(events []parley.Event) []Item {
	items := make([]Item, 0, len(events))
	for i := range events {
		body, err := f.RenderPlain(&events[i])
		if err != nil {
			f.config.Log.Error("an event cannot be encoded", "event", string(events[i].ID), "error", err)
			continue
		}
		items = append(items, Item{Event: events[i], Body: body})
	}
	return items
}

// subscribe subscribes to new events. The reader must read up to from itself before it uses any of them.
func (f *Feed) subscribe(at int64) (live <-chan []Item, leave func(), from int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	live, leave = f.live.Subscribe(f.config.Buffer)
	if !f.following {
		f.following, f.cursor = true, at
		wait.Notify(f.subscribed)
	}
	return live, leave, f.cursor
}
