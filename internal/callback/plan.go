package callback

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// pace is the least time between two looks at the log. What happens within it is planned together.
	pace       = 10 * time.Millisecond
	planAtOnce = 512
	// maxWaiting is how many deliveries may wait for one webhook. What happens beyond that stays in the
	// event log until some are done, so that a webhook that is down for days does not fill the disk.
	maxWaiting = 100_000
	// maxBehind is how far a cursor in the store may fall behind without a delivery: that far a new
	// process reads the log again.
	maxBehind = 10_000
)

// planner reads the event log for all webhooks and stores what is to be delivered.
type planner struct {
	Config
	look func([]parley.Endpoint) // tells the dispatcher
	wake chan struct{}

	stale  atomic.Bool // the webhooks may have changed
	hooks  map[parley.WebhookID]*hook
	broken bool
	full   bool // for some webhook as much waits as may
	turn   int  // counts the pages that were planned for webhooks that are behind
}

// hook is how far the log was read for a webhook.
type hook struct {
	parley.Webhook
	stored    int64 // the cursor that the store knows
	waiting   int64 // not less than what waits
	countedAt time.Time
	turn      int // the planner's turn in which it got a page; zero: none yet
}

func newPlanner(c Config, look func([]parley.Endpoint)) *planner {
	p := &planner{Config: c, look: look, wake: make(chan struct{}, 1), hooks: map[parley.WebhookID]*hook{}}
	p.stale.Store(true)
	return p
}

// Wake has the webhooks read again.
func (p *planner) Wake() {
	p.stale.Store(true)
	wait.Notify(p.wake)
}

// run plans until ctx ends.
func (p *planner) run(ctx context.Context) {
	for ctx.Err() == nil {
		added := p.Store.EventAdded() // before reading: what comes after is a reason to read again
		more, err := p.round(ctx)
		if ctx.Err() == nil && (err != nil) != p.broken {
			if p.broken = err != nil; p.broken {
				p.Log.Error("the event log cannot be read: webhooks are told nothing new", "error", err)
			} else {
				p.Log.Info("the event log can be read again")
			}
		}
		if more && err == nil {
			continue
		}
		var again <-chan time.Time // nil: what is added or changed wakes it
		if err != nil || p.full {
			again = time.After(blink)
		}
		select {
		case <-added:
			wait.Sleep(ctx, pace)
		case <-p.wake:
		case <-again:
		case <-ctx.Done():
		}
	}
	p.keepCursors()
}

// round plans one page for the webhooks that are furthest in the log, which are those that are up to date, and one page
// for those that are behind, in turn. So a backlog of any length delays new events by one page. It reports whether there may
// be more.
func (p *planner) round(ctx context.Context) (more bool, err error) {
	if err := p.read(ctx); err != nil {
		return false, err
	}
	p.full = false
	groups := map[int64][]*hook{} // by cursor
	for _, h := range p.hooks {
		full, err := p.isFull(ctx, h)
		if err != nil {
			return false, err
		}
		p.full = p.full || full && h.IsEnabled()
		if h.IsEnabled() && !full {
			groups[h.Cursor] = append(groups[h.Cursor], h)
		}
	}
	if len(groups) == 0 {
		return false, nil
	}
	furthest := slices.Max(slices.Collect(maps.Keys(groups)))
	if more, err = p.plan(ctx, groups[furthest]); err != nil {
		return false, err
	}
	delete(groups, furthest)
	behind := slices.SortedFunc(maps.Values(groups), func(a, b []*hook) int { return cmp.Compare(lastTurn(a), lastTurn(b)) })
	for _, group := range behind { // until one has something: what it missed may have been erased
		p.turn++
		for _, h := range group {
			h.turn = p.turn
		}
		if found, err := p.plan(ctx, group); found || err != nil {
			return true, err
		}
	}
	return more, nil
}

// lastTurn is the turn of the webhook of a group that waits the longest.
func lastTurn(group []*hook) int {
	return slices.MinFunc(group, func(a, b *hook) int { return cmp.Compare(a.turn, b.turn) }).turn
}

// read reads the webhooks again if any may have changed.
func (p *planner) read(ctx context.Context) error {
	if !p.stale.Swap(false) {
		return nil
	}
	webhooks, err := p.Store.Webhooks(ctx)
	if err != nil {
		p.stale.Store(true)
		return err
	}
	hooks := make(map[parley.WebhookID]*hook, len(webhooks))
	for _, w := range webhooks {
		h := &hook{Webhook: w, stored: w.Cursor, waiting: maxWaiting} // to be counted
		if old := p.hooks[w.ID]; old != nil {
			h.Cursor, h.turn = max(w.Cursor, old.Cursor), old.turn
		}
		hooks[w.ID] = h
	}
	p.hooks = hooks
	return nil
}

// isFull reports whether as much waits for a webhook as may.
func (p *planner) isFull(ctx context.Context, h *hook) (bool, error) {
	if h.waiting < maxWaiting {
		return false, nil
	}
	if time.Since(h.countedAt) >= blink {
		waiting, err := p.Store.CountWaiting(ctx, h.ID)
		if err != nil {
			return false, err
		}
		h.waiting, h.countedAt = waiting, time.Now()
	}
	return h.waiting >= maxWaiting, nil
}

// plan reads the next events for webhooks that have the same cursor, and stores their deliveries together with
// the new cursor. It reports whether there were events.
func (p *planner) plan(ctx context.Context, group []*hook) (found bool, err error) {
	var filter parley.EventFilter
	if len(group) == 1 {
		filter = group[0].Filter()
	}
	from := group[0].Cursor
	events, reached, err := p.Store.Events(ctx, from, filter, planAtOnce)
	if err != nil || reached == from {
		return false, err
	}
	planned := map[parley.WebhookID][]parley.Delivery{}
	for _, h := range group {
		if ds := deliveries(h, events); len(ds) > 0 || reached-h.stored > maxBehind {
			planned[h.ID] = ds
		}
	}
	if err := p.keep(ctx, planned, reached); err != nil {
		return false, err
	}
	var looks []parley.Endpoint
	for _, h := range group {
		h.Cursor = reached
		if ds, stored := planned[h.ID]; stored {
			h.stored = reached
			h.waiting += int64(len(ds))
			if len(ds) > 0 {
				looks = append(looks, parley.Endpoint(h.ID))
			}
		}
	}
	p.look(looks)
	return true, nil
}

// deliveries are what a webhook is to be told of some events.
func deliveries(h *hook, events []parley.Event) []parley.Delivery {
	var ds []parley.Delivery
	filter := h.Filter()
	for i := range events {
		if filter.Wants(&events[i]) {
			ds = append(ds, parley.NewDelivery(&events[i], h.ID))
		}
	}
	return ds
}

// keep stores deliveries and cursors. A webhook that was removed meanwhile gets none, and what happened on a
// channel that was removed is not delivered.
func (p *planner) keep(ctx context.Context, planned map[parley.WebhookID][]parley.Delivery, cursor int64) error {
	if len(planned) == 0 {
		return nil
	}
	return p.Store.Tx(ctx, func(tx *store.Tx) error {
		for id, ds := range planned {
			_, err := tx.Webhook(ctx, id)
			if errors.Is(err, parley.ErrNotFound) {
				continue
			}
			there, gone := onChannels(ctx, tx, ds)
			if err = errors.Join(err, gone, tx.AddDeliveries(ctx, there), tx.SetWebhookCursor(ctx, id, cursor)); err != nil {
				return err
			}
		}
		return nil
	})
}

// onChannels returns the deliveries whose channels are there.
func onChannels(ctx context.Context, tx *store.Tx, ds []parley.Delivery) (there []parley.Delivery, err error) {
	for _, d := range ds {
		if d.Channel != "" {
			err := tx.CheckChannel(ctx, d.Channel, 0)
			if errors.Is(err, parley.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		there = append(there, d)
	}
	return there, nil
}

// keepCursors stores how far the log was read, when the planner ends. Where that fails, the log is read
// again from an earlier place and nothing else is lost.
func (p *planner) keepCursors() {
	ctx := context.Background()
	err := p.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, h := range p.hooks {
			if h.stored == h.Cursor {
				continue
			}
			if err := tx.SetWebhookCursor(ctx, h.ID, h.Cursor); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		p.Log.Warn("keep how far the event log was read", "error", err)
	}
}
