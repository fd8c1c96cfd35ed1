package sqldb

import (
	"context"
	"time"
)

// engine runs statements on one of the two databases. Each has a connection that writes ([writeEngine]: connection for SQLite, postgres
// for PostgreSQL) and a pool of connections that read (poolReader, postgresReader).
type engine interface {
	exec(query string, args []any) (changed int64, err error)
	queryRow(query string, args, into []any) error // no row is sql.ErrNoRows
	query(query string, args []any) (rows, error)
	// with is the engine for statements that wait and run no longer than ctx allows. That of a writer stays as it is.
	with(ctx context.Context) engine
	// classed marks the errors that mean that the database is unavailable.
	classed(err error) error
	isPostgres() bool
	close() error
}

// rows are the rows of a result. The caller closes them once.
type rows interface {
	next() (more bool, err error)
	scan(into []any) error
	close() error
}

// writeEngine is what else the writer needs. Statements of do, doOr and manyThen may wait for the next one or for flush,
// and their errors with them.
type writeEngine interface {
	engine
	insert(query string, args []any) (key int64, err error)
	do(query string, args []any) error
	doOr(otherwise error, query string, args []any) error
	manyThen(m *Many, args, into []any) error
	beside(bool)          // statements until the next call do not write what waits
	waitingNumber() int64 // see [Conn.Waiting]
	flush() error
	serve(caller int) // the statements from here on are of this caller of the transaction; nobody: of none
	failed() *blame   // an earlier caller whose statement failed only now; nil: there is none
	begin() error
	control(statement string) error // ends a transaction or a part of it
	committed(writes int, took time.Duration)

	check(o Options) error                                      // the settings that durability depends on
	script(text string) error                                   // the statements of a migration
	makeIndexes(ctx context.Context, statements []string) error // while others write
	lockMigrations(ctx context.Context) (unlock func(), err error)
	ready(o Options) error // the tables are up to date
	dialect() dialect
}

// dialect is where the two databases need other statements.
type dialect struct {
	migrations string // the folder
	serves     string // reads the oldest version that a program may know; empty: the tables serve their own version only
	touch      string // makes the commit write something
	takeSpace  string // is touch where the disk was full
	size       string // reads the size in bytes
}
