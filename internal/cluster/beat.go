package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

// connect connects the beats, unless they are connected.
func (c *Cluster) connect(ctx context.Context) (err error) {
	if c.conn == nil || c.conn.IsClosed() {
		c.conn, err = c.dial(ctx)
	}
	return err
}

func (c *Cluster) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*callLimit)
	defer cancel()
	return sqldb.ConnectPostgres(ctx, c.config.Database)
}

// beats renews the membership until ctx ends. They have a connection of their own: a long queue of writes must not look like
// the end of the process.
func (c *Cluster) beats(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		err := c.beat(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.config.Log.Warn("the membership was not renewed", "error", err)
			c.mu.Lock()
			c.beating = time.Time{}
			c.mu.Unlock()
		} else {
			wait.Notify(c.balance)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case was := <-c.lost:
			if !c.rejoin(ctx, was) {
				return
			}
		}
	}
}

// beat renews the membership, and removes nodes that do not renew theirs. Who owns what is read elsewhere: a slow read must not cost
// the membership.
func (c *Cluster) beat(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	id := c.id.Load()
	if id == 0 {
		return nil // rejoin follows
	}
	began := time.Now()
	var draining bool
	var now time.Time
	err := c.call(ctx, c.conn, func(ctx context.Context) error {
		return c.conn.QueryRow(ctx, `UPDATE node SET expires_at = now() + $2 WHERE id = $1 RETURNING draining, clock_timestamp()`, id, lease).
			Scan(&draining, &now)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		c.fenced(id)
		return nil
	}
	if err != nil {
		return err
	}
	if c.Remaining() <= 0 {
		defer c.wakeWaiters()
	}
	c.mu.Lock()
	c.until, c.draining = began.Add(lease), draining
	if c.beating.IsZero() {
		c.beating = began
	}
	steady := time.Since(c.beating) >= lease
	c.offset = began.Add(time.Since(began) / 2).Sub(now)
	c.mu.Unlock()
	if steady {
		return c.reap(ctx)
	}
	return nil
}

// call runs one statement with a deadline. A connection that did not answer is closed.
func (c *Cluster) call(ctx context.Context, conn *pgx.Conn, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := do(limited)
	if limited.Err() != nil {
		conn.Close(context.Background())
	}
	return err
}

// read reads the nodes, who owns what, and what other nodes changed. Each of its statements reads only what is new, or little.
func (c *Cluster) read(ctx context.Context, conn *pgx.Conn) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	nodes := map[int64]Node{}
	var owners [Shards]int64
	changes := Changes{revision: c.revision, state: c.state}
	last, began := int64(0), time.Now()
	err := c.call(ctx, conn, func(ctx context.Context) error {
		batch := &pgx.Batch{}
		batch.Queue(`SELECT id, url, version, draining, started_at, expires_at FROM node`).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var n Node
				if err := rows.Scan(&n.ID, &n.URL, &n.Version, &n.Draining, &n.StartedAt, &n.ExpiresAt); err != nil {
					return err
				}
				nodes[n.ID] = n
			}
			return rows.Err()
		})
		batch.Queue(`SELECT id, node FROM shard WHERE node IS NOT NULL`).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var shard, node int64
				if err := rows.Scan(&shard, &node); err != nil {
					return err
				}
				owners[shard] = node
			}
			return rows.Err()
		})
		batch.Queue(`SELECT coalesce(max(seq), 0) FROM event`).QueryRow(func(row pgx.Row) error { return row.Scan(&last) })
		changes.queue(batch)
		return conn.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return fmt.Errorf("read the nodes: %w", err)
	}
	c.mu.Lock()
	c.nodes, c.owners = nodes, owners
	c.draining = c.draining || nodes[c.id.Load()].Draining
	added := last != c.last
	c.last = last
	stolen := c.findStolen(began)
	c.mu.Unlock()
	c.wakeWaiters()
	if added {
		c.store.NotifyEvents()
	}
	if c.revision, c.state = changes.revision, changes.state; changes.any() {
		c.config.Changed(changes)
	}
	if stolen { // a failover of PostgreSQL may have lost what was committed: begin again with what is stored
		c.config.Log.Error("this node serves shards that are not stored as its own", "node", c.id.Load())
		c.fenced(c.id.Load())
	}
	return nil
}

// findStolen reports whether this node serves a shard that is not stored as its own, by two readings in a row that began after it was
// acquired. It is called with the lock held.
func (c *Cluster) findStolen(began time.Time) (stolen bool) {
	id := c.id.Load()
	for i := range c.owned {
		if !c.owned[i] || c.owners[i] == id || id == 0 || began.Before(c.acquiredAt) {
			c.doubted[i] = false
			continue
		}
		stolen = stolen || c.doubted[i]
		c.doubted[i] = true
	}
	return stolen
}

// reap removes nodes that did not renew their membership. Their sessions are ended first, because a transaction that got
// stuck would hold its locks.
func (c *Cluster) reap(ctx context.Context) error {
	var expired []int64
	err := c.call(ctx, c.conn, func(ctx context.Context) error {
		rows, err := c.conn.Query(ctx, `SELECT id FROM node WHERE expires_at < now()`)
		if err != nil {
			return err
		}
		expired, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	for _, id := range expired {
		err = errors.Join(err, c.call(ctx, c.conn, func(ctx context.Context) error {
			_, err := c.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE application_name = `+sqldb.SessionName("$1")+` AND datname = current_database() AND pid <> pg_backend_pid()`, id)
			return err
		}))
		err = errors.Join(err, c.call(ctx, c.conn, func(ctx context.Context) error {
			tag, err := c.conn.Exec(ctx, `DELETE FROM node WHERE id = $1 AND expires_at < now()`, id) // waits for its transactions
			if err == nil && tag.RowsAffected() > 0 {
				c.metrics.failovers.Inc()
				c.config.Log.Warn("removed a node that did not renew its membership", "node", id)
				wait.Notify(c.announce)
			}
			return err
		}))
	}
	return err
}

// fenced is called when the row of this node is gone.
func (c *Cluster) fenced(id int64) {
	if !c.id.CompareAndSwap(id, 0) {
		return
	}
	c.metrics.fenced.Inc()
	c.config.Log.Error("another node took over: this one did not renew its membership in time", "node", id)
	c.lost <- id
}

// stopLimit is how long stopping everything may take before the process must end.
const stopLimit = 30 * time.Second

// rejoin stops everything, then joins under a new id. Before everything has stopped, something of the earlier membership could
// write under the new id.
func (c *Cluster) rejoin(ctx context.Context, was int64) bool {
	c.mu.Lock()
	c.owned, c.ready = [Shards]bool{}, [Shards]bool{}
	c.until = time.Time{}
	c.mu.Unlock()
	stopping, cancel := context.WithTimeout(ctx, stopLimit)
	err := c.config.Stop(stopping)
	cancel()
	if c.leaving.Load() {
		return false
	}
	if err != nil {
		c.config.Fail(fmt.Errorf("channels could not be stopped after another node took over: %w", err))
		return false
	}
	for {
		err := c.connect(ctx)
		if err == nil { // usually another node has done that
			err = c.call(ctx, c.conn, func(ctx context.Context) error {
				_, err := c.conn.Exec(ctx, `DELETE FROM node WHERE id = $1`, was)
				return err
			})
		}
		if err == nil {
			err = c.insert(ctx)
		}
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.config.Log.Warn("the node cannot join the cluster", "error", err)
		wait.Sleep(ctx, beatEvery)
	}
}
