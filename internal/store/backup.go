package store

import (
	"context"

	"parley/internal/store/sqldb"
)

// Backup writes a copy of an open store to a new file while others go on using it. It calls progress,
// which may be nil, with the bytes copied and to copy.
func Backup(ctx context.Context, from *DB, to string, progress func(done, total int64)) error {
	return from.sql.CopyTo(ctx, to, progress)
}

// Restore puts a backup in the place of the store in the file to, which nobody may have open. The
// backup is copied and checked first: if it is not good, the store stays as it is.
func Restore(ctx context.Context, from, to string, progress func(done, total int64)) error {
	o, err := options(to)
	if err != nil {
		return err
	}
	return sqldb.Replace(ctx, from, o, progress)
}

// CopyFile writes a copy of another database, which is no store, to a new file while others go on using it.
func CopyFile(ctx context.Context, from, to string, progress func(done, total int64)) error {
	return sqldb.CopyFile(ctx, from, to, progress)
}
