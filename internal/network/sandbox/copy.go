package sandbox

import (
	"context"

	"parley/internal/store/sqldb"
)

// CopyTo copies the tables from a file to an empty PostgreSQL database, or back, and returns the number of rows.
func CopyTo(ctx context.Context, from, to string) (rows int64, err error) {
	source := sqldb.Options{Path: from, Schema: "sandbox", Migrations: migrations}
	target := source
	target.Path = to
	return sqldb.Copy(ctx, source, target, nil, func(tx *sqldb.Tx) error {
		const last = `greatest((SELECT coalesce(max(seq), 0) FROM messages), (SELECT coalesce(max(seq), 0) FROM events))`
		if tx.IsPostgres() {
			_, err := tx.Exec(`SELECT setval('seq_block', `+last+` / $1 + 1)`, int64(blockSize))
			return err
		}
		return tx.Do(`UPDATE counter SET seq = ` + last)
	})
}
