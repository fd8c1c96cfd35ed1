package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/internal/cluster"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// node is a member with a store of its own.
type node struct {
	*cluster.Cluster
	db *store.DB

	mu      sync.Mutex
	changes cluster.Changes
	started int   // how often everything was to be started
	broken  error // starting fails
	stopped int   // how often everything was stopped
	failed  error
	stop    func() error // stops everything; nil: nothing needs that
}

var ports atomic.Int64

func join(t *testing.T, address string) *node {
	t.Helper()
	n := joinAt(t, address, fmt.Sprintf("https://127.0.0.1:%d", ports.Add(1)))
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// joinAt makes a member with an address that has not started.
func joinAt(t *testing.T, address, url string) *node {
	t.Helper()
	n := &node{}
	n.Cluster = cluster.New(cluster.Config{
		Database: address, URL: url, Version: "test", Keys: [][]byte{[]byte("print")},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Changed: func(c cluster.Changes) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.changes.Add(c)
		},
		Acquired: func(context.Context) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.started++
			return n.broken
		},
		Stop: func(context.Context) error {
			n.mu.Lock()
			n.stopped++
			stop := n.stop
			n.mu.Unlock()
			if stop != nil {
				return stop()
			}
			return nil
		},
		Fail: func(err error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.failed = err
		},
	})
	var err error
	if n.db, err = store.OpenAs(t.Context(), address, n.Member(), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.db.Close() })
	if err := n.Join(t.Context(), n.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Leave(context.Background()) })
	return n
}

// write adds an event.
func (n *node) write(t *testing.T) error {
	return n.db.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddEvent(t.Context(), &parley.Event{Type: parley.WebhookGap, At: time.Now()})
	})
}

// shares returns how many shards each node has.
func shares(t *testing.T, n *node) map[int64]int {
	nodes, err := n.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shares := map[int64]int{}
	for _, n := range nodes {
		shares[n.ID] = n.Shards
	}
	return shares
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func owned(n *node) (shards int) {
	for i := range cluster.Shards {
		if n.OwnsShard(i) {
			shards++
		}
	}
	return shards
}

func TestCluster(t *testing.T) {
	server := postgrestest.Start(t)
	t.Run("shards are spread, drained and handed over", func(t *testing.T) { testBalance(t, server.Schema(t)) })
	t.Run("a node that stops renewing is taken over and cannot write", func(t *testing.T) { testTakenOver(t, server.Schema(t)) })
	t.Run("a node that was taken over joins again", func(t *testing.T) { testJoinAgain(t, server.Schema(t)) })
	t.Run("a drained node that was taken over stays drained", func(t *testing.T) { testJoinDrained(t, server.Schema(t)) })
	t.Run("another key is refused", func(t *testing.T) {
		address := server.Schema(t)
		n := join(t, address)
		other := cluster.New(cluster.Config{Database: address, Version: "test", Keys: [][]byte{[]byte("another")},
			Log: slog.New(slog.DiscardHandler)})
		if err := other.Join(t.Context(), n.db); !errors.Is(err, cluster.ErrOtherKey) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an address belongs to one node", func(t *testing.T) { testAddress(t, server.Schema(t)) })
	t.Run("a start that failed is tried again", func(t *testing.T) { testStartAgain(t, server.Schema(t)) })
	t.Run("a node that serves what is not its own begins again", func(t *testing.T) { testStolen(t, server) })
	t.Run("a node that is taken over while it releases joins again", func(t *testing.T) { testLostWhileReleasing(t, server) })
	t.Run("changes say what changed", func(t *testing.T) { testChanges(t, server.Schema(t)) })
	t.Run("a slow read costs nobody the membership", func(t *testing.T) { testSlowRead(t, server) })
	t.Run("nodes of other installations keep their sessions", func(t *testing.T) { testNames(t, server) })
	t.Run("events of other nodes wake waiters", func(t *testing.T) {
		address := server.Schema(t)
		a, b := join(t, address), join(t, address)
		added := b.db.EventAdded()
		if err := a.write(t); err != nil {
			t.Fatal(err)
		}
		select {
		case <-added:
		case <-time.After(time.Minute):
			t.Error("nobody was woken")
		}
	})
}

func testBalance(t *testing.T, address string) {
	a := join(t, address)
	if owned(a) != cluster.Shards {
		t.Fatalf("the only node has %d shards", owned(a))
	}
	b := join(t, address)
	c := join(t, address)
	eventually(t, "equal shares", func() bool {
		for _, n := range []*node{a, b, c} {
			if o := owned(n); o < 42 || o > 43 {
				return false
			}
		}
		return owned(a)+owned(b)+owned(c) == cluster.Shards
	})
	for i := range cluster.Shards { // the owner is the same for all
		key := keyOnShard(i)
		own := 0
		for _, n := range []*node{a, b, c} {
			if n.Owns(key) {
				own++
			}
		}
		if own != 1 {
			t.Fatalf("shard %d has %d owners", i, own)
		}
	}
	if found, err := a.Drain(t.Context(), b.ID()); !found || err != nil {
		t.Fatalf("drain: %v, %v", found, err)
	}
	eventually(t, "the drained node has nothing", func() bool { return owned(b) == 0 && owned(a)+owned(c) == cluster.Shards })
	if !b.Draining() {
		t.Error("the node does not know that it drains")
	}
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last one has all", func() bool { return owned(c) == cluster.Shards })
	if len(shares(t, c)) != 2 {
		t.Errorf("nodes: %v", shares(t, c))
	}
	if found, err := c.Drain(t.Context(), 12345); found || err != nil {
		t.Errorf("drain of nobody: %v, %v", found, err)
	}
}

// keyOnShard is a key of a shard.
func keyOnShard(shard int) string {
	for i := 0; ; i++ {
		key := string(rune('a'+i%26)) + string(rune('0'+i/26%75)) + string(rune('0'+i/26/75))
		if cluster.ToShard(key) == shard {
			return key
		}
	}
}

func testTakenOver(t *testing.T, address string) {
	a, b := join(t, address), join(t, address)
	eventually(t, "both have shards", func() bool { return owned(a) == 64 && owned(b) == 64 })
	if err := a.write(t); err != nil {
		t.Fatal(err)
	}
	a.StopBeats() // the process hangs
	eventually(t, "the other has all", func() bool { return owned(b) == cluster.Shards })
	if a.MaySend() {
		t.Error("it may still send")
	}
	if err := a.write(t); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("it could write: %v", err)
	}
	if err := b.write(t); err != nil {
		t.Error(err)
	}
}

func testJoinAgain(t *testing.T, address string) {
	a, b := join(t, address), join(t, address)
	eventually(t, "both have shards", func() bool { return owned(a) == 64 && owned(b) == 64 })
	was := a.ID()
	if err := b.db.Tx(t.Context(), func(tx *store.Tx) error { return tx.RemoveNode(t.Context(), was) }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new member", func() bool {
		return a.ID() != 0 && a.ID() != was && owned(a)+owned(b) == cluster.Shards && owned(a) == 64
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == 0 || a.failed != nil {
		t.Errorf("stopped %d times, failed: %v", a.stopped, a.failed)
	}
}

func testJoinDrained(t *testing.T, address string) {
	a, b := join(t, address), join(t, address)
	eventually(t, "both have shards", func() bool { return owned(a) == 64 && owned(b) == 64 })
	was := a.ID()
	if found, err := b.Drain(t.Context(), was); !found || err != nil {
		t.Fatalf("drain: %v, %v", found, err)
	}
	eventually(t, "it drains", func() bool { return a.Draining() && owned(b) == cluster.Shards })
	if err := b.db.Tx(t.Context(), func(tx *store.Tx) error { return tx.RemoveNode(t.Context(), was) }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new member that drains", func() bool {
		nodes, err := b.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.ID == a.ID() && n.ID != was {
				return n.Draining
			}
		}
		return false
	})
	if !a.Draining() || owned(a) != 0 || owned(b) != cluster.Shards {
		t.Errorf("draining: %v; %d and %d shards", a.Draining(), owned(a), owned(b))
	}
}

// testAddress starts nodes with the address of another one: while that renews its membership, and when its process has ended.
func testAddress(t *testing.T, address string) {
	const url = "https://10.0.0.11:7276"
	first := joinAt(t, address, url)
	second := joinAt(t, address, url)
	if err := first.Start(t.Context()); err != nil { // the address was its own first
		t.Fatal(err)
	}
	taken, ok := errors.AsType[*cluster.AddressTaken](second.Start(t.Context()))
	if !ok || taken.By != first.ID() {
		t.Errorf("the second node got %v, want that node %d has the address", taken, first.ID())
	}
	if err := second.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	first.StopBeats()
	again := joinAt(t, address, url)
	if err := again.Start(t.Context()); err != nil {
		t.Errorf("a node that starts again with the address of its predecessor: %v", err)
	}
}

// testStartAgain has the first start of acquired shards fail.
func testStartAgain(t *testing.T, address string) {
	a := join(t, address)
	b := joinAt(t, address, fmt.Sprintf("https://127.0.0.1:%d", ports.Add(1)))
	b.broken = errors.New("the database does not answer")
	if err := b.Start(t.Context()); err != nil && !errors.Is(err, b.broken) {
		t.Fatal(err)
	}
	eventually(t, "it tried", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return owned(b) == 64 && b.started > 1
	})
	if b.Serves() {
		t.Error("it serves what could not be started")
	}
	b.mu.Lock()
	b.broken = nil
	b.mu.Unlock()
	eventually(t, "it serves", func() bool { return b.Serves() && owned(a) == 64 })
}

// testStolen takes a shard from its owner, as a standby without the last commits does.
func testStolen(t *testing.T, server *postgrestest.Server) {
	address := server.Schema(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	a := join(t, address)
	was := a.ID()
	if err := server.Exec("UPDATE " + schema + ".shard SET node = NULL WHERE id = 127"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new member with all shards", func() bool { return a.ID() != 0 && a.ID() != was && owned(a) == cluster.Shards })
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == 0 || a.failed != nil {
		t.Errorf("stopped %d times, failed: %v", a.stopped, a.failed)
	}
}

// testLostWhileReleasing: everything of a node that lost its membership is stopped, not only what it was releasing. That the release
// found it running does not end the process.
func testLostWhileReleasing(t *testing.T, server *postgrestest.Server) {
	address := server.Schema(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	a := join(t, address)
	was := a.ID()
	var lost atomic.Bool
	a.mu.Lock()
	a.stop = func() error {
		if lost.Swap(true) {
			return nil
		}
		if err := server.Exec(fmt.Sprintf("DELETE FROM %s.node WHERE id = %d", schema, was)); err != nil {
			return err
		}
		eventually(t, "it knows", func() bool { return a.ID() != was })
		return errors.New("a channel is still open")
	}
	a.mu.Unlock()
	b := join(t, address) // it gets half of the shards
	eventually(t, "both have shards", func() bool { return a.ID() != was && owned(a) > 0 && owned(b) > 0 })
	a.mu.Lock()
	defer a.mu.Unlock()
	if !lost.Load() || a.failed != nil {
		t.Errorf("lost its membership: %t, failed: %v", lost.Load(), a.failed)
	}
}

func testChanges(t *testing.T, address string) {
	a, b := join(t, address), join(t, address)
	err := a.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(
			tx.AddChannel(t.Context(), parley.Channel{Code: "shop", Network: parley.Sandbox}),
			tx.AddToken(t.Context(), parley.Token{ID: "tok_1", Name: "one", Kind: parley.GlobalToken}),
			tx.AddWebhook(t.Context(), parley.Webhook{ID: "whk_1", URL: "https://example.com"}),
			tx.AddEvent(t.Context(), parley.NewChannelEvent(parley.Channel{Code: "shop", State: parley.ChannelState{
				Status: parley.ChannelWorking, Since: time.Now()}}, parley.ChannelStarting, time.Now())))
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it knows", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		c := b.changes
		return !c.All && !c.Keys && slices.Equal(c.Channels, []parley.ChannelCode{"shop"}) && slices.Equal(c.Tokens, []parley.TokenID{"tok_1"}) &&
			slices.Equal(c.Webhooks, []parley.WebhookID{"whk_1"}) && slices.Equal(c.Statuses, []parley.ChannelCode{"shop"})
	})
	err = a.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		for i := range 600 {
			err = errors.Join(err, tx.AddChannel(t.Context(), parley.Channel{Code: parley.ChannelCode(fmt.Sprint("c", i)), Network: parley.Sandbox}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it reads everything", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.changes.All
	})
}

// testSlowRead locks a table that each reading of the state needs, for longer than a membership lasts.
func testSlowRead(t *testing.T, server *postgrestest.Server) {
	address := server.Schema(t)
	a, b := join(t, address), join(t, address)
	eventually(t, "both have shards", func() bool { return owned(a) == 64 && owned(b) == 64 })
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ids := [2]int64{a.ID(), b.ID()}
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE channel_state; SELECT pg_sleep(10); COMMIT"); err != nil {
		t.Fatal(err)
	}
	if now := [2]int64{a.ID(), b.ID()}; now != ids || !a.MaySend() || !b.MaySend() {
		t.Errorf("the nodes are %v, were %v", now, ids)
	}
}

// testNames removes a node whose id a node of another schema has.
func testNames(t *testing.T, server *postgrestest.Server) {
	first, second := join(t, server.Schema(t)), join(t, server.Schema(t))
	if first.ID() != second.ID() {
		t.Fatalf("the nodes are %d and %d", first.ID(), second.ID())
	}
	third := join(t, server.Schema(t))
	for _, n := range []*node{first, second, third} {
		if err := n.write(t); err != nil {
			t.Fatal(err)
		}
	}
	names, err := server.Query(`SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE application_name LIKE 'parley-%'`)
	if err != nil || names < "3" {
		t.Errorf("the sessions of three installations have %s names (%v)", names, err)
	}
}

// TestShares spreads the channels of a large installation over any number of nodes.
func TestShares(t *testing.T) {
	var onShard [cluster.Shards]int
	for i := range 10_000 {
		onShard[cluster.ToShard(fmt.Sprintf("shop-%d", i))]++
	}
	for nodes := 2; nodes <= 32; nodes++ {
		shard, least, most := 0, 10_000, 0
		for place := range nodes {
			share, channels := cluster.ShareOf(place, nodes), 0
			if share != cluster.Shards/nodes && share != cluster.Shards/nodes+1 {
				t.Errorf("%d nodes: one has %d shards", nodes, share)
			}
			for range share {
				channels += onShard[shard]
				shard++
			}
			least, most = min(least, channels), max(most, channels)
		}
		if shard != cluster.Shards {
			t.Errorf("%d nodes have %d shards", nodes, shard)
		}
		if float64(most) > 1.6*float64(least) {
			t.Errorf("%d nodes: between %d and %d channels", nodes, least, most)
		}
	}
}
