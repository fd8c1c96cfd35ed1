// Package sandbox is a chat network with simulated phones, for development and tests without an account.
//
// Its database, sandbox.db, is separate from the gateway's and is written before a send is confirmed. So a test that kills
// the gateway can compare what was accepted with what arrived, with copies and order.
//
// Every channel has its own world: the same number in two worlds is two phones. Any number is a phone; its first use
// creates it. [Network] is the driver for the gateway. It is also the side of the phones: the HTTP API and tests use it to
// read phones, to act as them and to order faults.
//
// Invariants:
//
//   - One row per message. It is committed before Send confirms it.
//   - Positions (seq) are assigned by the database's writer, so they become visible in order. On PostgreSQL, which several
//     nodes share, they come from blocks: those of one phone only grow, whichever node has its channel (seq.go).
//   - A channel is open at one node. What memory holds of its world is dropped when another node may open it ([Network.Drop]).
//   - Memory holds only what is in progress: waiting requests, typing, pending reports, unsaved cursors. Everything else
//     about a phone is read from its row, so idle phones cost no memory.
//   - A session reports receipts and phone events to the sink, several phones at once. One goroutine at a time reports a
//     phone, so the order in a chat is right.
//   - A receipt writes no row: a phone has two cursors, delivered and read, saved once a second. After a crash the receipts
//     since then are reported again, which changes nothing.
//   - The purger, one goroutine per network, deletes what is older than the retention and the worlds of deleted channels, in
//     small batches. Of several nodes one does so at a time.
//   - Files are in the library of the server, never in this database: neither is one held in memory.
//   - A page of contacts or groups costs the same in a world of any size: triggers count them in the world's row.
package sandbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

var _ network.Driver = (*Network)(nil)

//go:embed migrations
var embedded embed.FS

var migrations, _ = fs.Sub(embedded, "migrations")

type Network struct {
	// OpenFile opens a file that a phone sent, by the key in its content. It is set before the first session is opened. The
	// error of a file that is gone is [fs.ErrNotExist].
	OpenFile func(ctx context.Context, key string) (io.ReadCloser, error)

	db     *sqldb.DB
	log    *slog.Logger
	shared bool         // other nodes use the database too
	seq    atomic.Int64 // the last position that was assigned
	block  seqBlock
	faults atomic.Int64 // queued in all worlds

	purger purger
	mu     sync.Mutex
	worlds map[parley.ChannelCode]*world
}

// Open opens the network whose database is the file at path; "memory:NAME" is a database in memory, and "postgres://…" a
// database that several nodes share. Of those only members of the cluster write; nil: there is no cluster.
func Open(ctx context.Context, path string, member *sqldb.Member, log *slog.Logger) (*Network, error) {
	return openWith(ctx, path, member, log, 0)
}

// openWith opens it with a number of connections for reading; 0: the default. Tests use one, to show that no call needs two.
func openWith(ctx context.Context, path string, member *sqldb.Member, log *slog.Logger, readers int) (*Network, error) {
	// Commits survive the end of the process. A power cut may lose the last simulated messages.
	db, err := sqldb.Open(ctx, sqldb.Options{
		Path: path, Schema: "sandbox", Member: member, Durable: false, Migrations: migrations, Readers: readers,
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox network: %w", err)
	}
	n := &Network{db: db, log: log, shared: sqldb.IsPostgres(path), worlds: map[parley.ChannelCode]*world{}}
	if !n.shared {
		if err := n.loadSeq(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("sandbox network: %w", err), db.Close())
		}
	}
	n.startPurger()
	return n, nil
}

// Close closes the sessions that are still open, and the database. It may be called twice.
func (n *Network) Close() error {
	for _, w := range n.loaded() {
		if s := w.session.Load(); s != nil {
			s.Close()
		}
	}
	n.purger.cancel()
	n.purger.done.Wait()
	return n.db.Close()
}

// Info says that the sandbox can do everything, and needs neither an account nor a pace.
var Info = network.Info{Name: parley.Sandbox, Title: "Sandbox", Simulated: true, Groups: true, Kinds: parley.Kinds}

func (n *Network) Info() network.Info { return Info }

// NewID chooses an id of the form that WhatsApp's web clients use.
func (n *Network) NewID() parley.MessageID { return network.RandomID("3EB0") }

func (n *Network) Open(ctx context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	if err := n.refresh(ctx, channel.Code); err != nil {
		return nil, err
	}
	w, err := n.world(ctx, channel.Code)
	if err != nil {
		return nil, err
	}
	return newSession(w, channel, sink)
}

// DeleteChannel removes a channel's world. Callers do not see it any more; its rows are purged in batches.
func (n *Network) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	w, err := n.world(ctx, code)
	if err != nil {
		return err
	}
	if w.session.Load() != nil {
		return fmt.Errorf("delete sandbox channel %s: its session is open", code)
	}
	err = w.write(ctx, "delete sandbox channel "+string(code), func(tx *sqldb.Tx) error {
		tx.OnCommit(func() {
			n.mu.Lock()
			delete(n.worlds, code)
			n.mu.Unlock()
			w.clear()
		})
		return markRemoved(tx, w.id.Load())
	})
	wait.Notify(n.purger.now)
	return err
}

// Reset gives a channel a new world with the same number: paired, with its two phones, their group and no faults. The rows
// of the old world are purged in batches.
func (n *Network) Reset(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	err = w.write(ctx, "reset sandbox channel "+string(channel), func(tx *sqldb.Tx) error {
		if err := markRemoved(tx, w.id.Load()); err != nil {
			return err
		}
		id, err := createWorld(tx, channel, w.number)
		if err == nil && id == 0 {
			err = errMoved() // another node created one
		}
		tx.OnCommit(func() {
			w.id.Store(id)
			w.loggedOut.Store(false)
			w.clear()
		})
		return err
	})
	if err != nil {
		return err
	}
	wait.Notify(n.purger.now)
	if s := w.session.Load(); s != nil {
		return s.Pair(ctx)
	}
	return nil
}
