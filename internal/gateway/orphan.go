package gateway

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// A file is on disk before its message is stored, and is removed after the message was erased. A process that
// dies in between leaves a file that no message names.
const (
	// orphanAge is how old such a file must be: no request and no fetch takes that long.
	orphanAge = 24 * time.Hour
	// orphanFirst is when the first look is after the start, and orphanEvery how often there is another one.
	orphanFirst, orphanEvery = 10 * time.Minute, 24 * time.Hour
	// orphanBatch is how many files one look compares with the store; the next one goes on behind them.
	orphanBatch = 100_000
)

// watchFiles removes files that no message names, until ctx ends.
func (g *Gateway) watchFiles(ctx context.Context) {
	timer := time.NewTimer(orphanFirst)
	defer timer.Stop()
	for after := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(orphanEvery)
		if !g.ClockTrusted() {
			timer.Reset(houseEvery)
			continue
		}
		var err error
		if after, err = g.removeOrphans(ctx, after); err != nil && ctx.Err() == nil {
			g.Log.Error("look for files that no message names", "error", err)
		}
	}
}

// removeOrphans compares the files behind a key with the store. It returns the last one that it looked at, empty
// after the last of all.
func (g *Gateway) removeOrphans(ctx context.Context, after string) (last string, err error) {
	keys, err := g.Media.Older(g.Clock().Add(-orphanAge), after, orphanBatch)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	orphans := make(map[string]bool, len(keys))
	for _, key := range keys {
		orphans[key] = true
	}
	for seq, more := int64(0), true; more; {
		named, next, err := g.Store.MessageFiles(ctx, seq)
		if err != nil {
			return after, err
		}
		for _, key := range named {
			delete(orphans, key)
		}
		more, seq = next > seq, next
	}
	var errs []error
	for key := range orphans {
		if err := g.Media.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(orphans) > 0 {
		g.Log.Info("removed files that no message names", "files", len(orphans))
	}
	if len(keys) == orphanBatch {
		last = keys[len(keys)-1]
	}
	return last, errors.Join(errs...)
}
