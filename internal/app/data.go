package app

import (
	"context"
	"errors"
	"log/slog"

	"parley/internal/seal"
	"parley/internal/store"
	"parley/internal/token"
)

// Data is an open data directory: what the gateway remembers and what signs tokens. Several
// processes may have it open, so that the command line works beside a running server.
type Data struct {
	Dir    Dir
	Store  *store.DB
	Tokens *token.Authority
}

// OpenData opens a data directory, making what is missing.
func OpenData(ctx context.Context, dir Dir, log *slog.Logger) (*Data, error) {
	if err := dir.Prepare(log); err != nil {
		return nil, err
	}
	sealer, err := seal.Open(dir.Key())
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, dir.Database())
	if err != nil {
		return nil, err
	}
	tokens, err := token.Open(ctx, db, sealer)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Data{Dir: dir, Store: db, Tokens: tokens}, nil
}

// Close closes the database. It may be called twice.
func (d *Data) Close() error {
	d.Tokens.Close()
	return d.Store.Close()
}
