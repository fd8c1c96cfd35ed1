package sqldb

import (
	"context"
	"database/sql"
)

// Conn runs statements that it prepares once. The readers' honours the context that it is bound to. The
// writer's has none: interrupting a statement inside a shared transaction would undo what others did.
type Conn struct {
	dialect *Dialect
	runner  runner
	writes  bool
	ctx     context.Context // of the readers' Conn
	observe func(error)     // sees the errors that mean that the database does not work now

	// broken is the error after which the writer's transaction is lost. The database may have rolled it
	// back by then, and a further statement would be committed on its own: so there is none until the
	// next transaction begins. Only the writer's goroutine uses it.
	broken error
}

// runner gives statements to the database: the readers' is a pool, the writer's is one connection.
type runner interface {
	exec(ctx context.Context, query string, args []any) (sql.Result, error)
	query(ctx context.Context, query string, args []any) (Rows, error)
	queryRow(ctx context.Context, query string, args, into []any) error // no row is sql.ErrNoRows
	close() error
}

// With returns a Conn whose statements wait and run no longer than ctx allows. The writer's Conn stays as it is.
func (c *Conn) With(ctx context.Context) *Conn {
	if c.writes {
		return c
	}
	return &Conn{dialect: c.dialect, runner: c.runner, ctx: ctx, observe: c.observe}
}

// Rows are the rows of a result, as package sql has them. A reader's rows hold a connection until they are
// closed: close them before the next query.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close() error
}

// Tx is a Conn inside a transaction.
type Tx struct {
	*Conn
	// Batch numbers the transactions of the database; callers whose functions are committed together
	// have the same. While it lasts no other process writes.
	Batch int64
	then  []func()
}

// OnCommit has f called after the commit, before the next transaction begins.
func (tx *Tx) OnCommit(f func()) { tx.then = append(tx.then, f) }

// Exec runs a statement that returns no rows.
func (c *Conn) Exec(query string, args ...any) (sql.Result, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	result, err := c.runner.exec(c.ctx, query, args)
	return result, c.classed(err)
}

// Insert runs an INSERT of one row into a table whose key the database chooses, and returns that key.
// It returns 0 if ON CONFLICT DO NOTHING kept the row out.
func (c *Conn) Insert(query string, args ...any) (int64, error) {
	result, err := c.Exec(query, args...)
	if err != nil {
		return 0, err
	}
	if n, err := result.RowsAffected(); n == 0 || err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// Query runs a statement that returns rows, which the caller closes.
func (c *Conn) Query(query string, args ...any) (Rows, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	rows, err := c.runner.query(c.ctx, query, args)
	return rows, c.classed(err)
}

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	if c.broken != nil {
		return c.broken
	}
	return c.classed(c.runner.queryRow(c.ctx, query, args, into))
}

// classed marks the errors that mean "the database does not work now". They end the writer's transaction.
func (c *Conn) classed(err error) error {
	class := c.dialect.classed(err)
	if class == err {
		return err
	}
	c.observe(class)
	if c.writes {
		c.broken = class
	}
	return class
}
