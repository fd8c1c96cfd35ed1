package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"parley/internal/network/sandbox"
	"parley/internal/network/whatsapp"
	"parley/internal/store"
	"parley/internal/store/sqldb"
)

// MigrateTo copies the data of a directory into an empty PostgreSQL database, or with a database that of it into the directory.
// It returns the number of rows. A file that was copied is marked as moved. Files of messages and secret.key are not copied.
func MigrateTo(ctx context.Context, dir Dir, database, to string, log *slog.Logger) (rows int64, err error) {
	lock, err := dir.acquire("parley migrate", log)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if _, err := os.Stat(dir.Key()); err != nil {
		return 0, &DataError{fmt.Sprintf("%s is missing: it decrypts the secrets in the database. Copy it there first.", dir.Key())}
	}
	if database == "" {
		if err := dir.checkVersion(ctx); err != nil {
			return 0, err
		}
	} else if dir.Exists() {
		return 0, &DataError{fmt.Sprintf("%s already has a database. Give an empty directory with --data.", dir)}
	}
	for _, part := range []struct {
		file string
		copy func(ctx context.Context, from, to string) (int64, error)
	}{{dir.Database(), store.CopyTo}, {dir.Sandbox(), sandbox.CopyTo}, {dir.WhatsApp(), whatsapp.CopyKeys}} {
		from, into := cmp.Or(database, part.file), cmp.Or(to, part.file)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) && database == "" {
			continue // it was never needed
		}
		n, err := part.copy(ctx, from, into)
		if err != nil {
			return rows, &DataError{fmt.Sprintf("%s could not be copied to %s: %s The source was not changed.",
				sqldb.Redacted(from), sqldb.Redacted(into), sqldb.Explain(err))}
		}
		rows += n
	}
	if database == "" {
		err = dir.markMoved(ctx, to)
	}
	return rows, err
}

// markMoved stores in the database file that its data is elsewhere now. A copy of the directory has the mark, too.
func (d Dir) markMoved(ctx context.Context, to string) error {
	db, err := store.Open(ctx, d.Database())
	if err == nil {
		err = db.Tx(ctx, func(tx *store.Tx) error { return tx.SetMoved(ctx, sqldb.Redacted(to)) })
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return &DataError{fmt.Sprintf("The data was copied to %s, but %s could not be marked as moved (%s). Start no server on it: move it away.",
			sqldb.Redacted(to), d.Database(), Cause(err))}
	}
	return nil
}
