package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
)

// Conn runs statements, which are prepared once. A reader's statement uses any free connection of the pool and ends with
// the reader's context. The writer ignores contexts: an interrupted statement would undo what others did in the shared
// transaction.
type Conn struct {
	engine  engine
	write   writeEngine // the same one; nil: the Conn only reads
	observe func(error) // receives the errors that mean that the database is unavailable
	trace   func(query string, args []any)

	// broken is the error that lost the writer's transaction. The database may have rolled it back by then, and a further
	// statement would be committed on its own. So none runs until the next transaction begins. Only the writer's goroutine
	// uses it.
	broken error
}

// With returns a Conn whose statements wait and run no longer than ctx allows. The writer's Conn stays as it is.
func (c *Conn) With(ctx context.Context) *Conn {
	if c.write != nil {
		return c
	}
	return &Conn{engine: c.engine.with(ctx), observe: c.observe, trace: c.trace}
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

// OnUnknown calls f if the database failed and the transaction may be committed nevertheless: at once, and again as soon as reads show
// its outcome, before the next transaction begins.
func (tx *Tx) OnUnknown(f func()) { tx.unknown = append(tx.unknown, f) }

// begun traces a statement. It fails if the transaction is lost.
func (c *Conn) begun(query string, args []any) error {
	if c.trace != nil {
		c.trace(query, args)
	}
	return c.broken
}

// Exec runs a statement that returns no rows and returns how many rows it changed.
func (c *Conn) Exec(query string, args ...any) (changed int64, err error) {
	if err := c.begun(query, args); err != nil {
		return 0, err
	}
	changed, err = c.engine.exec(query, args)
	return changed, c.classed(err)
}

// Do runs a statement whose result does not matter. On PostgreSQL it is sent together with the next one: its error may come
// with that one, at the latest with the commit.
func (c *Conn) Do(query string, args ...any) error {
	if err := c.begun(query, args); err != nil {
		return err
	}
	return c.classed(c.write.do(query, args))
}

// DoOr is Do for a statement that must change a row. If it does not, the transaction fails with an error: on PostgreSQL perhaps
// later, at the latest instead of the commit.
func (c *Conn) DoOr(otherwise error, query string, args ...any) error {
	if err := c.begun(query, args); err != nil {
		return err
	}
	return c.classed(c.write.doOr(otherwise, query, args))
}

// ManyThen adds a row whose results matter after the commit only, or after [Conn.Flush]. Calls in a row for the same Many become one
// statement. Its error may come with the next statement, at the latest with the commit.
func (c *Conn) ManyThen(m *Many, args []any, into ...any) error {
	query := m.Postgres
	if !c.IsPostgres() {
		query = cmp.Or(m.One, m.Insert+m.Row+m.Then)
	}
	if err := c.begun(query, args); err != nil {
		return err
	}
	return c.classed(c.write.manyThen(m, args, into))
}

// Beside runs statements on tables that no rows of ManyThen wait for. Rows for other tables go on waiting meanwhile.
func (c *Conn) Beside(do func() error) error {
	c.write.beside(true)
	defer c.write.beside(false)
	return do()
}

// Waiting is a number that changes whenever rows of ManyThen that waited were written or dropped, on SQLite.
func (c *Conn) Waiting() int64 { return c.write.waitingNumber() }

// Insert runs an INSERT of one row into a table whose key the database chooses, and returns that key. It returns 0 if
// ON CONFLICT DO NOTHING rejected the row.
func (c *Conn) Insert(query string, args ...any) (key int64, err error) {
	if err := c.begun(query, args); err != nil {
		return 0, err
	}
	key, err = c.write.insert(query, args)
	return key, c.classed(err)
}

// IsPostgres reports whether the database is PostgreSQL.
func (c *Conn) IsPostgres() bool { return c.engine.isPostgres() }

// QueryRow runs a statement that returns one row and scans it. No row is sql.ErrNoRows.
func (c *Conn) QueryRow(query string, args []any, into ...any) error {
	if err := c.begun(query, args); err != nil {
		return err
	}
	return c.classed(c.engine.queryRow(query, args, into))
}

// Query runs a statement that returns rows, which the caller closes.
func (c *Conn) Query(query string, args ...any) (*Rows, error) {
	if err := c.begun(query, args); err != nil {
		return nil, err
	}
	rows, err := c.engine.query(query, args)
	if err != nil {
		return nil, c.classed(err)
	}
	return &Rows{conn: c, rows: rows}, nil
}

// begin starts a transaction of the writer.
func (c *Conn) begin() error { return c.unlessBroken(c.write.begin) }

// control runs a statement that ends a transaction or a part of it.
func (c *Conn) control(statement string) error {
	return c.unlessBroken(func() error { return c.write.control(statement) })
}

// Flush sends the statements of Do, DoOr and ManyThen that wait, and returns their error.
func (c *Conn) Flush() error { return c.unlessBroken(c.write.flush) }

func (c *Conn) unlessBroken(do func() error) error {
	if c.broken != nil {
		return c.broken
	}
	return c.classed(do())
}

// classed marks the errors that mean that the database is unavailable. They end the writer's transaction.
func (c *Conn) classed(err error) error {
	class := c.engine.classed(err)
	if class == err {
		return err
	}
	c.observe(class)
	if c.write != nil {
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

// Each calls do with the items of a list, such as rows to write, up to the first error.
func Each[T any](list []T, do func(T) error) error {
	for _, item := range list {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
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
	rows   rows
	err    error
	closed bool
}

// Next moves to the next row. After the last row and after an error it returns false.
func (r *Rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	more, err := r.rows.next()
	if !more {
		r.err = r.conn.classed(err)
		r.Close()
	}
	return more
}

// Scan reads the columns of the row.
func (r *Rows) Scan(into ...any) error {
	if r.closed {
		return sql.ErrNoRows
	}
	return r.rows.scan(into)
}

// Err returns the error that ended the rows, if any.
func (r *Rows) Err() error { return r.err }

// Close ends the statement. It may be called twice.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.rows.close()
}
