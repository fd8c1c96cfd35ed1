package feed

import (
	"context"
	"fmt"

	"parley"
)

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
	case isClosed(r.feed.closed):
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
	case <-r.feed.closed:
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

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
