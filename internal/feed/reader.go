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
	place  int64 // everything up to here was taken

	items []Item // what was taken last
	next  int    // the first of items that was not looked at
	floor int64  // items up to here were taken before

	live  <-chan []Item // nil: the reader is still catching up
	leave func()
	from  int64 // what is live is whole from here on
	slow  bool
}

// Subscribe returns a reader of everything after a place that the filter wants. It must be closed.
func (f *Feed) Subscribe(after int64, filter parley.EventFilter) *Reader {
	r := &Reader{feed: f, filter: filter, place: after, leave: func() {}}
	f.mu.Lock()
	f.readers[r] = struct{}{}
	f.mu.Unlock()
	f.open.Inc()
	return r
}

// Close ends the reader. It may be called twice.
func (r *Reader) Close() {
	r.leave()
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.readers[r]; there {
		delete(f.readers, r)
		f.open.Dec()
	}
}

// Next waits for the next event. After [ErrSlow] or [ErrClosed] no more will come, and the reader's
// owner comes back with a new one after the last event that it got.
func (r *Reader) Next(ctx context.Context) (Item, error) {
	for !r.skip() {
		if err := r.more(ctx); err != nil {
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
			r.take(items, open)
		default:
			return false
		}
	}
	return true
}

// skip passes over what is not wanted and reports whether something wanted is left.
func (r *Reader) skip() bool {
	for ; r.next < len(r.items); r.next++ {
		if e := &r.items[r.next].Event; e.Seq > r.floor && r.filter.Wants(e) {
			return true
		}
	}
	return false
}

// isLive reports whether everything before what is live was taken.
func (r *Reader) isLive() bool { return r.live != nil && r.place >= r.from }

// more gets further items: from the store until the reader has caught up, then what is published.
func (r *Reader) more(ctx context.Context) error {
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
		r.take(items, open)
		return nil
	case <-r.feed.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes what was published. A reader that was cut off gets what was in its buffer first.
func (r *Reader) take(items []Item, open bool) {
	if !open {
		r.slow = true
		r.feed.cutOff.Inc()
		return
	}
	r.items, r.next, r.floor = items, 0, r.place
	r.place = max(r.place, items[len(items)-1].Event.Seq)
}

// catchUp reads a page from the store; a page in which the filter finds nothing counts as read. It joins the others only
// when it is near the end: before, what is published would only fill its buffer.
func (r *Reader) catchUp(ctx context.Context) error {
	events, reached, err := r.feed.Store.Events(ctx, r.place, r.filter, page)
	if ctx.Err() != nil { // however the driver reports that
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("read the event log: %w", err)
	}
	nothingLeft := reached == r.place
	near := false
	if r.live == nil && len(events) < page/2 {
		last, err := r.feed.Store.LastEvent(ctx)
		if err != nil {
			return fmt.Errorf("read the event log: %w", err)
		}
		near = last-reached < page
	}
	r.items, r.next, r.floor = r.feed.render(events), 0, r.place
	r.place = reached
	switch {
	case near:
		r.live, r.leave, r.from = r.feed.join(reached)
	case r.live != nil && nothingLeft: // what was up to there has been removed from the log
		r.place = max(r.place, r.from)
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
