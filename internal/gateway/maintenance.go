package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/media"
	"parley/internal/store"
)

const (
	maintenanceEvery = time.Minute
	purgeBatch       = 500 // rows in one transaction, so that other writers do not wait long

	// encryptedRetention is for texts of channels that store no text: as long as webhooks retry, and long enough for a
	// phone that was off to request a message again.
	encryptedRetention = 4 * 24 * time.Hour

	// IdempotencyRetention is how long the stored response of an idempotency key is valid.
	IdempotencyRetention = 24 * time.Hour

	// DefaultEventRetention and DefaultEventCap apply where [Config] has none.
	DefaultEventRetention = 30 * 24 * time.Hour
	DefaultEventCap       = 10_000_000
)

// runMaintenance purges and erases old data every minute until ctx ends, while the clock is trusted.
func (g *Gateway) runMaintenance(ctx context.Context) {
	ticker := time.NewTicker(maintenanceEvery)
	defer ticker.Stop()
	for {
		if g.ClockTrusted() {
			if g.Cluster.Leads() {
				g.purgeCommon(ctx)
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

// purgeCommon purges what belongs to no single channel.
func (g *Gateway) purgeCommon(ctx context.Context) {
	g.storeClock(ctx)
	g.purgeStoredResponses(ctx)
	if err := g.Store.Tx(ctx, func(tx *store.Tx) error { return tx.PurgeCounters(ctx, g.Clock()) }); err != nil && ctx.Err() == nil {
		g.Log.Error("purge old counters", "error", err)
	}
	g.purgeEvents(ctx)
	if err := g.purgeDeleted(ctx); err != nil && ctx.Err() == nil { // the rest of a purge that a crash interrupted
		g.Log.Error("purge deleted channels and webhooks", "error", err)
	}
}

func (g *Gateway) purgeStoredResponses(ctx context.Context) {
	g.inBatches(ctx, "purge stored responses", func(tx *store.Tx) (n int, files []parley.Media, err error) {
		n, err = tx.PurgeStoredResponses(ctx, g.Clock().Add(-IdempotencyRetention), purgeBatch)
		return n, nil, err
	})
}

func (g *Gateway) purgeEvents(ctx context.Context) {
	retention, most := cmp.Or(g.EventRetention, DefaultEventRetention), cmp.Or(g.EventCap, DefaultEventCap)
	g.inBatches(ctx, "purge events", func(tx *store.Tx) (int, []parley.Media, error) {
		n, err := tx.PurgeEvents(ctx, g.Clock().Add(-retention), most, purgeBatch)
		encrypted := g.Clock().Add(-encryptedRetention)
		return n, nil, errors.Join(err, tx.EraseEncrypted(ctx, encrypted), tx.PurgeResends(ctx, encrypted))
	})
}

// purgeDeleted purges rows of deleted and reset channels and of deleted webhooks, in small transactions.
func (g *Gateway) purgeDeleted(ctx context.Context) error {
	for more := true; more; {
		var files []parley.Media
		err := g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			files, more, err = tx.PurgeChannels(ctx)
			return err
		})
		if err != nil {
			return err
		}
		g.removeFiles(ctx, files)
	}
	return nil
}

// eraseOld erases the messages of a channel that are older than its retention.
func (g *Gateway) eraseOld(ctx context.Context, a *account) {
	c := a.snapshot()
	if c.Settings.Retention == nil {
		return
	}
	before := a.now().Add(-time.Duration(*c.Settings.Retention))
	g.inBatches(ctx, "erase old messages", func(tx *store.Tx) (int, []parley.Media, error) {
		n, files, err := tx.EraseOlder(ctx, c.Code, before, purgeBatch)
		return n, files, ignoreNotFound(err)
	})
}

// inBatches repeats a transaction until it changes less than a batch. It removes the files that each one returns.
func (g *Gateway) inBatches(ctx context.Context, what string, do func(*store.Tx) (int, []parley.Media, error)) {
	for n := purgeBatch; n == purgeBatch; {
		var files []parley.Media
		err := g.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, files, err = do(tx)
			return err
		})
		if err != nil {
			if ctx.Err() == nil {
				g.Log.Error(what, "error", err)
			}
			return
		}
		g.removeFiles(ctx, files)
	}
}

// removalPause is how long no file is removed after the storage did not work: sending and receiving wait for a removal.
const removalPause = 30 * time.Second

// removeFiles removes files of erased messages, even if ctx has ended. If the storage does not work, the rest become
// orphans, which are removed later.
func (g *Gateway) removeFiles(ctx context.Context, files []parley.Media) {
	for _, m := range files {
		if m.Key == "" || time.Now().UnixNano() < g.noRemovalBefore.Load() {
			continue
		}
		if err := g.removeFile(ctx, m.Key); err != nil {
			g.Log.Warn("remove a file", "key", m.Key, "error", err)
			if parley.CodeOf(err) == parley.Unavailable {
				g.noRemovalBefore.Store(time.Now().Add(removalPause).UnixNano())
			}
		}
	}
}

func (g *Gateway) removeFile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), media.RemoveTimeout)
	defer cancel()
	return g.Media.Remove(ctx, key)
}

// A file is written before its message is stored, and removed after the message was erased. A crash in between leaves an
// orphan: a file of no message.
const (
	// orphanAge is the minimum age of an orphan: no request and no fetch takes that long.
	orphanAge = 24 * time.Hour
	// orphanFirst is the time from the start to the first search, orphanEvery that to the next one.
	orphanFirst, orphanEvery = 10 * time.Minute, 24 * time.Hour
	// orphanBatch is how many files one search compares with the store. The next one continues after them.
	orphanBatch = 100_000
)

// runOrphanSearch removes orphans until ctx ends.
func (g *Gateway) runOrphanSearch(ctx context.Context) {
	timer := time.NewTimer(orphanFirst)
	defer timer.Stop()
	for after := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(orphanEvery)
		if !g.ClockTrusted() || !g.Cluster.Leads() {
			timer.Reset(maintenanceEvery)
			continue
		}
		var err error
		if after, err = g.removeOrphans(ctx, after); err != nil && ctx.Err() == nil {
			g.Log.Error("search files of no message", "error", err)
		}
	}
}

// removeOrphans compares the files after a key with the store. It returns the last key that it compared, empty at the end.
func (g *Gateway) removeOrphans(ctx context.Context, after string) (last string, err error) {
	if err := g.Media.RemoveAbandoned(); err != nil {
		g.Log.Error("remove abandoned temporary files", "error", err)
	}
	keys, err := g.Media.Older(ctx, g.Clock().Add(-orphanAge), after, orphanBatch)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	orphans := make(map[string]bool, len(keys))
	for _, key := range keys {
		orphans[key] = true
	}
	for seq, more := int64(0), true; more; {
		used, next, err := g.Store.MessageFiles(ctx, seq)
		if err != nil {
			return after, err
		}
		for _, key := range used {
			delete(orphans, key)
		}
		more, seq = next > seq, next
	}
	var errs []error
	for key := range orphans {
		if err := g.Media.Remove(ctx, key); err != nil {
			if errs = append(errs, err); parley.CodeOf(err) == parley.Unavailable {
				return after, err
			}
		}
	}
	if len(orphans) > 0 {
		g.Log.Info("removed files of no message", "files", len(orphans))
	}
	if len(keys) == orphanBatch {
		last = keys[len(keys)-1]
	}
	return last, errors.Join(errs...)
}
