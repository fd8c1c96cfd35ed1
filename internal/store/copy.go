package store

import (
	"context"
	"errors"

	"parley/internal/store/sqldb"
)

// CopyTo copies a store from a file to an empty PostgreSQL database, or back, and returns the number of rows. No server may use
// either of them.
func CopyTo(ctx context.Context, from, to string) (rows int64, err error) {
	source := options(from)
	target := source
	target.Path = to
	for _, path := range []string{from, to} {
		if err := checkNoNodes(ctx, path); err != nil {
			return 0, err
		}
	}
	return sqldb.Copy(ctx, source, target, []string{"revision", "log", "clock"}, nil)
}

// checkNoNodes makes sure that no node uses a database.
func checkNoNodes(ctx context.Context, path string) error {
	if !sqldb.IsPostgres(path) {
		return nil
	}
	db, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	var nodes int
	if err := db.row(`SELECT count(*) FROM node WHERE expires_at > now()`, nil, &nodes); err != nil {
		return err
	}
	if nodes > 0 {
		return errors.New("nodes use the database: stop them first")
	}
	return nil
}
