package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"parley/internal/console"
	"parley/internal/doctor"
	"parley/internal/encrypt"
	"parley/internal/store"
	"parley/internal/store/sqldb"
	"parley/internal/token"
)

// Data is an open data directory: the store and the signing of tokens. Only the process that holds the directory's lock
// opens it.
type Data struct {
	Dir     Dir
	Store   *store.DB
	Keyring *encrypt.Keyring // encrypts what is secret in the store
	Tokens  *token.Authority
}

// OpenData opens a data directory. It creates what is missing and migrates an older database.
func OpenData(ctx context.Context, dir Dir, log *slog.Logger) (*Data, error) {
	return OpenDataAt(ctx, dir, dir.Database(), log)
}

// OpenDataAt is OpenData for a database that may be elsewhere.
func OpenDataAt(ctx context.Context, dir Dir, database string, log *slog.Logger) (*Data, error) {
	data, err := openData(ctx, dir, database, log)
	return data, dir.explain(err)
}

func openData(ctx context.Context, dir Dir, database string, log *slog.Logger) (*Data, error) {
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
	db, err := store.Open(ctx, database)
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
	if d.Tokens != nil {
		d.Tokens.Close()
	}
	return d.Store.Close()
}

// SignInLink creates a single-use link that signs in to the console at an address.
func (d *Data) SignInLink(ctx context.Context, url string) (string, error) {
	return console.NewLink(ctx, d.Store, url)
}

// DataError says what is wrong with a data directory and how to fix it.
type DataError struct{ Sentence string }

func (e *DataError) Error() string { return e.Sentence }

// explain replaces an error about the data by a sentence, if the cause is known.
func (d Dir) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*ConfigError](err); done {
		return err
	}
	if _, done := errors.AsType[*DataError](err); done {
		return err
	}
	if early, is := errors.AsType[*sqldb.EarlyError](err); is {
		return &DataError{early.Error()}
	}
	switch {
	case store.IsDamage(err):
		return &DataError{fmt.Sprintf("The database %s is damaged (%s). Nothing was changed. Restore a backup with: parley restore FILE "+
			"--data %s",
			d.Database(), Cause(err), d)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), store.IsFull(err),
		store.IsDiskError(err) && doctor.FreeDisk(string(d)) < doctor.NoDisk:
		return &DataError{fmt.Sprintf("The disk that holds %s is full (%s). Free some space, then start again.", d, Cause(err))}
	}
	return err
}

// Cause is the text of the innermost error.
func Cause(err error) string {
	if found := store.FoundDamage(err); found != "" {
		return found
	}
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			inner = several.Unwrap()[0]
		}
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
