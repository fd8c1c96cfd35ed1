package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

// A channel is gone when the transaction that deletes it commits, and its code is free. The table deletion says what is left to
// do, so that any process can continue after a crash: the node that serves the code closes the session and removes what the
// network stores, before it opens a session for a new channel with this code; the node that leads purges the rows.

// DeleteChannel deletes a channel and its data. It returns when the channel is gone: the rest is done in the background. It
// needs no network: a device that is still linked stays in the list on its phone. inTx runs in the transaction that deletes it.
func (g *Gateway) DeleteChannel(
	ctx context.Context, code parley.ChannelCode, inTx ...func(*store.Tx, parley.Channel) error,
) (store.Deletion, error) {
	ctx = context.WithoutCancel(ctx) // a cancelled client must not leave it half done
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	a, err := g.account(code)
	if err != nil {
		return store.Deletion{}, err
	}
	if !a.retired.CompareAndSwap(nil, deletion(code)) {
		return store.Deletion{}, a.retired.Load().refusal
	}
	a.stop() // before the code is free: the worker must not see messages of a new channel
	err = g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CheckChannel(ctx, code, a.id); err != nil {
			return err
		}
		for _, do := range inTx {
			if err := do(tx, a.snapshot()); err != nil {
				return err
			}
		}
		return tx.DeleteChannel(ctx, code)
	})
	if errors.Is(err, parley.ErrNotFound) {
		err = errChannelNotFound(code)
	}
	g.hide(a)
	if g.config.Offline { // nothing runs in the background
		g.closeHidden(a)
		err = errors.Join(err, g.refresh(ctx, code), g.purgeDeleted(ctx))
	} else {
		g.changes.Go(func() {
			g.closeHidden(a)
			if err := g.Refresh(ctx, code); err != nil {
				g.config.Log.Error("refresh channels", "error", err)
				g.refreshLater()
			}
		})
	}
	if err != nil {
		return store.Deletion{}, err
	}
	return g.config.Store.Deletion(ctx, a.id)
}

// remove closes the account of a channel that another process deleted.
func (g *Gateway) remove(a *account) {
	if a.retired.CompareAndSwap(nil, deletion(a.code)) { // else another goroutine does it
		g.hide(a)
		g.closeHidden(a)
	}
}

// hide takes a deleted channel's account out of all lists. A new channel may have its code.
func (g *Gateway) hide(a *account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[a.code] == a {
		delete(g.accounts, a.code)
	}
	g.leaving[a.code]++
	g.noteChange()
}

func (g *Gateway) closeHidden(a *account) {
	a.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving[a.code]--; g.leaving[a.code] == 0 {
		delete(g.leaving, a.code)
	}
}

// CheckNetwork returns an error while the network still has something of a deleted channel with this code. A new channel must not
// connect until then: it would have the account of the deleted one.
func (g *Gateway) CheckNetwork(code parley.ChannelCode) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.leaving[code] == 0 && !g.stored[code] {
		return nil
	}
	return &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
		Message: fmt.Sprintf("Channel %s starts when the deleted one that had its code is closed. Try again in a moment.", code)}
}

// awaitNetwork waits a while until CheckNetwork returns nil, so that the next request can use the channel.
func (g *Gateway) awaitNetwork(ctx context.Context, code parley.ChannelCode) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for g.CheckNetwork(code) != nil && wait.Sleep(ctx, 5*time.Millisecond) {
	}
}

// leaveNetworks removes what networks store of deleted channels.
func (g *Gateway) leaveNetworks(ctx context.Context) error {
	deletions, err := g.config.Store.NetworkDeletions(ctx)
	if err != nil {
		return err
	}
	stored := map[parley.ChannelCode]bool{}
	for _, d := range deletions {
		g.mu.RLock()
		leaving := g.leaving[d.Channel] > 0 // a refresh follows
		g.mu.RUnlock()
		if leaving || !g.config.Cluster.Owns(string(d.Channel)) {
			continue
		}
		if err := g.leaveNetwork(ctx, d); err != nil {
			g.config.Log.Error("remove a deleted channel from its network", "channel", d.Channel, "error", err)
			g.storeProblem(ctx, d.ID, err)
			stored[d.Channel] = true
			g.refreshLater()
		}
	}
	g.mu.Lock()
	g.stored = stored
	g.mu.Unlock()
	return nil
}

func (g *Gateway) leaveNetwork(ctx context.Context, d store.Deletion) error {
	if driver := g.Drivers[d.Network]; driver != nil {
		if err := driver.DeleteChannel(ctx, d.Channel); err != nil {
			return err
		}
	}
	return g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.LeaveNetwork(ctx, d.ID) })
}

func (g *Gateway) storeProblem(ctx context.Context, id int64, problem error) {
	text := "It failed and is tried again. See the log of the server."
	if e, ok := errors.AsType[*parley.Error](problem); ok {
		text = e.Message
	}
	if err := g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetDeletionProblem(ctx, id, text) }); err != nil {
		g.config.Log.Error("store the problem of a deletion", "error", err)
	}
}

// deletionsEvery is how often the node that leads looks for deletions that another node left unfinished.
const deletionsEvery = 5 * time.Second

// runDeletions purges the rows of deleted and reset channels and of deleted webhooks, until ctx ends.
func (g *Gateway) runDeletions(ctx context.Context) {
	ticker := time.NewTicker(deletionsEvery)
	defer ticker.Stop()
	for {
		if g.config.Cluster.Leads() {
			if err := g.purgeDeleted(ctx); err != nil && ctx.Err() == nil {
				g.config.Log.Error("purge deleted channels and webhooks", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-g.purgeNow:
		case <-ticker.C:
		}
	}
}

// purgeDeleted purges until nothing is left. Other writers get as much time as each batch took.
func (g *Gateway) purgeDeleted(ctx context.Context) error {
	for g.config.Cluster.Leads() {
		d, err := g.config.Store.NextDeletion(ctx)
		if errors.Is(err, parley.ErrNotFound) {
			return nil
		}
		if err == nil && d.Channel != "" && d.Messages < 0 {
			err = g.countDeletion(ctx, d.ID)
		}
		began := time.Now()
		if err == nil {
			err = g.purgeSome(ctx)
		}
		if err != nil {
			if d.ID != 0 && ctx.Err() == nil {
				g.storeProblem(ctx, d.ID, err)
			}
			return err
		}
		if !wait.Sleep(ctx, time.Since(began)) {
			return ctx.Err()
		}
	}
	return nil
}

func (g *Gateway) countDeletion(ctx context.Context, id int64) error {
	n, err := g.config.Store.CountDeletion(ctx, id)
	if err != nil {
		return err
	}
	return g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetDeletionMessages(ctx, id, n) })
}

func (g *Gateway) purgeSome(ctx context.Context) error {
	var files []parley.Media
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		files, _, err = tx.PurgeChannels(ctx)
		return err
	})
	if err == nil {
		g.RemoveFiles(ctx, files)
	}
	return err
}
