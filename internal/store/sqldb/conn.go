package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"parley"
)

// Conn runs statements that it prepares once. There is no context: statements are short, and
// interrupting one inside a shared transaction would undo what others did.
type Conn struct {
	dialect *Dialect
	prepare func(context.Context, string) (*sql.Stmt, error)
	direct  *direct // the writer's short cut; nil for readers

	mu     sync.RWMutex
	stmts  map[string]*sql.Stmt
	closed bool

	// broken is the error after which the writer's transaction is lost. The database may have rolled it
	// back by then, and a further statement would be committed on its own: so there is none until the
	// next transaction begins. Only the writer's goroutine uses it.
	broken error
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

func newConn(d *Dialect, prepare func(context.Context, string) (*sql.Stmt, error)) *Conn {
	return &Conn{dialect: d, prepare: prepare, stmts: map[string]*sql.Stmt{}}
}

// Exec runs a statement that returns no rows.
func (c *Conn) Exec(query string, args ...any) (sql.Result, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if c.direct != nil {
		result, err := c.direct.exec(query, args)
		return result, c.classed(err)
	}
	stmt, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	result, err := stmt.ExecContext(context.Background(), args...)
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
func (c *Conn) Query(query string, args ...any) (*sql.Rows, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	stmt, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	return rows, c.classed(err)
}

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	if c.broken != nil {
		return c.broken
	}
	if c.direct != nil && canAssign(into) {
		return c.classed(c.direct.queryRow(query, args, into))
	}
	stmt, err := c.stmt(query)
	if err != nil {
		return err
	}
	return c.classed(stmt.QueryRowContext(context.Background(), args...).Scan(into...))
}

func (c *Conn) stmt(query string) (*sql.Stmt, error) {
	c.mu.RLock()
	stmt, ok := c.stmts[query]
	c.mu.RUnlock()
	if ok {
		return stmt, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	if c.closed {
		return nil, unavailable(errClosed)
	}
	stmt, err := c.prepare(context.Background(), c.dialect.rewrite(query))
	if err != nil {
		return nil, c.classed(err)
	}
	c.stmts[query] = stmt
	return stmt, nil
}

// classed marks the errors that mean "the database does not work now".
func (c *Conn) classed(err error) error {
	if err == nil || parley.CodeOf(err) == parley.Unavailable || !c.dialect.isUnavailable(err) {
		return err
	}
	err = unavailable(err)
	if c.direct != nil {
		c.broken = err
	}
	return err
}

func (c *Conn) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, stmt := range c.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(c.stmts)
	if c.direct != nil {
		errs = append(errs, c.direct.close())
	}
	return errors.Join(errs...)
}
