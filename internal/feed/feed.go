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
	closed     context.Context
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
		config: c, subscribed: make(chan struct{}, 1), readers: map[*Reader]struct{}{},
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_feed_readers", Help: "Readers of the event log that are open now."}),
		cutOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_feed_cut_off_total", Help: "Readers of the event log that fell behind and were cut off."}),
	}
	f.config.Buffer = cmp.Or(f.config.Buffer, defaultBuffer)
	f.closed, f.close = context.WithCancel(context.Background())
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

// Reader follows the log for one subscriber. It is not for several goroutines at once.
type Reader struct {
	feed   *Feed
	filter parley.EventFilter
	cursor int64 // everything up to here was read

	items    []Item // the current page
	next     int    // the first of items that was not looked at
	returned int64  // items up to here were returned before

	live        <-chan []Item // nil: the reader is still catching up
	unsubscribe func()
	liveFrom    int64 // live pages are complete after this cursor
	slow        bool
}

// Subscribe returns a reader of the events after a cursor that the filter accepts. It must be closed.
func (f *Feed) Subscribe(after int64, filter parley.EventFilter) *Reader {
	r := &Reader{feed: f, filter: filter, cursor: after, unsubscribe: func() {}}
	f.mu.Lock()
	f.readers[r] = struct{}{}
	f.mu.Unlock()
	f.open.Inc()
	return r
}

// Close ends the reader. It may be called twice.
func (r *Reader) Close() {
	r.unsubscribe()
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.readers[r]; there {
		delete(f.readers, r)
		f.open.Dec()
	}
}

// Next waits for the next event. After [ErrSlow] or [ErrClosed] there are no more: open a new reader after the last
// event.
func (r *Reader) Next(ctx context.Context) (Item, error) {
	for !r.skip() {
		if err := r.nextPage(ctx); err != nil {
			return Item{}, err
		}
	}
	item := r.items[r.next]
	r.next++
	return item, nil
}

// Ready reports whether Next has an event without reading the store or waiting, so that several can
// be written at once.
func (r *Reader) Ready() bool {
	for !r.skip() {
		if r.slow || !r.isLive() {
			return false
		}
		select {
		case items, open := <-r.live:
			r.usePage(items, open)
		default:
			return false
		}
	}
	return true
}

// skip skips filtered events and reports whether one is left.
func (r *Reader) skip() bool {
	for ; r.next < len(r.items); r.next++ {
		if e := &r.items[r.next].Event; e.Seq > r.returned && r.filter.Wants(e) {
			return true
		}
	}
	return false
}

// isLive reports whether everything before the live pages was read.
func (r *Reader) isLive() bool { return r.live != nil && r.cursor >= r.liveFrom }

// nextPage gets the next page: from the store until the reader has caught up, then live.
func (r *Reader) nextPage(ctx context.Context) error {
	switch {
	case r.feed.closed.Err() != nil:
		return ErrClosed
	case r.slow:
		return ErrSlow
	case !r.isLive():
		return r.catchUp(ctx)
	}
	select {
	case items, open := <-r.live:
		r.usePage(items, open)
		return nil
	case <-r.feed.closed.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usePage uses a published page. A reader that was cut off gets its buffered pages first.
func (r *Reader) usePage(items []Item, open bool) {
	if !open {
		r.slow = true
		r.feed.cutOff.Inc()
		return
	}
	r.items, r.next, r.returned = items, 0, r.cursor
	r.cursor = max(r.cursor, items[len(items)-1].Event.Seq)
}

// catchUp reads a page from the store; a page without accepted events is also read. It subscribes only near the end:
// before, live pages would only fill its buffer.
func (r *Reader) catchUp(ctx context.Context) error {
	events, reached, err := r.feed.config.Store.Events(ctx, r.cursor, r.filter, pageSize)
	if ctx.Err() != nil { // however the driver reports that
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("read the event log: %w", err)
	}
	nothingLeft := reached == r.cursor
	near := false
	if r.live == nil && len(events) < pageSize/2 {
		last, err := r.feed.config.Store.LastEvent(ctx)
		if err != nil {
			return fmt.Errorf("read the event log: %w", err)
		}
		near = last-reached < pageSize
	}
	r.items, r.next, r.returned = r.feed.render(events), 0, r.cursor
	r.cursor = reached
	switch {
	case near:
		r.live, r.unsubscribe, r.liveFrom = r.feed.subscribe(reached)
	case r.live != nil && nothingLeft: // events up to there were purged
		r.cursor = max(r.cursor, r.liveFrom)
	}
	return nil
}
