package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// Conn runs statements that it prepares once. There is no context: statements are short, and
// interrupting one inside a shared transaction would undo what others did.
type Conn struct {
	prepare func(context.Context, string) (*sql.Stmt, error)
	mu      sync.RWMutex
	stmts   map[string]*sql.Stmt
}

// Tx is a Conn inside a transaction.
type Tx struct {
	*Conn
	then []func()
}

// OnCommit has f called after the commit, before the next transaction begins.
func (tx *Tx) OnCommit(f func()) { tx.then = append(tx.then, f) }

func newConn(prepare func(context.Context, string) (*sql.Stmt, error)) *Conn {
	return &Conn{prepare: prepare, stmts: map[string]*sql.Stmt{}}
}

// Exec runs a statement that returns no rows.
func (c *Conn) Exec(query string, args ...any) (sql.Result, error) {
	stmt, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// Query runs a statement that returns rows, which the caller closes.
func (c *Conn) Query(query string, args ...any) (*sql.Rows, error) {
	stmt, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(context.Background(), args...)
}

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	stmt, err := c.stmt(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(context.Background(), args...).Scan(into...)
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
	stmt, err := c.prepare(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = stmt
	return stmt, nil
}

func (c *Conn) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, stmt := range c.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(c.stmts)
	return errors.Join(errs...)
}
