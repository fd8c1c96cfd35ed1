package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"parley"
)

const (
	// readerWait is how long a statement waits for a free connection. All of them busy for so long means that
	// something is wrong, and an error that names it is better than a request that hangs.
	readerWait = 5 * time.Second
	// readLimit is how long a statement and its rows hold a connection. Rows that nobody closed are closed then.
	readLimit = time.Minute
)

var (
	errNoReader = errors.New("no connection for reading became free")
	errReadLong = errors.New("reading took too long")
)

// pooled runs statements on any free connection of a pool.
type pooled struct {
	dialect *Dialect
	observe func(error) // sees the errors that mean that the database does not work now
	db      *sql.DB
	slots   chan struct{} // holds one for each statement that runs; as many as there are connections

	wait, limit time.Duration // readerWait and readLimit, but in tests

	mu     sync.RWMutex
	stmts  map[string]*sql.Stmt
	closed bool
}

func newPooled(db *sql.DB, dialect *Dialect, connections int, observe func(error)) *pooled {
	return &pooled{dialect: dialect, observe: observe, db: db, slots: make(chan struct{}, connections),
		wait: readerWait, limit: readLimit, stmts: map[string]*sql.Stmt{}}
}

// turn is the right to use one connection for one statement.
type turn struct {
	pool   *pooled
	ctx    context.Context // of the statement: the caller's, with the limit
	caller context.Context
	cancel context.CancelFunc
	stop   func() bool // has the end of ctx release nothing any more
	once   sync.Once
}

// begin waits for a connection to be free.
func (p *pooled) begin(ctx context.Context) (*turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	default:
		if err := p.queue(ctx); err != nil {
			return nil, err
		}
	}
	t := &turn{pool: p, caller: ctx}
	t.ctx, t.cancel = context.WithTimeout(ctx, p.limit)
	t.stop = context.AfterFunc(t.ctx, t.release) // package sql closes the rows then, also those that the caller forgot
	return t, nil
}

func (p *pooled) queue(ctx context.Context) error {
	timeout := time.NewTimer(p.wait)
	defer timeout.Stop()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return busy(errNoReader)
	}
}

// end gives the connection back. It may be called twice, by the caller alone.
func (t *turn) end() {
	t.stop()
	t.cancel()
	t.release()
}

func (t *turn) release() { t.once.Do(func() { <-t.pool.slots }) }

// classed tells an error by our own limit from one by the caller's, and marks what means that the database does
// not work now.
func (t *turn) classed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && t.caller.Err() == nil:
		return busy(errReadLong)
	}
	class := t.pool.dialect.classed(err)
	if class != err {
		t.pool.observe(class)
	}
	return class
}

func (p *pooled) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	t, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer t.end()
	stmt, err := p.prepare(t.ctx, query)
	if err != nil {
		return nil, t.classed(err)
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	return result, t.classed(err)
}

func (p *pooled) query(ctx context.Context, query string, args []any) (Rows, error) {
	t, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	stmt, err := p.prepare(t.ctx, query)
	if err == nil {
		var rows *sql.Rows
		if rows, err = stmt.QueryContext(t.ctx, args...); err == nil {
			return &pooledRows{rows, t}, nil
		}
	}
	err = t.classed(err)
	t.end()
	return nil, err
}

func (p *pooled) queryRow(ctx context.Context, query string, args, into []any) error {
	t, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	stmt, err := p.prepare(t.ctx, query)
	if err != nil {
		return t.classed(err)
	}
	return t.classed(stmt.QueryRowContext(t.ctx, args...).Scan(into...))
}

// pooledRows are rows that hold a connection of the pool.
type pooledRows struct {
	*sql.Rows
	turn *turn
}

func (r *pooledRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.turn.end() // package sql gave the connection back
	}
	return more
}

func (r *pooledRows) Err() error { return r.turn.classed(r.Rows.Err()) }

func (r *pooledRows) Close() error {
	err := r.Rows.Close()
	r.turn.end()
	return err
}

// prepare finds a statement. No lock is held while one is compiled: the database may be slow, and the others
// need no compiling.
func (p *pooled) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.RLock()
	stmt, ok := p.stmts[query]
	closed := p.closed
	p.mu.RUnlock()
	switch {
	case ok:
		return stmt, nil
	case closed:
		return nil, unavailable(errClosed)
	}
	stmt, err := p.db.PrepareContext(ctx, p.dialect.rewrite(query))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	other, ok := p.stmts[query]
	closed = p.closed
	if !ok && !closed {
		p.stmts[query] = stmt
	}
	p.mu.Unlock()
	switch {
	case closed:
		stmt.Close()
		return nil, unavailable(errClosed)
	case ok: // somebody else was faster
		stmt.Close()
		return other, nil
	}
	return stmt, nil
}

// close closes the connections that are free, with their statements, and the others once they are.
func (p *pooled) close() error {
	p.mu.Lock()
	p.closed = true
	clear(p.stmts)
	p.mu.Unlock()
	return p.db.Close()
}

// busy is the error of a reader that had to wait too long.
func busy(cause error) error {
	return &parley.Error{Code: parley.Unavailable, Message: "The database is busy. Try again soon.", RetryAfter: readerWait, Cause: cause}
}
