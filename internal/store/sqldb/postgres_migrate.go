package sqldb

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley/internal/wait"
)

// lockLimit is how long a migration waits for a lock. Others who want the table wait behind it, and a dump may hold its lock for hours.
const lockLimit = "2s"

// script runs several statements.
func (p *postgres) script(text string) error {
	_, err := p.conn.Exec(context.Background(), "SET LOCAL lock_timeout = '"+lockLimit+"';"+text, pgx.QueryExecModeSimpleProtocol)
	return err
}

var indexName = regexp.MustCompile(`INDEX (\w+)`)

// makeIndexes makes indexes that are missing, while others write. One that an earlier try left unfinished is made again.
func (p *postgres) makeIndexes(ctx context.Context, statements []string) error {
	for _, statement := range statements {
		name := indexName.FindStringSubmatch(statement)[1]
		var unfinished bool
		err := p.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)`, name).
			Scan(&unfinished)
		if err == nil && unfinished {
			_, err = p.conn.Exec(ctx, "DROP INDEX CONCURRENTLY "+name, pgx.QueryExecModeSimpleProtocol)
		}
		if err == nil {
			_, err = p.conn.Exec(ctx, strings.Replace(statement, "INDEX", "INDEX CONCURRENTLY IF NOT EXISTS", 1), pgx.QueryExecModeSimpleProtocol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockMigrations makes other nodes wait that want to change the tables. They ask again and again: one that waits inside a statement
// would hold a snapshot, for which an index that is being made waits.
func (p *postgres) lockMigrations(ctx context.Context) (unlock func(), err error) {
	const key = 7276
	for locked := false; !locked; {
		if err := p.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, key).Scan(&locked); err != nil {
			return nil, err
		}
		if !locked {
			progress(ctx, "Waiting for another process that changes the tables.")
			wait.Sleep(ctx, time.Second)
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
		defer cancel()
		if _, err := p.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, key); err != nil {
			p.conn.Close(ctx) // that unlocks too
		}
	}, nil
}

// isLockTimeout reports whether an error says that a lock was not free in time.
func isLockTimeout(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}
