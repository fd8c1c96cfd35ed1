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

// Network is the sandbox network with its record.
type Network struct {
	db  *sqldb.DB
	log *slog.Logger
	seq atomic.Int64 // the last one given out

	packing  packing
	closing  context.Context // ends when the network is closed
	close    context.CancelFunc
	unpacker sync.WaitGroup

	mu     sync.Mutex
	worlds map[parley.ChannelCode]*world
}

// Open opens the network whose record is in the file at path; "memory:NAME" keeps it in memory.
func Open(ctx context.Context, path string, log *slog.Logger) (*Network, error) {
	return openWith(ctx, path, log, 0)
}

// openWith opens it with a number of connections for reading; zero: as many as usual. One is enough for the tests, which
// shows that nothing needs two at a time.
func openWith(ctx context.Context, path string, log *slog.Logger, readers int) (*Network, error) {
	tables, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	// The record is to survive the end of the process at any moment, and that is enough: it proves what
	// the gateway did, and holds nothing that anybody owns.
	db, err := sqldb.Open(ctx, sqldb.Options{Path: path, Durable: false, Migrations: tables, Readers: readers})
	if err != nil {
		return nil, fmt.Errorf("sandbox network: %w", err)
	}
	n := &Network{db: db, log: log, worlds: map[parley.ChannelCode]*world{}}
	if err := n.load(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("sandbox network: %w", err)
	}
	n.closing, n.close = context.WithCancel(context.Background())
	n.unpacker.Go(n.unpackInTime)
	return n, nil
}

// load finds out where the record ends and what of it is packed.
func (n *Network) load(ctx context.Context) error {
	last, err := lastSeq(n.db.Read(ctx))
	if err != nil {
		return err
	}
	var lastEvent int64
	if err := n.db.Read(ctx).QueryRow(`SELECT coalesce(max(seq), 0) FROM events`, nil, &lastEvent); err != nil {
		return err
	}
	n.seq.Store(max(last, lastEvent))
	return n.packing.load(n.db.Read(ctx))
}

// Close closes the sessions that are still open, and the record. It may be called twice.
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
	n.close()
	n.unpacker.Wait()
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

// Forget removes a channel's world.
func (n *Network) Forget(ctx context.Context, code parley.ChannelCode) error {
	w, err := n.world(ctx, code)
	if err != nil {
		return err
	}
	if w.session.Load() != nil {
		return fmt.Errorf("forget sandbox channel %s: its session is open", code)
	}
	err = n.writeUnpacked(ctx, func(tx *sqldb.Tx) error {
		if err := n.empty(tx, w); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM worlds WHERE id = $1`, w.id)
		tx.OnCommit(w.dropPhones)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget sandbox channel %s: %w", code, err)
	}
	n.mu.Lock()
	delete(n.worlds, code)
	n.mu.Unlock()
	return nil
}

// Reset forgets everything of a channel's world but its number and makes it new: paired, with its two
// phones, their group and no faults.
func (n *Network) Reset(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	err = n.writeUnpacked(ctx, func(tx *sqldb.Tx) error {
		if err := n.empty(tx, w); err != nil {
			return err
		}
		tx.OnCommit(w.dropPhones)
		return furnish(tx, w.id)
	})
	if err != nil {
		return fmt.Errorf("reset sandbox channel %s: %w", channel, err)
	}
	if s := w.session.Load(); s != nil {
		return s.Pair(ctx)
	}
	return w.setLoggedOut(ctx, false)
}

// empty deletes all rows of a world, of which nothing is packed, but the world itself.
func (n *Network) empty(tx *sqldb.Tx, w *world) error {
	if _, err := tx.Exec(`UPDATE counter SET seq = $1`, n.seq.Load()); err != nil { // cursors stay good
		return err
	}
	for _, query := range []string{
		`DELETE FROM messages WHERE phone IN (SELECT id FROM phones WHERE world = $1)`,
		`DELETE FROM events WHERE phone IN (SELECT id FROM phones WHERE world = $1)`,
		`DELETE FROM files WHERE phone IN (SELECT id FROM phones WHERE world = $1)`,
		`DELETE FROM faults WHERE world = $1`,
		`DELETE FROM groups WHERE world = $1`,
		`DELETE FROM phones WHERE world = $1`,
	} {
		if _, err := tx.Exec(query, w.id); err != nil {
			return err
		}
	}
	return nil
}

// nextSeq gives out the next position in the record. It is called by the writer of the database
// only, so that positions are in the order of the commits.
func (n *Network) nextSeq() int64 { return n.seq.Add(1) }

// lastSeq returns the position of the newest message that is in the record, or where that was when
// some were forgotten.
func lastSeq(c *sqldb.Conn) (int64, error) {
	var seq int64
	err := c.QueryRow(`SELECT max(seq, (SELECT coalesce(max(seq), 0) FROM messages), (SELECT coalesce(max(seq), 0) FROM bundles)) FROM counter`, nil, &seq)
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", err)
	}
	return seq, nil
}
