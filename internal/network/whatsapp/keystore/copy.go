package keystore

import (
	"context"

	"parley/internal/store/sqldb"
)

// CopyTo copies the keys from a file to an empty PostgreSQL database, or back, and returns the number of rows.
func CopyTo(ctx context.Context, from, to string) (rows int64, err error) {
	source := sqldb.Options{Path: from, Schema: "keys", Durable: true, Migrations: migrations}
	target := source
	target.Path = to
	return sqldb.Copy(ctx, source, target, nil, nil)
}
