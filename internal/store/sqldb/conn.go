package sqldb

import (
	"context"
	"database/sql"

	"zombiezen.com/go/sqlite"
)

// Conn runs statements, which are prepared once. A reader's statements each use any free connection of the pool and end
// with the context that it is bound to. The writer's ignore contexts: interrupting a statement inside a shared transaction
// would undo what others did.
type Conn struct {
	own     *connection // nil: of the pool
	pool    *pool
	ctx     context.Context // of the pool's
	observe func(error)     // gets the errors that mean that the database does not work now

	// broken is the error after which the writer's transaction is lost. The database may have rolled it
	// back by then, and a further statement would be committed on its own: so there is none until the
	// next transaction begins. Only the writer's goroutine uses it.
	broken error
}

// With returns a Conn whose statements wait and run no longer than ctx allows. The writer's Conn stays as it is.
func (c *Conn) With(ctx context.Context) *Conn {
	if c.own != nil {
		return c
	}
	return &Conn{pool: c.pool, ctx: ctx, observe: c.observe}
}

// Tx is a Conn inside a transaction.
type Tx struct {
	*Conn
	// Batch numbers the transactions of the database; callers whose functions are committed together
	// have the same.
	Batch int64
	then  []func()
}

// OnCommit has f called after the commit, before the next transaction begins.
func (tx *Tx) OnCommit(f func()) { tx.then = append(tx.then, f) }

// Exec runs a statement that returns no rows and returns how many rows it changed.
func (c *Conn) Exec(query string, args ...any) (changed int64, err error) {
	err = c.run(func(conn *connection) error {
		changed, err = conn.exec(query, args)
		return err
	})
	return changed, err
}

// Insert runs an INSERT of one row into a table whose key the database chooses, and returns that key.
// It returns 0 if ON CONFLICT DO NOTHING kept the row out.
func (c *Conn) Insert(query string, args ...any) (key int64, err error) {
	err = c.run(func(conn *connection) error {
		changed, err := conn.exec(query, args)
		if changed > 0 {
			key = conn.conn.LastInsertRowID()
		}
		return err
	})
	return key, err
}

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	return c.run(func(conn *connection) error { return conn.queryRow(query, args, into) })
}

// run runs do on the own connection, or on one of the pool.
func (c *Conn) run(do func(*connection) error) error {
	if c.own != nil {
		if c.broken != nil {
			return c.broken
		}
		return c.classed(do(c.own))
	}
	l, err := c.pool.borrow(c.ctx)
	if err != nil {
		return err
	}
	defer l.end()
	return l.run(do)
}

// Query runs a statement that returns rows, which the caller closes.
func (c *Conn) Query(query string, args ...any) (*Rows, error) {
	if c.own != nil {
		if c.broken != nil {
			return nil, c.broken
		}
		stmt, err := c.own.bound(query, args)
		if err != nil {
			return nil, c.classed(err)
		}
		stmt.inUse = true
		return &Rows{conn: c, stmt: stmt}, nil
	}
	l, err := c.pool.borrow(c.ctx)
	if err != nil {
		return nil, err
	}
	rows := &Rows{conn: c, loan: l}
	err = l.run(func(conn *connection) (err error) {
		if rows.stmt, err = conn.bound(query, args); err == nil {
			rows.stmt.inUse = true
			l.stmt = rows.stmt
		}
		return err
	})
	if err != nil {
		l.end()
		return nil, err
	}
	return rows, nil
}

// classed marks the errors that mean "the database does not work now". They end the writer's transaction.
func (c *Conn) classed(err error) error {
	class := classed(err)
	if class == err {
		return err
	}
	c.observe(class)
	c.broken = class
	return class
}

// Rows are the rows of a result. A reader's rows hold a connection until they are closed or read to their end: close
// them before the next query.
type Rows struct {
	conn   *Conn
	stmt   *statement
	loan   *loan // of the pool's connection; nil: it is the writer's
	err    error
	closed bool
}

// Next moves to the next row, the first one at first. After the last row and after an error it returns false.
func (r *Rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	var more bool
	step := func(*connection) (err error) {
		more, err = r.stmt.Step()
		return err
	}
	if r.loan != nil {
		r.err = r.loan.run(step)
	} else {
		r.err = r.conn.classed(step(r.conn.own))
	}
	if !more {
		r.Close()
	}
	return more
}

// Scan reads the columns of the row.
func (r *Rows) Scan(into ...any) error {
	if r.closed {
		return sql.ErrNoRows
	}
	if r.loan != nil {
		return r.loan.run(func(*connection) error { return scan(r.stmt.Stmt, into) })
	}
	return scan(r.stmt.Stmt, into)
}

// Err returns the error that ended the rows, if any.
func (r *Rows) Err() error { return r.err }

// Close ends the statement. It may be called twice.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.loan != nil {
		r.loan.end()
		return nil
	}
	r.stmt.inUse = false
	return r.stmt.Reset()
}

// resultCode is what SQLite says went wrong.
func resultCode(err error) sqlite.ResultCode { return sqlite.ErrCode(err).ToPrimary() }
