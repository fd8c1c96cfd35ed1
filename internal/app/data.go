package app

import (
	"context"
	"errors"
	"log/slog"

	"parley"
	"parley/internal/console"
	"parley/internal/media"
	"parley/internal/seal"
	"parley/internal/store"
	"parley/internal/token"
)

// Data is an open data directory: what the gateway remembers and what signs tokens. Several
// processes may have it open, so that the command line works beside a running server.
type Data struct {
	Dir    Dir
	Store  *store.DB
	Sealer *seal.Sealer // encrypts what is secret in the store
	Tokens *token.Authority
}

// OpenData opens a data directory, making what is missing.
func OpenData(ctx context.Context, dir Dir, log *slog.Logger) (*Data, error) {
	data, err := openData(ctx, dir, log)
	return data, dir.explain(err)
}

func openData(ctx context.Context, dir Dir, log *slog.Logger) (*Data, error) {
	if err := errors.Join(dir.checkRestored(), dir.Prepare(log)); err != nil {
		return nil, err
	}
	if err := dir.checkKey(); err != nil {
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
	return &Data{Dir: dir, Store: db, Sealer: sealer, Tokens: tokens}, nil
}

// Close closes the database. It may be called twice.
func (d *Data) Close() error {
	d.Tokens.Close()
	return d.Store.Close()
}

// SignInLink makes a link that signs in to the console of the server at an address, once.
func (d *Data) SignInLink(ctx context.Context, url string) (string, error) {
	return console.NewLink(ctx, d.Store, url)
}

// DeleteChannel removes a channel with all that is its own, files too.
func (d *Data) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	var files []parley.Media
	err := d.Store.Tx(ctx, func(tx parley.Tx) (err error) {
		files, err = tx.DeleteChannel(ctx, code)
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, media.Remove(string(d.Dir.Media()), f.Key))
	}
	return errors.Join(errs...)
}
