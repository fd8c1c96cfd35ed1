// Package keystore stores the keys and states of WhatsApp devices for whatsmeow, in one database for all channels.
//
// Invariants:
//
//   - No key of a Signal session is used twice. A session that fell back would encrypt with a used key, and the
//     recipient would drop the message as a duplicate.
//   - Before a message leaves, the database has a session that is past the message's key (key_reserve.go).
//   - A session is locked from its read to its write (session_lock.go).
//   - A decrypted text, the moved session and the used prekey are committed together (decrypted.go).
//   - Values that every message needs are cached, within one bound for all channels (state.go).
//   - A device is used at one node at a time. When that changes, nothing of it stays in memory ([Store.Release]).
//   - Each device has its own LID mappings: one account cannot change where another one writes to (lid_map.go).
package keystore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/store/sqldb"
)

//go:embed migrations
var embedded embed.FS

var migrations, _ = fs.Sub(embedded, "migrations")

// Store is the database of all devices. Nothing else may write its file. Nodes that share a database use different devices.
type Store struct {
	db     *sqldb.DB
	log    waLog.Logger
	cache  cache
	locks  sessionLocks
	pruner *pruner
	shared bool // other nodes use the database too

	closing sync.Once

	mu      sync.Mutex
	devices map[string]*device // by JID, one per device in use
}

var _ store.DeviceContainer = (*Store)(nil)

// readerCache is small because every login reads the account's keys once, and they are not read again.
const readerCache = 256 // KiB

// Open opens the file, or makes it; "postgres://…" is a database that several nodes share. Of those only members of the cluster
// write; nil: there is no cluster. Every commit survives a power cut.
func Open(ctx context.Context, path string, member *sqldb.Member, log waLog.Logger) (*Store, error) {
	return openWith(ctx, path, member, log, 0)
}

// openWith opens it with a number of connections for reading; zero: as many as usual. One is enough for the tests, which
// shows that nothing needs two at a time.
func openWith(ctx context.Context, path string, member *sqldb.Member, log waLog.Logger, readers int) (*Store, error) {
	db, err := sqldb.Open(ctx, sqldb.Options{
		Path: path, Schema: "keys", Member: member, Durable: true, Migrations: migrations, Readers: readers, ReaderCache: readerCache,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, log: log, shared: sqldb.IsPostgres(path), devices: map[string]*device{}}
	s.pruner = startPruner(db)
	return s, nil
}

// Close flushes pending writes and closes the database. It may be called twice.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.pruner.close()
		err = errors.Join(s.flushSessions(context.Background(), 0), s.db.Close())
	})
	return err
}

func (s *Store) write(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	return wrapError(what, s.db.Write(ctx, do))
}

func (s *Store) exec(ctx context.Context, what, query string, args ...any) error {
	return s.write(ctx, what, func(tx *sqldb.Tx) error { return tx.Do(query, args...) })
}

// readRow reads a row. Without one it returns false.
func readRow(c *sqldb.Conn, what, query string, args []any, into ...any) (found bool, err error) {
	err = c.QueryRow(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrapError(what, err)
}

// Error is an error of the database.
type Error struct {
	what string
	err  error
}

func (e *Error) Error() string { return e.what + ": " + e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

func wrapError(what string, err error) error {
	if err != nil {
		return &Error{what, err}
	}
	return nil
}

// errLength says that something in the database is not as long as it must be.
var errLength = errors.New("what is stored has the wrong length")

type Channel struct {
	JID types.JID // empty: not paired
	// Why it is not paired: the status and the sentence to show. Empty if it never was.
	Status parley.ChannelStatus
	Reason string
}

func (s *Store) Channel(ctx context.Context, code parley.ChannelCode) (Channel, error) {
	var jid string
	var c Channel
	_, err := readRow(s.db.Read(ctx), fmt.Sprintf("read channel %s", code), `SELECT jid, status, reason FROM channels WHERE code = $1`,
		[]any{string(code)}, &jid, &c.Status, &c.Reason)
	if err != nil || jid == "" {
		return c, err
	}
	if c.JID, err = types.ParseJID(jid); err != nil {
		return Channel{}, fmt.Errorf("read the device of channel %s: %w", code, err)
	}
	return c, nil
}

func (s *Store) PutChannel(ctx context.Context, code parley.ChannelCode, c Channel) error {
	jid := ""
	if !c.JID.IsEmpty() {
		jid = c.JID.String()
	}
	return s.exec(ctx, fmt.Sprintf("store channel %s", code), `INSERT INTO channels (code, jid, status, reason) VALUES ($1, $2, $3, $4)
		ON CONFLICT (code) DO UPDATE SET jid = excluded.jid, status = excluded.status, reason = excluded.reason`,
		string(code), jid, string(c.Status), c.Reason)
}

// DeleteChannel removes the row of a channel, but not its device.
func (s *Store) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	return s.exec(ctx, fmt.Sprintf("delete channel %s", code), `DELETE FROM channels WHERE code = $1`, string(code))
}

// Fact returns what the driver knows of the network, whatever the channel; empty: nothing is stored under the name.
func (s *Store) Fact(ctx context.Context, name string) (value string, err error) {
	_, err = readRow(s.db.Read(ctx), "read "+name, `SELECT value FROM facts WHERE name = $1`, []any{name}, &value)
	return value, err
}

func (s *Store) PutFact(ctx context.Context, name, value string) error {
	return s.exec(ctx, "store "+name, `INSERT INTO facts (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
}

// DeleteSessions removes all Signal sessions, but not the identities. After a restore, the stored keys were already
// used.
func (s *Store) DeleteSessions(ctx context.Context) error {
	err := s.exec(ctx, "delete sessions", `DELETE FROM states WHERE kind IN ($1, $2)`, int64(sessionKind), int64(senderKeyKind))
	s.cache.removeMatching(func(k key) bool { return k.kind == sessionKind || k.kind == senderKeyKind })
	return err
}

// CopyTo copies the keys from a file to an empty PostgreSQL database, or back, and returns the number of rows.
func CopyTo(ctx context.Context, from, to string) (rows int64, err error) {
	source := sqldb.Options{Path: from, Schema: "keys", Durable: true, Migrations: migrations}
	target := source
	target.Path = to
	return sqldb.Copy(ctx, source, target, nil, nil)
}

// errReleased is the error of a write by a client that outlived the session of its channel.
var errReleased = &parley.Error{Code: parley.Unavailable, Message: "The channel is closed at this node."}

// Release ends the use of a device at this node, because another node may use it next. Sessions are stored as they are, so that
// no keys are skipped, and nothing of the device stays in memory. What still uses it cannot write any more: an old session
// would use keys again. When it returns, nothing that began before is written any more, even if there is an error. Where only
// this node uses the database it does nothing.
func (s *Store) Release(ctx context.Context, jid types.JID) error {
	if !s.shared {
		return nil
	}
	s.mu.Lock()
	own := s.devices[jid.String()]
	delete(s.devices, jid.String())
	s.mu.Unlock()
	if own == nil {
		return nil
	}
	own.mu.Lock()
	own.released.Store(true)
	own.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	err := s.write(ctx, "release a device", func(*sqldb.Tx) error { return nil }) // waits for earlier writes
	if err == nil {
		s.pruner.prune()
		err = s.flushSessions(ctx, own.id)
	}
	s.cache.removeMatching(func(k key) bool { return k.device == own.id })
	return err
}

// commit runs do in a transaction, unless the device was released.
func (d *device) commit(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	return d.s.write(ctx, what, func(tx *sqldb.Tx) error {
		if d.released.Load() {
			return errReleased
		}
		return do(tx)
	})
}

// fill caches a value from the database, unless it may have changed since version or the device was released.
func (d *device) fill(k key, value []byte, version uint32) {
	if !d.released.Load() {
		d.s.cache.fill(k, value, version)
	}
}
