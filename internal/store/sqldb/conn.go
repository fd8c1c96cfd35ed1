package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
)

// Conn runs statements, which are prepared once. A reader's statement uses any free connection of the pool and ends with
// the reader's context. The writer ignores contexts: an interrupted statement would undo what others did in the shared
// transaction.
type Conn struct {
	own     *connection // nil: use the pool
	pool    *pool
	pg      *postgres       // nil: SQLite
	writes  bool            // the writer's connection
	ctx     context.Context // for the pool
	observe func(error)     // receives the errors that mean that the database is unavailable
	trace   func(query string, args []any)

	// broken is the error that lost the writer's transaction. The database may have rolled it back by then, and a further
	// statement would be committed on its own. So none runs until the next transaction begins. Only the writer's goroutine
	// uses it.
	broken error
}

// With returns a Conn whose statements wait and run no longer than ctx allows. The writer's Conn stays as it is.
func (c *Conn) With(ctx context.Context) *Conn {
	if c.writes {
		return c
	}
	return &Conn{pool: c.pool, pg: c.pg, ctx: ctx, observe: c.observe, trace: c.trace}
}

// Tx is a Conn inside a transaction.
type Tx struct {
	*Conn
	// Batch numbers the transactions of the database. Functions that are committed together have the same number.
	Batch   int64
	then    []func()
	unknown []func()
}

// OnCommit calls f after the commit, before the next transaction begins.
func (tx *Tx) OnCommit(f func()) { tx.then = append(tx.then, f) }

// OnUnknown calls f if the database failed and the transaction may be committed nevertheless, before the next one begins.
func (tx *Tx) OnUnknown(f func()) { tx.unknown = append(tx.unknown, f) }

// Exec runs a statement that returns no rows and returns how many rows it changed.
func (c *Conn) Exec(query string, args ...any) (changed int64, err error) {
	c.traced(query, args)
	if c.pg != nil {
		err = c.runPostgres(func() error {
			changed, err = c.pg.exec(query, args)
			return err
		})
		return changed, err
	}
	err = c.run(func(conn *connection) error {
		changed, err = conn.exec(query, args)
		return err
	})
	return changed, err
}

// Do runs a statement whose result does not matter. On PostgreSQL it is sent together with the next one: its error may come
// with that one, at the latest with the commit.
func (c *Conn) Do(query string, args ...any) error {
	if c.pg != nil {
		c.traced(query, args)
		return c.runPostgres(func() error { return c.pg.do(query, args) })
	}
	_, err := c.Exec(query, args...)
	return err
}

// DoOr is Do for a statement that must change a row. If it does not, the transaction fails with an error: on PostgreSQL perhaps
// later, at the latest instead of the commit.
func (c *Conn) DoOr(otherwise error, query string, args ...any) error {
	if c.pg != nil {
		c.traced(query, args)
		return c.runPostgres(func() error { return c.pg.doOr(otherwise, query, args) })
	}
	changed, err := c.Exec(query, args...)
	if err == nil && changed == 0 {
		err = otherwise
	}
	return err
}

// ManyThen is for PostgreSQL and for rows that matter after the commit only. The query gets an array for each argument and
// returns a row for each element, in their order. Calls in a row with the same query become one statement.
func (c *Conn) ManyThen(query string, args []any, into ...any) error {
	c.traced(query, args)
	return c.runPostgres(func() error { return c.pg.manyThen(query, args, into) })
}

// flush sends the statements that wait, and returns their error.
func (c *Conn) flush() error {
	if c.pg == nil {
		return nil
	}
	return c.runPostgres(c.pg.flush)
}

// Insert runs an INSERT of one row into a table whose key the database chooses, and returns that key. It returns 0 if
// ON CONFLICT DO NOTHING rejected the row.
func (c *Conn) Insert(query string, args ...any) (key int64, err error) {
	c.traced(query, args)
	if c.pg != nil {
		err = c.runPostgres(func() error {
			key, err = c.pg.insert(query, args)
			return err
		})
		return key, err
	}
	err = c.run(func(conn *connection) error {
		changed, err := conn.exec(query, args)
		if changed > 0 {
			key = conn.conn.LastInsertRowID()
		}
		return err
	})
	return key, err
}

// IsPostgres reports whether the database is PostgreSQL.
func (c *Conn) IsPostgres() bool { return c.pg != nil }

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	c.traced(query, args)
	if c.pg != nil {
		return c.runPostgres(func() error { return c.pg.queryRow(c.ctx, query, args, into) })
	}
	return c.run(func(conn *connection) error { return conn.queryRow(query, args, into) })
}

func (c *Conn) traced(query string, args []any) {
	if c.trace != nil {
		c.trace(query, args)
	}
}

// runPostgres runs a statement on PostgreSQL.
func (c *Conn) runPostgres(do func() error) error {
	if c.broken != nil {
		return c.broken
	}
	return c.classed(do())
}

// begin starts a transaction of the writer.
func (c *Conn) begin() error {
	if c.pg != nil {
		return c.runPostgres(c.pg.begin)
	}
	_, err := c.Exec("BEGIN IMMEDIATE")
	return err
}

// control runs a statement that ends a transaction or a part of it.
func (c *Conn) control(statement string) (err error) {
	switch {
	case c.pg == nil:
		_, err = c.Exec(statement)
	case strings.HasPrefix(statement, "ROLLBACK"):
		err = c.runPostgres(func() error { return c.pg.rollback(statement) })
	default:
		err = c.runPostgres(func() error { return c.pg.finish(statement) })
	}
	return err
}

// script runs the statements of a migration.
func (c *Conn) script(text string) error {
	if c.pg != nil {
		return c.pg.script(text)
	}
	return c.own.script(text)
}

// close closes the connections.
func (c *Conn) close() error {
	switch {
	case c.pg != nil:
		return c.pg.close()
	case c.own != nil:
		return c.own.close()
	}
	return c.pool.close()
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
	c.traced(query, args)
	if c.pg != nil {
		rows := &Rows{conn: c}
		err := c.runPostgres(func() (err error) {
			rows.pg, err = c.pg.query(c.ctx, query, args)
			return err
		})
		return rows, err
	}
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

// classed marks the errors that mean that the database is unavailable. They end the writer's transaction.
func (c *Conn) classed(err error) error {
	class := classed(err)
	if class == err {
		return err
	}
	c.observe(class)
	if c.writes {
		c.broken = class
	}
	return class
}

// Scanner is a row of a result.
type Scanner interface{ Scan(into ...any) error }

// Collect runs a query and reads all its rows, each with scan.
func Collect[T any](c *Conn, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := c.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read row: %w", err)
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// ScanOne scans a row of one column.
func ScanOne[T any](row Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// Rows are the rows of a result. A reader's rows hold a connection until they are closed or read to their end. Close them
// before the next query.
type Rows struct {
	conn   *Conn
	stmt   *statement
	loan   *loan // nil: the writer's connection
	pg     *postgresRows
	err    error
	closed bool
}

// Next moves to the next row. After the last row and after an error it returns false.
func (r *Rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	if r.pg != nil {
		if r.pg.Next() {
			return true
		}
		r.err = r.conn.classed(r.pg.Err())
		r.Close()
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
	if r.pg != nil {
		return r.pg.Scan(into...)
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
	if r.pg != nil {
		r.pg.Close()
		return nil
	}
	if r.loan != nil {
		r.loan.end()
		return nil
	}
	r.stmt.inUse = false
	return r.stmt.Reset()
}

// resultCode returns SQLite's primary result code.
func resultCode(err error) sqlite.ResultCode { return sqlite.ErrCode(err).ToPrimary() }
