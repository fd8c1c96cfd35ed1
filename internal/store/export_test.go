package store

import (
	"context"

	"parley/internal/store/sqldb"
)

// OpenNarrow opens a store with one connection for reading: a call that queries while its rows are open waits for a
// connection that never becomes free, and gets an error after some seconds. The store reports every statement before it runs.
func OpenNarrow(ctx context.Context, path string, trace func(query string, args []any)) (*DB, error) {
	o := options(path)
	o.Readers, o.Trace = 1, trace
	return open(ctx, o)
}

// OfSends are the statements of sends on SQLite that write several rows to several pages.
var OfSends = []string{addMessages.Text(3), addEvents.Text(3), sqldb.OrFail(setStatuses) + `($6, $7)`}

// OnPostgres are statements that only PostgreSQL runs.
var OnPostgres = addMessages.Postgres + addEvents.Postgres + addMinutes.Postgres + addHours.Postgres +
	addDelivery.Postgres + updateDelivery.Postgres
