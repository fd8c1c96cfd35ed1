package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"parley/internal/doctor"
	"parley/internal/network/sandbox"
	"parley/internal/network/whatsapp"
	"parley/internal/store"
	"parley/internal/store/sqldb"
)

// Version reads the version of the database and the one that this program needs. They are equal if there is no database
// yet. The caller has the lock of the directory.
func (d Dir) Version(ctx context.Context) (at, needed int, err error) {
	if !d.Exists() {
		return 0, 0, nil
	}
	at, needed, err = store.Version(ctx, d.Database())
	if err != nil {
		return 0, 0, d.explain(fmt.Errorf("read the version of %s: %w", d.Database(), err))
	}
	return at, needed, nil
}

// checkMoved rejects a database whose data was moved to PostgreSQL: a server on it would send what the nodes send. The caller has the
// lock of the directory.
func (d Dir) checkMoved(ctx context.Context) error {
	if !d.Exists() {
		return nil
	}
	to, err := store.MovedTo(ctx, d.Database())
	if err != nil {
		return fmt.Errorf("read whether the data of %s was moved: %w", d.Database(), err)
	}
	if to == "" {
		return nil
	}
	return &DataError{fmt.Sprintf("The data of %s was moved to %s. Name that database with --database. To copy the data back, run: "+
		"parley migrate --database ADDRESS --to file --data NEW. To use the old file again, without what happened since, stop all nodes and "+
		"run: parley migrate --reopen --data %s", d.Database(), to, d)}
}

// checkVersion rejects a database of another version, or one whose data was moved, and says how to continue.
func (d Dir) checkVersion(ctx context.Context) error {
	if err := d.checkMoved(ctx); err != nil {
		return d.explain(err)
	}
	at, needed, err := d.Version(ctx)
	switch {
	case err != nil:
		return err
	case at > needed:
		return &DataError{fmt.Sprintf("The database %s is at version %d and this program knows only %d. Nothing was changed. "+
			"Run a newer parley.", d.Database(), at, needed)}
	case at < needed && at > 0:
		return &DataError{fmt.Sprintf("The database %s is at version %d and this program needs %d. Nothing was changed. "+
			"Bring it up to date with: parley migrate --data %s, or start the server, which does the same. Both keep a copy of it first.",
			d.Database(), at, needed, d)}
	}
	return nil
}

// Migrate copies the database and migrates it. It returns the versions before and after, and the path of the copy, or ""
// if there was nothing to migrate. With reopen, a file whose data was moved may be used again.
func Migrate(ctx context.Context, dir Dir, reopen bool, log *slog.Logger) (from, to int, kept string, err error) {
	lock, err := dir.acquire("parley migrate", log)
	if err != nil {
		return 0, 0, "", err
	}
	defer lock.Close()
	if !reopen {
		if err := dir.checkMoved(ctx); err != nil {
			return 0, 0, "", dir.explain(err)
		}
	}
	if from, to, err = dir.Version(ctx); err != nil {
		return from, to, "", err
	}
	if kept, err = dir.copyBefore(ctx, log); err != nil {
		return from, to, "", err
	}
	data, err := OpenData(ctx, dir, log) // migrates
	if err != nil {
		return from, to, kept, err
	}
	if reopen {
		err = data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetMoved(ctx, "") })
	}
	return from, to, kept, errors.Join(err, data.Close())
}

// copyBefore copies a database before its migration and returns the path of the copy, or "" if there is nothing to
// migrate. The caller has the lock of the directory.
func (d Dir) copyBefore(ctx context.Context, log *slog.Logger) (string, error) {
	at, needed, err := d.Version(ctx)
	if err != nil || at == 0 || at >= needed {
		return "", err
	}
	copied := fmt.Sprintf("%s.before-v%d", d.Database(), needed)
	if before, _, err := store.Version(ctx, copied); err == nil && before < at {
		return copied, nil // an interrupted migration left this copy
	}
	size := fileSize(d.Database()) + fileSize(d.Database()+"-wal")
	if free := doctor.FreeDisk(string(d)); free < size {
		return "", &DataError{fmt.Sprintf("The database %s must be migrated from version %d to %d, and there is no room for a copy of it: "+
			"it takes %d MiB, %d MiB are free. Nothing was changed. Free some space, then start again.",
			d.Database(), at, needed, size>>20+1, free>>20)}
	}
	if err := os.Remove(copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("replace %s: %w", copied, err)
	}
	if err := store.CopyFile(ctx, d.Database(), copied, nil); err != nil {
		return "", d.explain(fmt.Errorf("copy the database before it is migrated: %w", err))
	}
	log.Info("the database is migrated; a copy of it is kept", "from", at, "to", needed, "copy", copied)
	return copied, nil
}

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
