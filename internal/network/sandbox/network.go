package sandbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

var _ network.Driver = (*Network)(nil)

//go:embed migrations
var migrations embed.FS

// Network is the sandbox network with its database.
type Network struct {
	db  *sqldb.DB
	log *slog.Logger
	seq atomic.Int64 // the last position that was assigned

	purger purger
	mu     sync.Mutex
	worlds map[parley.ChannelCode]*world
}

// Open opens the network whose database is the file at path; "memory:NAME" is a database in memory.
func Open(ctx context.Context, path string, log *slog.Logger) (*Network, error) {
	return openWith(ctx, path, log, 0)
}

// openWith opens it with a number of connections for reading; zero: the default. Tests use one, which shows that nothing
// needs two at a time.
func openWith(ctx context.Context, path string, log *slog.Logger, readers int) (*Network, error) {
	tables, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	// Commits survive the end of the process. A power cut may lose the last ones: nobody owns simulated messages.
	db, err := sqldb.Open(ctx, sqldb.Options{Path: path, Durable: false, Migrations: tables, Readers: readers})
	if err != nil {
		return nil, fmt.Errorf("sandbox network: %w", err)
	}
	n := &Network{db: db, log: log, worlds: map[parley.ChannelCode]*world{}}
	if err := errors.Join(n.unpackFirstVersion(ctx), n.loadSeq(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox network: %w", err), db.Close())
	}
	n.startPurger()
	return n, nil
}

// loadSeq finds the last position that was assigned.
func (n *Network) loadSeq(ctx context.Context) error {
	last, err := lastSeq(n.db.Read(ctx))
	if err != nil {
		return err
	}
	var lastEvent int64
	if err := n.db.Read(ctx).QueryRow(`SELECT coalesce(max(seq), 0) FROM events`, nil, &lastEvent); err != nil {
		return err
	}
	n.seq.Store(max(last, lastEvent))
	return nil
}

// Close closes the sessions that are still open, and the database. It may be called twice.
func (n *Network) Close() error {
	n.mu.Lock()
	var open []*session
	for _, w := range n.worlds {
		if s := w.session.Load(); s != nil {
			open = append(open, s)
		}
	}
	n.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.Close())
	}
	n.purger.stop()
	return errors.Join(append(errs, n.db.Close())...)
}

// Open starts a channel's session.
func (n *Network) Open(ctx context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	w, err := n.world(ctx, channel.Code)
	if err != nil {
		return nil, err
	}
	return newSession(w, channel, sink)
}

// DeleteChannel removes a channel's world: at once for callers, its rows in batches.
func (n *Network) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	w, err := n.world(ctx, code)
	if err != nil {
		return err
	}
	if w.session.Load() != nil {
		return fmt.Errorf("forget sandbox channel %s: its session is open", code)
	}
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		tx.OnCommit(func() {
			n.mu.Lock()
			delete(n.worlds, code)
			n.mu.Unlock()
			w.clear()
		})
		return markRemoved(tx, w.id.Load())
	})
	if err != nil {
		return fmt.Errorf("forget sandbox channel %s: %w", code, err)
	}
	n.purger.wake()
	return nil
}

// Reset gives a channel a new world with the same number: paired, with its two phones, their group and no faults.
// The rows of the old world are removed in batches.
func (n *Network) Reset(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := markRemoved(tx, w.id.Load()); err != nil {
			return err
		}
		id, err := createWorld(tx, channel, w.number)
		tx.OnCommit(func() {
			w.id.Store(id)
			w.loggedOut.Store(false)
			w.clear()
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("reset sandbox channel %s: %w", channel, err)
	}
	n.purger.wake()
	if s := w.session.Load(); s != nil {
		return s.Pair(ctx)
	}
	return nil
}

// nextSeq assigns the next position. Only the database's writer calls it, so positions are in the order of the commits.
func (n *Network) nextSeq() int64 { return n.seq.Add(1) }

// lastSeq returns the position of the newest message that is committed, or where that was if it was removed.
func lastSeq(c *sqldb.Conn) (seq int64, err error) {
	var removed int64
	if err = c.QueryRow(`SELECT seq FROM counter`, nil, &removed); err == nil {
		err = c.QueryRow(`SELECT coalesce(max(seq), 0) FROM messages`, nil, &seq)
	}
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", err)
	}
	return max(seq, removed), nil
}
