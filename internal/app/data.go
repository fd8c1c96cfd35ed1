package app

import (
	"context"
	"errors"
	"log/slog"

	"parley/internal/console"
	"parley/internal/encrypt"
	"parley/internal/store"
	"parley/internal/token"
)

// Data is an open data directory: what the gateway stores and what signs tokens. Only the process that holds the
// lock of the directory opens it.
type Data struct {
	Dir     Dir
	Store   *store.DB
	Keyring *encrypt.Keyring // encrypts what is secret in the store
	Tokens  *token.Authority
}

// OpenData opens a data directory, making what is missing and migrating what is older.
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
	keyring, err := encrypt.OpenKeyFile(dir.Key())
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, dir.Database())
	if err != nil {
		return nil, err
	}
	tokens, err := token.Open(ctx, db, keyring)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Data{Dir: dir, Store: db, Keyring: keyring, Tokens: tokens}, nil
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
