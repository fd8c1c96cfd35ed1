package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/internal/store"
	"parley/internal/wait"
)

// balances acquires and releases shards after each beat, until ctx ends.
func (c *Cluster) balances(ctx context.Context, conn *pgx.Conn) {
	defer func() { conn.Close(context.Background()) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.balance:
		}
		if conn.IsClosed() {
			again, err := c.dial(ctx)
			if err != nil {
				continue // beats report it
			}
			conn = again
		}
		if err := c.rebalance(ctx, conn); err != nil && ctx.Err() == nil {
			c.config.Log.Warn("shards cannot be balanced", "error", err)
		}
	}
}

// rebalance moves towards an equal share of the shards.
func (c *Cluster) rebalance(ctx context.Context, conn *pgx.Conn) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	if c.id.Load() == 0 {
		return nil
	}
	if left := c.unreleased(); len(left) > 0 { // everything of them was stopped, and storing that failed
		return c.storeRelease(ctx, left)
	}
	mine := c.ownedShards()
	if excess := len(mine) - c.share(); excess > 0 { // the highest: that which makes a node lead moves last
		return c.release(ctx, mine[len(mine)-min(excess, releaseAtOnce):])
	}
	return errors.Join(c.acquire(ctx, conn), c.startOwned(ctx))
}

// share is how many shards this node should have: as many as the others, and the oldest ones take one of the rest each.
func (c *Cluster) share() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.draining {
		return 0
	}
	id := c.id.Load()
	serving, older := 1, 0
	for _, n := range c.nodes {
		if n.Draining || n.ID == id {
			continue
		}
		serving++
		if n.ID < id {
			older++
		}
	}
	return shareOf(older, serving)
}

// shareOf is how many shards the node at a place among those that serve should have.
func shareOf(place, serving int) int {
	share := Shards / serving
	if place < Shards%serving {
		share++
	}
	return share
}

// acquire takes free shards up to the own share.
func (c *Cluster) acquire(ctx context.Context, conn *pgx.Conn) error {
	most := c.share() - len(c.ownedShards())
	id := c.id.Load()
	if most <= 0 || id == 0 {
		return nil
	}
	var got []int64
	err := c.call(ctx, conn, func(ctx context.Context) error {
		rows, err := conn.Query(ctx, `UPDATE shard SET node = $1 WHERE id IN
			(SELECT id FROM shard WHERE node IS NULL ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`, id, most)
		if err != nil {
			return err
		}
		got, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil || len(got) == 0 {
		return err
	}
	c.mu.Lock()
	if c.id.Load() == id {
		for _, shard := range got {
			c.owned[shard], c.owners[shard] = true, id
		}
		c.acquiredAt = time.Now()
	}
	c.mu.Unlock()
	c.config.Log.Info("acquired shards", "node", id, "shards", len(got))
	wait.Notify(c.announce)
	return nil
}

// startOwned starts everything of shards that are owned and were not started yet, or not wholly.
func (c *Cluster) startOwned(ctx context.Context) error {
	c.mu.RLock()
	owned, done := c.owned, c.owned == c.ready
	c.mu.RUnlock()
	if done {
		return nil
	}
	if err := c.config.Acquired(ctx); err != nil {
		return fmt.Errorf("start what was acquired: %w", err)
	}
	c.mu.Lock()
	for i := range owned {
		c.ready[i] = owned[i] && c.owned[i] // some may have been lost meanwhile
	}
	c.mu.Unlock()
	c.wakeWaiters()
	return nil
}

// wakeWaiters wakes those who wait for the owner of a shard.
func (c *Cluster) wakeWaiters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// release stops everything of some shards, then stores that nobody owns them. The caller holds c.moving.
func (c *Cluster) release(ctx context.Context, shards []int64) error {
	if len(shards) == 0 {
		return nil
	}
	id := c.id.Load()
	c.mu.Lock()
	for _, shard := range shards {
		c.owned[shard], c.ready[shard] = false, false
	}
	c.mu.Unlock()
	stopping, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := c.config.Stop(stopping); err != nil {
		if id != 0 && c.id.Load() == id { // else the node lost all its shards meanwhile, and rejoin stops everything
			c.config.Fail(fmt.Errorf("channels could not be stopped before another node takes over: %w", err))
		}
		return err
	}
	return c.storeRelease(ctx, shards)
}

// unreleased lists the shards that are stored as this node's although it does not serve them.
func (c *Cluster) unreleased() (shards []int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, owner := range c.owners {
		if owner != 0 && owner == c.id.Load() && !c.owned[i] {
			shards = append(shards, int64(i))
		}
	}
	return shards
}

// storeRelease stores that nobody owns some shards. Everything of them must have been stopped.
func (c *Cluster) storeRelease(ctx context.Context, shards []int64) error {
	id := c.id.Load()
	err := c.store.Tx(ctx, func(tx *store.Tx) error { return tx.ReleaseShards(ctx, id, shards) })
	if err != nil {
		return fmt.Errorf("release shards: %w", err)
	}
	c.mu.Lock()
	for _, shard := range shards {
		if c.owners[shard] == id {
			c.owners[shard] = 0
		}
	}
	c.mu.Unlock()
	c.config.Log.Info("released shards", "node", id, "shards", len(shards))
	wait.Notify(c.announce)
	return nil
}

// HasPeers reports whether another node can take over.
func (c *Cluster) HasPeers() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, n := range c.nodes {
		if n.ID != c.id.Load() && !n.Draining {
			return true
		}
	}
	return false
}

// ReleaseAll hands all shards over, a few at a time.
func (c *Cluster) ReleaseAll(ctx context.Context) error {
	id := c.id.Load()
	if id == 0 {
		return nil
	}
	if _, err := c.Drain(ctx, id); err != nil {
		return err
	}
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	for {
		c.moving.Lock()
		shards := c.ownedShards()
		err := c.release(ctx, shards[:min(len(shards), releaseAtOnce)])
		c.moving.Unlock()
		if err != nil || len(shards) <= releaseAtOnce {
			return err
		}
	}
}
