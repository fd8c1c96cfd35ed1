package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/media"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	maintenanceEvery = time.Minute
	purgeBatch       = 200 // rows in one transaction, so that other writers do not wait long

	maxOldStates = 20 * purgeBatch // statuses of channels that are purged in a minute

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
			g.maintain(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

const (
	// sweepEvery is how often queues are compared with the store, in case a message that was stored was not enqueued.
	sweepEvery = time.Minute
	// sweepPause is the time between two of them: reading thousands at once would delay other readers.
	sweepPause = 2 * time.Millisecond
)

// runSweeps compares the queues of channels with the store until ctx ends: of those that have messages there.
func (g *Gateway) runSweeps(ctx context.Context) {
	for wait.Sleep(ctx, sweepEvery) {
		pending, err := g.config.Store.PendingByChannel(ctx)
		if err != nil && ctx.Err() == nil {
			g.config.Log.Error("look for queued messages", "error", err)
		}
		for code := range pending {
			if a, err := g.account(code); err == nil {
				a.worker.Sweep()
				wait.Sleep(ctx, sweepPause)
			}
		}
	}
}

func (g *Gateway) maintain(ctx context.Context) {
	run := func(what string, do purge) {
		if err := g.inBatches(ctx, do); err != nil && ctx.Err() == nil {
			g.config.Log.Error(what, "error", err)
		}
	}
	if g.config.Cluster.Leads() {
		g.storeClock(ctx)
		g.purgeCommon(ctx, run)
	}
	g.purgeMessages(ctx, run)
	for _, a := range g.all() {
		c := a.snapshot()
		if c.Settings.Retention == nil {
			continue
		}
		run("erase old messages", func(tx *store.Tx) (bool, []parley.Media, error) {
			n, files, err := tx.EraseOlder(ctx, c.Code, a.now().Add(-time.Duration(*c.Settings.Retention)), purgeBatch)
			return n == purgeBatch, files, parley.IgnoreNotFound(err)
		})
	}
}

// purgeMessages deletes the rows of old messages of the channels that are served here. The store is read in the order of the messages, so
// it ends at the first young ones.
func (g *Gateway) purgeMessages(ctx context.Context, run func(what string, do purge)) {
	if g.config.MessageRetention == 0 {
		return
	}
	before, kept := g.Clock().Add(-g.config.MessageRetention), map[int64]bool{}
	for last := int64(0); ; {
		old, next, err := g.config.Store.OldMessages(ctx, last, before, purgeBatch, kept)
		if err != nil && ctx.Err() == nil {
			g.config.Log.Error("look for old messages", "error", err)
		}
		accounts := map[*account][]int64{}
		for _, m := range old {
			if a, err := g.account(m.Channel); err == nil {
				accounts[a] = append(accounts[a], m.Seq)
			}
		}
		if len(accounts) > 0 {
			run("purge old messages", func(tx *store.Tx) (_ bool, files []parley.Media, err error) {
				for a, seqs := range accounts {
					if refusal, err := a.check(ctx, tx); refusal != nil || err != nil {
						continue // it is served elsewhere by now, or gone
					}
					some, err := tx.DeleteMessages(ctx, seqs)
					if files = append(files, some...); err != nil {
						return false, nil, err
					}
				}
				return false, files, nil
			})
		}
		if last = next; next == 0 || err != nil || ctx.Err() != nil {
			return
		}
	}
}

// purgeCommon purges what belongs to no single channel.
func (g *Gateway) purgeCommon(ctx context.Context, run func(what string, do purge)) {
	now := g.Clock()
	run("purge stored responses", func(tx *store.Tx) (bool, []parley.Media, error) {
		n, err := tx.PurgeStoredResponses(ctx, now.Add(-IdempotencyRetention-g.clock.mayLead()), purgeBatch)
		return n == purgeBatch, nil, err
	})
	run("purge old counters", func(tx *store.Tx) (bool, []parley.Media, error) {
		more, err := tx.PurgeCounters(ctx, now, purgeBatch)
		return more, nil, err
	})
	run("purge counts of stored bytes", func(tx *store.Tx) (bool, []parley.Media, error) {
		n, err := tx.PurgeStored(ctx, now, purgeBatch)
		return n == purgeBatch, nil, err
	})
	run("erase encrypted texts", func(tx *store.Tx) (bool, []parley.Media, error) {
		before := now.Add(-encryptedRetention)
		events, err1 := tx.EraseEncrypted(ctx, before, purgeBatch)
		resends, err2 := tx.PurgeResends(ctx, before, purgeBatch)
		return max(events, resends) == purgeBatch, nil, errors.Join(err1, err2)
	})
	run("purge uploads", func(tx *store.Tx) (bool, []parley.Media, error) {
		files, err := tx.PurgeUploads(ctx, now.Add(-store.UploadLife), purgeBatch)
		return len(files) == purgeBatch, files, err
	})
	run("purge the audit log", func(tx *store.Tx) (bool, []parley.Media, error) {
		n, err := tx.PurgeAudit(ctx, now.Add(-store.AuditRetention), purgeBatch)
		return n == purgeBatch, nil, err
	})
	run("purge finished deletions", func(tx *store.Tx) (bool, []parley.Media, error) {
		return false, nil, tx.PurgeDeletions(ctx, now.Add(-store.DeletionRetention))
	})
	before := now.Add(-cmp.Or(g.config.EventRetention, DefaultEventRetention))
	upTo, errEvents := g.config.Store.NeededEvents(ctx)
	states, errStates := g.config.Store.OldStates(ctx, before, maxOldStates)
	if err := cmp.Or(errEvents, errStates); err != nil {
		if ctx.Err() == nil {
			g.config.Log.Error("look for old events", "error", err)
		}
		return
	}
	run("purge events", func(tx *store.Tx) (bool, []parley.Media, error) {
		n, err := tx.PurgeEvents(ctx, upTo, before, cmp.Or(g.config.EventCap, DefaultEventCap), purgeBatch)
		return n == purgeBatch, nil, err
	})
	for some := range slices.Chunk(states, purgeBatch) {
		run("purge old statuses of channels", func(tx *store.Tx) (bool, []parley.Media, error) {
			return false, nil, tx.DeleteStates(ctx, some)
		})
	}
}

// purge changes a batch in a transaction. It returns the files that no message needs any more.
type purge func(*store.Tx) (more bool, files []parley.Media, err error)

// inBatches repeats a purge in small transactions until there is no more. Other writers get as much time as each of them took.
func (g *Gateway) inBatches(ctx context.Context, do purge) error {
	for more := true; more; {
		began := time.Now()
		var files []parley.Media
		err := g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			more, files, err = do(tx)
			return err
		})
		if err != nil {
			return err
		}
		g.RemoveFiles(ctx, files)
		if !wait.Sleep(ctx, time.Since(began)) {
			return ctx.Err()
		}
	}
	return nil
}

// removalPause is how long no file is removed after the storage did not work: sending and receiving wait for a removal.
const removalPause = 30 * time.Second

// RemoveFiles removes files of erased messages that no other message or upload names, even if ctx has ended. If the storage
// or the store does not work, the rest become orphans, which are removed later.
func (g *Gateway) RemoveFiles(ctx context.Context, files []parley.Media) {
	var keys []string
	for _, m := range files {
		if m.Key != "" && !slices.Contains(keys, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		keys, err = tx.ReleaseFiles(ctx, keys)
		return err
	})
	if err != nil {
		g.config.Log.Warn("look for files of no message", "error", err)
		return
	}
	for _, key := range keys {
		if time.Now().UnixNano() < g.noRemovalBefore.Load() {
			return
		}
		if err := g.removeFile(ctx, key); err != nil {
			g.config.Log.Warn("remove a file", "key", key, "error", err)
			if parley.ToCode(err) == parley.Unavailable {
				g.noRemovalBefore.Store(time.Now().Add(removalPause).UnixNano())
			}
		}
	}
}

func (g *Gateway) removeFile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, media.RemoveTimeout)
	defer cancel()
	return g.config.Media.Remove(ctx, key)
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
	// orphanChunk is how many of them one transaction compares.
	orphanChunk = 64
)

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
		if !g.ClockTrusted() || !g.config.Cluster.Leads() {
			timer.Reset(maintenanceEvery)
			continue
		}
		var err error
		if after, err = g.removeOrphans(ctx, after); err != nil && ctx.Err() == nil {
			g.config.Log.Error("search files of no message", "error", err)
		}
	}
}

// removeOrphans compares the files after a key with the store. It returns the last key that it compared, empty at the end.
func (g *Gateway) removeOrphans(ctx context.Context, after string) (last string, err error) {
	if err := g.config.Media.RemoveAbandoned(); err != nil {
		g.config.Log.Error("remove abandoned temporary files", "error", err)
	}
	keys, err := g.config.Media.Older(ctx, g.Clock().Add(-orphanAge), after, orphanBatch)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	var removed int
	var errs []error
	for some := range slices.Chunk(keys, orphanChunk) {
		orphans, err := g.orphansAmong(ctx, some)
		if err != nil {
			return after, err
		}
		for _, key := range orphans {
			if err := g.config.Media.Remove(ctx, key); err != nil {
				if errs = append(errs, err); parley.ToCode(err) == parley.Unavailable {
					return after, err
				}
			}
		}
		removed += len(orphans)
	}
	if removed > 0 {
		g.config.Log.Info("removed files of no message", "files", removed)
	}
	if len(keys) == orphanBatch {
		last = keys[len(keys)-1]
	}
	return last, errors.Join(errs...)
}

// orphansAmong returns those of some files that nothing names. Nothing can name them afterwards.
func (g *Gateway) orphansAmong(ctx context.Context, keys []string) (orphans []string, err error) {
	named, err := g.config.Store.NamedFiles(ctx, keys) // most are, and need no transaction
	if err != nil || len(named) == len(keys) {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(named, key) })
	err = g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		orphans, err = tx.ReleaseFiles(ctx, rest)
		return err
	})
	return orphans, err
}
