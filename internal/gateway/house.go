package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

const (
	houseEvery = time.Minute
	houseBatch = 500 // rows per transaction, so that no caller waits long behind it

	// encryptedLife is how long the encrypted text of a message is kept whose channel keeps none: as long as
	// a webhook is tried again, and long enough for a phone that was off to ask for it again.
	encryptedLife = 4 * 24 * time.Hour

	// IdempotencyRetention is how long the answer to a request with an idempotency key is kept.
	IdempotencyRetention = 24 * time.Hour
)

// keepHouse removes what is kept no longer, every minute until ctx ends, while the clock is trusted.
func (g *Gateway) keepHouse(ctx context.Context) {
	ticker := time.NewTicker(houseEvery)
	defer ticker.Stop()
	for {
		if g.ClockTrusted() {
			g.storeClock(ctx)
			g.forgetAnswers(ctx)
			if err := g.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PurgeCounters(ctx, g.Clock()) }); err != nil && ctx.Err() == nil {
				g.Log.Error("remove old counters", "error", err)
			}
			g.forgetEvents(ctx)
			if err := g.purge(ctx); err != nil && ctx.Err() == nil { // what a process that died left
				g.Log.Error("purge deleted channels and webhooks", "error", err)
			}
			for _, a := range g.all() {
				g.eraseOld(ctx, a)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (g *Gateway) forgetAnswers(ctx context.Context) {
	g.inBatches(ctx, "forget answers", func() (n int, err error) {
		err = g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.PurgeStoredResponses(ctx, g.Clock().Add(-IdempotencyRetention), houseBatch)
			return err
		})
		return n, err
	})
}

// DefaultEventRetention is how long the event log goes back unless it is set.
const DefaultEventRetention = 30 * 24 * time.Hour

// DefaultEventCap is how long the event log may become because of events that are still needed.
const DefaultEventCap = 10_000_000

func (g *Gateway) forgetEvents(ctx context.Context) {
	life, most := cmp.Or(g.EventRetention, DefaultEventRetention), cmp.Or(g.EventCap, DefaultEventCap)
	g.inBatches(ctx, "forget events", func() (n int, err error) {
		err = g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.PurgeEvents(ctx, g.Clock().Add(-life), most, houseBatch)
			encrypted := g.Clock().Add(-encryptedLife)
			return errors.Join(err, tx.EraseEncrypted(ctx, encrypted), tx.PurgeResends(ctx, encrypted))
		})
		return n, err
	})
}

// purge removes what is left of channels that were deleted or cleared and of webhooks that were deleted, in small transactions between which others write.
func (g *Gateway) purge(ctx context.Context) error {
	for more := true; more; {
		var files []parley.Media
		err := g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			files, more, err = tx.PurgeChannels(ctx)
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range files {
			g.removeMedia(f)
		}
	}
	return nil
}

// eraseOld empties the messages of a channel that are older than its retention.
func (g *Gateway) eraseOld(ctx context.Context, a *account) {
	c := a.snapshot()
	if c.Settings.Retention == nil {
		return
	}
	before := a.now().Add(-time.Duration(*c.Settings.Retention))
	g.inBatches(ctx, "erase old messages", func() (n int, err error) {
		var files []parley.Media
		err = g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, files, err = tx.EraseOlder(ctx, c.Code, before, houseBatch)
			return gone(err)
		})
		if err == nil {
			for _, f := range files {
				g.removeMedia(f)
			}
		}
		return n, err
	})
}

// inBatches repeats a step until it finds nothing more to do.
func (g *Gateway) inBatches(ctx context.Context, what string, step func() (int, error)) {
	for n := houseBatch; n == houseBatch; {
		var err error
		if n, err = step(); err != nil {
			if ctx.Err() == nil {
				g.Log.Error(what, "error", err)
			}
			return
		}
	}
}
