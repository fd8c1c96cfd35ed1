package keystore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"parley/internal/store/sqldb"

	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"
)

//go:embed migrations
var embedded embed.FS

// Store is the database of all devices. Nothing else may write its file.
type Store struct {
	db     *sqldb.DB
	log    waLog.Logger
	cache  cache
	leases leases
	broom  *broom

	closing sync.Once

	mu      sync.Mutex
	devices map[string]*device // by JID: those that were asked for, each once
}

var _ store.DeviceContainer = (*Store)(nil)

// Open opens the file, or makes it. Every commit survives a power cut.
func Open(ctx context.Context, path string, log waLog.Logger) (*Store, error) {
	return openWith(ctx, path, log, 0)
}

// openWith opens it with a number of connections for reading; zero: as many as usual. One is enough for the tests, which
// shows that nothing needs two at a time.
func openWith(ctx context.Context, path string, log waLog.Logger, readers int) (*Store, error) {
	migrations, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sqldb.Open(ctx, sqldb.Options{Path: path, Durable: true, Migrations: migrations, Readers: readers})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, log: log, devices: map[string]*device{}}
	s.broom = startBroom(db)
	return s, nil
}

// Close writes what waits and closes the database. It may be called twice.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		s.broom.end()
		err = errors.Join(s.settle(), s.db.Close())
	})
	return err
}

// write runs do in a transaction.
func (s *Store) write(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	return wrapped(what, s.db.Write(ctx, do))
}

// exec runs one statement in a transaction.
func (s *Store) exec(ctx context.Context, what, query string, args ...any) error {
	return s.write(ctx, what, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
}

func wrapped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// errLength says that something in the database is not as long as it must be.
var errLength = errors.New("what is stored has the wrong length")
