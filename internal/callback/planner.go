package callback

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// planPause is the minimum time between two reads of the log, so that events are planned in batches.
	planPause = 10 * time.Millisecond
	planPage  = 512
	// maxWaiting is how many deliveries may wait for one webhook. Further events stay in the log until some are
	// delivered, so that a webhook that is down for days does not fill the disk.
	maxWaiting = 100_000
	// maxBehind is how far a stored cursor may fall behind without a delivery. A new process reads that part again.
	maxBehind = 10_000
)

type planner struct {
	config Config
	notify func([]parley.Endpoint) // the dispatcher
	wake   chan struct{}

	mu      sync.Mutex
	stale   bool                      // all webhooks may have changed
	changed map[parley.WebhookID]bool // these may have

	hooks   map[parley.WebhookID]*hook
	reading outage
	full    bool // some webhook has maxWaiting deliveries
	turn    int  // counts the pages of webhooks that are behind
}

// hook is a webhook with the cursor up to which the log was read for it.
type hook struct {
	parley.Webhook
	stored    int64 // the cursor in the store
	waiting   int64 // an upper bound of its waiting deliveries
	countedAt time.Time
	turn      int // of its last page; zero: none yet
}

func newPlanner(c Config, notify func([]parley.Endpoint)) *planner {
	return &planner{config: c, notify: notify, wake: make(chan struct{}, 1), hooks: map[parley.WebhookID]*hook{}, stale: true,
		changed: map[parley.WebhookID]bool{}}
}

// Wake makes the planner read webhooks again: some, or without an id all.
func (p *planner) Wake(ids ...parley.WebhookID) {
	p.mu.Lock()
	p.stale = p.stale || len(ids) == 0
	for _, id := range ids {
		p.changed[id] = true
	}
	p.mu.Unlock()
	wait.Notify(p.wake)
}

func (p *planner) run(ctx context.Context) {
	for ctx.Err() == nil {
		added := p.config.Store.EventAdded() // before reading, so that no event is missed
		more, err := p.round(ctx)
		if ctx.Err() == nil {
			p.reading.report(p.config.Log, err, "the event log cannot be read: webhooks get no new events", "the event log can be read again")
		}
		if more && err == nil {
			continue
		}
		var retry <-chan time.Time // nil: an event or a change wakes it
		if err != nil || p.full {
			retry = time.After(storeErrorPause)
		}
		select {
		case <-added:
			wait.Sleep(ctx, planPause)
		case <-p.wake:
		case <-retry:
		case <-ctx.Done():
		}
	}
	p.storeCursors()
}

// round plans one page for the webhooks that are up to date, and one page for a webhook that is behind, in turn. So a
// backlog of any length delays new events by one page. It reports whether there may be more.
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
	for _, group := range behind { // until one has events: they may have been purged
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

func lastTurn(group []*hook) int {
	return slices.MinFunc(group, func(a, b *hook) int { return cmp.Compare(a.turn, b.turn) }).turn
}

// read reads the webhooks that may have changed.
func (p *planner) read(ctx context.Context) (err error) {
	p.mu.Lock()
	stale, changed := p.stale, slices.Collect(maps.Keys(p.changed))
	p.stale = false
	clear(p.changed)
	p.mu.Unlock()
	if !stale && len(changed) == 0 {
		return nil
	}
	defer func() {
		if err != nil && stale {
			p.Wake()
		} else if err != nil {
			p.Wake(changed...)
		}
	}()
	var webhooks []parley.Webhook
	if stale {
		if webhooks, err = p.config.Store.Webhooks(ctx); err != nil {
			return err
		}
	}
	for _, id := range changed {
		w, err := p.config.Store.Webhook(ctx, id)
		switch {
		case err == nil:
			webhooks = append(webhooks, w)
		case !errors.Is(err, parley.ErrNotFound):
			return err
		}
	}
	before := p.hooks
	if stale {
		p.hooks = make(map[parley.WebhookID]*hook, len(webhooks))
	} else {
		before = maps.Clone(p.hooks)
		maps.DeleteFunc(p.hooks, func(id parley.WebhookID, _ *hook) bool { return slices.Contains(changed, id) })
	}
	var found []parley.Endpoint
	for _, w := range webhooks {
		if !p.config.owns(string(w.ID)) {
			continue
		}
		h := &hook{Webhook: w, stored: w.Cursor, waiting: maxWaiting} // to be counted
		if old := before[w.ID]; old != nil {
			h.Cursor, h.turn = max(w.Cursor, old.Cursor), old.turn
		} else {
			found = append(found, parley.Endpoint(w.ID))
		}
		p.hooks[w.ID] = h
	}
	p.notify(found) // another node may have planned deliveries up to the cursor that was read here
	return nil
}

func (p *planner) isFull(ctx context.Context, h *hook) (bool, error) {
	if h.waiting < maxWaiting {
		return false, nil
	}
	if time.Since(h.countedAt) >= storeErrorPause {
		waiting, err := p.config.Store.CountWaiting(ctx, h.ID)
		if err != nil {
			return false, err
		}
		h.waiting, h.countedAt = waiting, time.Now()
	}
	return h.waiting >= maxWaiting, nil
}

// plan reads the next events for webhooks with the same cursor, and stores their deliveries and the new cursor. It
// reports whether there were events.
func (p *planner) plan(ctx context.Context, group []*hook) (found bool, err error) {
	var filter parley.EventFilter
	if len(group) == 1 {
		filter = group[0].Filter()
	}
	from := group[0].Cursor
	events, reached, err := p.config.Store.Events(ctx, from, filter, planPage)
	if err != nil || reached == from {
		return false, err
	}
	planned := map[parley.WebhookID][]parley.Delivery{}
	for _, h := range group {
		if ds := deliveries(h, events); len(ds) > 0 || reached-h.stored > maxBehind {
			planned[h.ID] = ds
		}
	}
	if err := p.storeDeliveries(ctx, planned, reached); err != nil {
		return false, err
	}
	var notified []parley.Endpoint
	for _, h := range group {
		h.Cursor = reached
		if ds, stored := planned[h.ID]; stored {
			h.stored = reached
			h.waiting += int64(len(ds))
			if len(ds) > 0 {
				notified = append(notified, parley.Endpoint(h.ID))
			}
		}
	}
	p.notify(notified)
	return true, nil
}

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

// maxStored is how many deliveries and cursors one transaction stores, so that other writers do not wait long. All deliveries of a page
// to one webhook are in one, with its cursor.
const maxStored = 200

// storeDeliveries stores deliveries and cursors. If it fails after the first transaction, the page is planned again, and deliveries that
// are stored are ignored.
func (p *planner) storeDeliveries(ctx context.Context, planned map[parley.WebhookID][]parley.Delivery, cursor int64) error {
	rows, some := 0, []parley.WebhookID(nil)
	for id, ds := range planned {
		some, rows = append(some, id), rows+len(ds)+1
		if rows < maxStored {
			continue
		}
		if err := p.storeSome(ctx, planned, some, cursor); err != nil {
			return err
		}
		rows, some = 0, nil
	}
	return p.storeSome(ctx, planned, some, cursor)
}

// storeSome stores the deliveries and cursors of some webhooks, except for webhooks and channels that were deleted meanwhile.
func (p *planner) storeSome(ctx context.Context, planned map[parley.WebhookID][]parley.Delivery, some []parley.WebhookID, cursor int64,
) error {
	if len(some) == 0 {
		return nil
	}
	return p.config.Store.Tx(ctx, func(tx *store.Tx) error {
		existing, err := tx.LockWebhooks(some)
		if err != nil {
			return err
		}
		var codes []parley.ChannelCode
		for _, id := range existing {
			for _, d := range planned[id] {
				codes = append(codes, d.Channel)
			}
		}
		if err := tx.FindChannels(ctx, codes); err != nil {
			return err
		}
		for _, id := range existing {
			ds, err := onExistingChannels(ctx, tx, planned[id])
			if err = errors.Join(err, tx.AddDeliveries(ctx, ds), tx.SetWebhookCursor(ctx, id, cursor)); err != nil {
				return err
			}
		}
		return nil
	})
}

func onExistingChannels(ctx context.Context, tx *store.Tx, ds []parley.Delivery) (existing []parley.Delivery, err error) {
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
		existing = append(existing, d)
	}
	return existing, nil
}

// storeCursors stores the cursors when the planner ends. If it fails, the next process reads a part of the log again.
func (p *planner) storeCursors() {
	ctx := context.Background()
	moved := slices.DeleteFunc(slices.Collect(maps.Values(p.hooks)), func(h *hook) bool { return h.stored == h.Cursor })
	for some := range slices.Chunk(moved, maxStored) {
		err := p.config.Store.Tx(ctx, func(tx *store.Tx) error {
			for _, h := range some {
				if err := tx.SetWebhookCursor(ctx, h.ID, h.Cursor); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			p.config.Log.Warn("store the cursors of webhooks", "error", err)
			return
		}
	}
}
