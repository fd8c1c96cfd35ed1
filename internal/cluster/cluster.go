// Package cluster decides which node serves which channel, where several nodes share one PostgreSQL database.
//
// Channels and webhooks are spread over shards. Each shard belongs to at most one node. A node is a row in the database that
// its process renews every [beatEvery]. If it does not, another node deletes the row and takes over its shards.
//
// Invariants:
//
//   - Every transaction of a node locks its row (function fence). Deleting the row waits for that lock, so after it nothing
//     of the node can be committed, whatever its clock says and however long it slept.
//   - The id of a node is never used again. A node that lost its row stops everything, then joins under a new id.
//   - A shard is released through the store's writer, after everything of the shard was stopped.
//   - Clocks decide only when a node is taken over, never whether it may write.
//   - Nobody is removed until the own beats have succeeded for [lease]: an outage of the database moves no shard.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"parley/internal/store"
	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

const (
	// Shards is how many shards a database has.
	Shards = 128

	// lease is how long a node stays a member without a beat.
	lease = 6 * time.Second
	// beatEvery is the time between two beats.
	beatEvery = 1500 * time.Millisecond
	// callLimit is how long one call to the database may take.
	callLimit = time.Second
	// sendMargin is how long before the end of its lease a node stops sending.
	sendMargin = time.Second
	// releaseAtOnce is how many shards are released together. Their channels are closed at the same time.
	releaseAtOnce = 8
)

// Node is a process of the cluster.
type Node struct {
	ID        int64
	URL       string // where other nodes reach it
	Version   string
	Draining  bool // it releases its shards and gets no others
	StartedAt time.Time
	ExpiresAt time.Time
	Shards    int
	Keys      [][]byte // fingerprints of the lines of its secret.key; only [RunningNodes] reads them
	Self      bool     // this process
}

// Membership says what this process serves.
type Membership interface {
	// ID is the id of this node; 0: it is not a member.
	ID() int64
	// Owns reports whether this process serves a channel or webhook.
	Owns(key string) bool
	// Leads reports whether this process does what only one node does.
	Leads() bool
	// MaySend reports whether messages may be sent now. Another node may take over soon after it became false.
	MaySend() bool
	// Owner returns the node that serves a channel or webhook. Without one it waits a while. ok is false if there is none.
	Owner(ctx context.Context, key string) (n Node, ok bool)
	// Now is the time by the clock that all nodes share.
	Now() time.Time
	// Nodes lists the nodes.
	Nodes(ctx context.Context) ([]Node, error)
	// Drain makes a node release its shards. It returns false if there is no such node.
	Drain(ctx context.Context, id int64) (bool, error)
}

// Single is the membership of the only process, which serves everything.
type Single struct{}

func (Single) ID() int64                                  { return 0 }
func (Single) Owns(string) bool                           { return true }
func (Single) Leads() bool                                { return true }
func (Single) MaySend() bool                              { return true }
func (Single) Owner(context.Context, string) (Node, bool) { return Node{Self: true}, true }
func (Single) Now() time.Time                             { return time.Now() }
func (Single) Nodes(context.Context) ([]Node, error)      { return nil, nil }
func (Single) Drain(context.Context, int64) (bool, error) { return false, nil }

// Config configures a node. Log and Version are required.
type Config struct {
	Database string // its address
	URL      string // where other nodes reach this one; empty: nowhere
	Version  string
	Keys     [][]byte // fingerprints of the lines of secret.key; nodes share a line, and the first one encrypts
	Log      *slog.Logger
	Metrics  prometheus.Registerer // nil: no metrics

	// Acquired starts everything of shards that this node owns since now. Requests wait until it returns.
	Acquired func(ctx context.Context) error
	// Joined is called with the id of this node each time it becomes a member. It must not block.
	Joined func(id int64)
	// Changed is called when a node changed channels, tokens or webhooks. It must not block.
	Changed func(Changes)
	// Stop stops everything of shards that this node no longer owns, and returns when nothing of them can be written any
	// more. An error means that this is not certain.
	Stop func(ctx context.Context) error
	// Fail is called if the node cannot go on. The process must end.
	Fail func(error)
}

// Cluster is this process's membership.
type Cluster struct {
	config  Config
	store   *store.DB
	metrics *metrics

	id       atomic.Int64 // 0: not a member now
	leaving  atomic.Bool
	lost     chan int64 // the id that was lost
	balance  chan struct{}
	announce chan struct{}
	events   chan struct{} // events to announce
	changes  chan struct{} // other changes to announce
	running  sync.WaitGroup
	stop     context.CancelFunc
	conn     *pgx.Conn     // of the beats
	notifier *pgx.Conn     // of the notifications
	ownPID   atomic.Uint32 // of the notifier's session
	channel  string        // of NOTIFY
	exposure sqldb.Exposure

	moving sync.Mutex // held while shards are acquired or released

	reading         sync.Mutex // held while the state is read
	revision, state int64      // up to where changes and statuses were read

	mu         sync.RWMutex
	owned      [Shards]bool // stored as this node's
	ready      [Shards]bool // owned and started
	doubted    [Shards]bool // owned, and the last reading says that it is not
	acquiredAt time.Time    // when shards were last acquired
	owners     [Shards]int64
	nodes      map[int64]Node
	changed    chan struct{} // closed when owned, owners or nodes change
	until      time.Time     // when the lease ends
	beating    time.Time     // since when all beats succeeded; zero: the last one failed
	offset     time.Duration // how far the clock of this machine is ahead of the database's
	draining   bool
	last       int64 // event
}

// New makes a node that has not joined. Member is what the databases need to be opened.
func New(c Config) *Cluster {
	return &Cluster{config: c, lost: make(chan int64, 1), balance: make(chan struct{}, 1), announce: make(chan struct{}, 1),
		events: make(chan struct{}, 1), changes: make(chan struct{}, 1), nodes: map[int64]Node{}, changed: make(chan struct{})}
}

// Member is what ties the writers of databases to the membership.
func (c *Cluster) Member() *sqldb.Member {
	return &sqldb.Member{ID: c.id.Load, Lost: c.fenced, Committed: c.committed}
}

// Join makes the process a member. It renews the membership until Leave. Shards are acquired after Start.
func (c *Cluster) Join(ctx context.Context, db *store.DB) error {
	c.store = db
	c.metrics = newMetrics(c.config.Metrics, c)
	if err := c.connect(ctx); err != nil {
		return err
	}
	c.exposure = sqldb.NewExposure(c.conn)
	var schema string
	if err := c.conn.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return err
	}
	c.channel = "parley_" + schema
	if err := c.checkKey(ctx); err != nil {
		return err
	}
	if err := c.conn.QueryRow(ctx, newestChanges).Scan(&c.revision, &c.state); err != nil {
		return err
	}
	db.Watch(func() { wait.Notify(c.events) }, func() { wait.Notify(c.changes) },
		func(held time.Duration) { c.metrics.logSeconds.Observe(held.Seconds()) })
	if err := c.insert(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.running.Go(func() { c.beats(running) })
	c.running.Go(func() { c.listen(running) })
	c.running.Go(func() { c.notify(running) })
	return nil
}

// checkKey makes sure that the file has the key of the database, and that running nodes can read what this one encrypts and the other
// way round. The first node stores the fingerprint of its oldest key.
func (c *Cluster) checkKey(ctx context.Context) error {
	var print []byte
	err := c.conn.QueryRow(ctx, `WITH first AS (INSERT INTO cluster (one, shards, key_print) VALUES (1, $1, $2)
		ON CONFLICT DO NOTHING RETURNING key_print)
		SELECT key_print FROM first UNION ALL SELECT key_print FROM cluster LIMIT 1`, Shards, c.config.Keys[len(c.config.Keys)-1]).Scan(&print)
	if err != nil {
		return fmt.Errorf("read the fingerprint of the secret key: %w", err)
	}
	if !HasKey(c.config.Keys, print) {
		return ErrOtherKey
	}
	nodes, err := runningNodes(ctx, c.conn)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if !HasKey(n.Keys, c.config.Keys[0]) || !HasKey(c.config.Keys, n.Keys[0]) {
			return fmt.Errorf("%w: node %d at %s", ErrSkippedKey, n.ID, n.URL)
		}
	}
	return nil
}

// HasKey reports whether a key is among others, by their fingerprints.
func HasKey(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// Errors of a node whose secret.key is not that of the other nodes.
var (
	ErrOtherKey   = errors.New("secret.key is not the one that this database was made with: copy the file from another node")
	ErrSkippedKey = errors.New("the first line of secret.key is not in the file of another node, or the other way round: " +
		"give all nodes the file of the step before and restart them first")
)

// insert adds the row of this node. A node that was drained before it lost its row stays drained.
func (c *Cluster) insert(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	began := time.Now()
	var id int64
	err := c.conn.QueryRow(ctx, `INSERT INTO node (url, version, draining, keys, expires_at) VALUES ($1, $2, $3, $4, now() + $5)
		RETURNING id`, c.config.URL, c.config.Version, c.Draining(), c.config.Keys, lease).Scan(&id)
	if err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	c.mu.Lock()
	c.until, c.beating = began.Add(lease), began
	c.mu.Unlock()
	c.id.Store(id)
	c.config.Log.Info("joined the cluster", "node", id)
	if c.config.Joined != nil {
		c.config.Joined(id)
	}
	return nil
}

// Start acquires shards from now on. The first ones are acquired when it returns. The error is an [AddressTaken] if an older node has
// the same address.
func (c *Cluster) Start(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	if err = c.awaitAddress(ctx, conn); err == nil {
		err = c.read(ctx, conn)
	}
	if err == nil {
		err = c.acquire(ctx, conn)
	}
	if err == nil {
		err = c.startOwned(ctx)
	}
	if err != nil {
		conn.Close(ctx)
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopBefore := c.stop
	c.stop = func() { stop(); stopBefore() }
	c.running.Go(func() { c.balances(running, conn) })
	return nil
}

// AddressTaken is the error of a node whose address another one has.
type AddressTaken struct{ By int64 }

func (e *AddressTaken) Error() string { return fmt.Sprintf("node %d has the same address", e.By) }

// awaitAddress waits until no older node has the address of this one. A node that renews its membership keeps its address; this
// process may have ended and started again before the membership of its predecessor expired.
func (c *Cluster) awaitAddress(ctx context.Context, conn *pgx.Conn) error {
	found := map[int64]time.Time{}
	for {
		var taken *AddressTaken
		left := 0
		err := c.call(ctx, conn, func(ctx context.Context) error {
			rows, err := conn.Query(ctx, `SELECT id, expires_at FROM node WHERE url = $1 AND id < $2 AND expires_at > now()`,
				c.config.URL, c.id.Load())
			if err != nil {
				return err
			}
			var id int64
			var expires time.Time
			_, err = pgx.ForEachRow(rows, []any{&id, &expires}, func() error {
				left++
				if before, again := found[id]; again && expires.After(before) {
					taken = &AddressTaken{id}
				}
				found[id] = expires
				return nil
			})
			return err
		})
		switch {
		case err != nil:
			return err
		case taken != nil:
			return taken
		case left == 0:
			return nil
		case !wait.Sleep(ctx, beatEvery/8):
			return ctx.Err()
		}
	}
}

// Leave releases all shards and ends the membership.
func (c *Cluster) Leave(ctx context.Context) error {
	if c.stop == nil {
		return nil
	}
	c.moving.Lock()
	c.leaving.Store(true) // from now on it does not join again
	err := c.release(ctx, c.ownedShards())
	c.moving.Unlock()
	c.stop()
	c.running.Wait() // else a beat could make it a member again
	if id := c.id.Load(); err == nil && id != 0 {
		err = c.store.Tx(ctx, func(tx *store.Tx) error { return tx.RemoveNode(ctx, id) })
	}
	c.id.Store(0)
	c.sendNotify(ctx, "s")
	for _, conn := range []*pgx.Conn{c.conn, c.notifier} {
		if conn != nil {
			conn.Close(context.Background())
		}
	}
	c.stop = nil
	return err
}

// ToShard is the shard of a channel or webhook.
func ToShard(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % Shards)
}

func (c *Cluster) Owns(key string) bool { return c.ownsShard(ToShard(key)) }

// Leads reports whether this node owns the first shard.
func (c *Cluster) Leads() bool { return c.ownsShard(0) }

func (c *Cluster) ownsShard(shard int) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.owned[shard]
}

// Serves reports whether this node serves any shard.
func (c *Cluster) Serves() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ready != [Shards]bool{}
}

func (c *Cluster) ownedShards() (shards []int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, own := range c.owned {
		if own {
			shards = append(shards, int64(i))
		}
	}
	return shards
}

// MaySend is judged by both clocks: while a machine is suspended, the monotonic one stops.
func (c *Cluster) MaySend() bool { return c.Remaining() > sendMargin }

// Remaining is how long the membership lasts without another beat.
func (c *Cluster) Remaining() time.Duration {
	c.mu.RLock()
	until := c.until
	c.mu.RUnlock()
	if c.id.Load() == 0 {
		return 0
	}
	now := time.Now()
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// ClockOffset is how far the clock of this machine is ahead of the database's.
func (c *Cluster) ClockOffset() time.Duration {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.offset
}

// Now is the time by the database's clock.
func (c *Cluster) Now() time.Time { return time.Now().Add(-c.ClockOffset()) }

func (c *Cluster) ID() int64 { return c.id.Load() }

// Exposure is that of the connection with which this node joined.
func (c *Cluster) Exposure() sqldb.Exposure { return c.exposure }

// Draining reports whether this node must release its shards.
func (c *Cluster) Draining() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.draining
}

// ownerWait is how long a request waits until a shard has an owner.
const ownerWait = 3 * time.Second

func (c *Cluster) Owner(ctx context.Context, key string) (Node, bool) {
	shard := ToShard(key)
	timeout := time.NewTimer(ownerWait)
	defer timeout.Stop()
	for {
		c.mu.RLock()
		own, owner, changed := c.ready[shard], c.owners[shard], c.changed
		node, known := c.nodes[owner]
		c.mu.RUnlock()
		switch {
		case own && c.Remaining() > 0:
			return Node{ID: c.id.Load(), Self: true}, true
		case known && owner != c.id.Load():
			return node, true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return Node{}, false
		case <-ctx.Done():
			return Node{}, false
		}
	}
}

// Nodes lists the nodes, by id.
func (c *Cluster) Nodes(context.Context) ([]Node, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	nodes := slices.SortedFunc(maps.Values(c.nodes), func(a, b Node) int { return int(a.ID - b.ID) })
	for i := range nodes {
		nodes[i].Self = nodes[i].ID == c.id.Load()
		for _, owner := range c.owners {
			if owner == nodes[i].ID {
				nodes[i].Shards++
			}
		}
	}
	return nodes, nil
}

func (c *Cluster) Drain(ctx context.Context, id int64) (found bool, err error) {
	err = c.store.Tx(ctx, func(tx *store.Tx) (err error) {
		found, err = tx.DrainNode(ctx, id)
		return err
	})
	if err == nil {
		c.mu.Lock()
		if n, known := c.nodes[id]; known && found {
			n.Draining = true
			c.nodes[id] = n
		}
		c.mu.Unlock()
		wait.Notify(c.announce)
	}
	return found, err
}
