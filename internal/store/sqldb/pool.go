package sqldb

import (
	"context"
	"errors"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"parley"
	"parley/internal/wait"
)

const (
	// readerWait is how long a statement waits for a free connection. Then an error is better than a request that hangs.
	readerWait = 5 * time.Second
	// readLimit is how long a statement and its rows may hold a connection. Rows that are still open are closed then.
	readLimit = time.Minute
)

var (
	errNoReader = errors.New("no connection for reading became free")
	errReadLong = errors.New("reading took too long")
)

// pool holds the connections for reading. They are opened when they are needed.
type pool struct {
	open    func() (*connection, error)
	observe func(error)      // receives the errors that mean that the database is unavailable
	free    chan *connection // nil: a connection that is not open yet
	turns   *wait.Turns      // of those who want one of them
	ending  context.Context  // ends when the pool is closed
	end     context.CancelFunc

	wait, limit time.Duration // readerWait and readLimit, except in tests
}

func newPool(size int, open func() (*connection, error), observe func(error)) *pool {
	p := &pool{open: open, observe: observe, free: make(chan *connection, size), turns: wait.NewTurns(size),
		wait: readerWait, limit: readLimit}
	p.ending, p.end = context.WithCancel(context.Background())
	for range size {
		p.free <- nil
	}
	return p
}

// close ends the running statements and closes all connections.
func (p *pool) close() error {
	p.end()
	var all error
	for range cap(p.free) {
		if c := <-p.free; c != nil {
			all = errors.Join(all, c.close())
		}
	}
	return all
}

// loan is the use of one connection for one statement.
type loan struct {
	pool   *pool
	name   string // of the caller; see For
	caller context.Context
	ctx    context.Context // the caller's with the limit
	cancel context.CancelFunc
	stop   [2]func() bool

	mu    sync.Mutex
	conn  *connection // nil: it was returned
	stmt  *statement  // whose rows are being read; nil: none
	ended error       // why it was returned before all rows were read
}

// borrow waits for a free connection and opens it if necessary.
func (p *pool) borrow(ctx context.Context) (*loan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := Caller(ctx)
	conn, err := p.waitFree(ctx, name)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		if conn, err = p.open(); err != nil {
			p.giveBack(nil, name)
			return nil, p.classed(err)
		}
	}
	l := &loan{pool: p, name: name, caller: ctx, conn: conn}
	l.ctx, l.cancel = context.WithTimeout(ctx, p.limit)
	conn.interruptWith(l.ctx)
	l.stop[0] = context.AfterFunc(p.ending, l.cancel)
	l.stop[1] = context.AfterFunc(l.ctx, func() { l.finish(l.ctx.Err()) }) // also if the caller did not close its rows
	return l, nil
}

// waitFree waits for a free connection; nil: it is not open yet.
func (p *pool) waitFree(ctx context.Context, name string) (*connection, error) {
	if p.ending.Err() != nil {
		return nil, unavailable(errClosed)
	}
	if p.turns.Try(name) {
		return <-p.free, nil // there is one for each turn
	}
	waits, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	defer context.AfterFunc(p.ending, cancel)()
	if err := p.turns.Take(waits, name); err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case p.ending.Err() != nil:
			return nil, unavailable(errClosed)
		}
		return nil, busy(errNoReader)
	}
	return <-p.free, nil
}

// giveBack returns a connection; nil: it is not open.
func (p *pool) giveBack(c *connection, name string) {
	p.free <- c
	p.turns.Give(name)
}

// finish resets the statement and returns the connection, once. It waits for the current step, which ends with the
// context.
func (l *loan) finish(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return
	}
	if l.stmt != nil {
		l.stmt.inUse = false
		l.stmt.Reset()
	}
	l.conn.conn.SetInterrupt(nil)
	l.ended = why
	conn := l.conn
	l.conn, l.stmt = nil, nil
	l.pool.giveBack(conn, l.name)
}

// end returns the connection. Only the caller calls it. It may be called twice.
func (l *loan) end() {
	for _, stop := range l.stop {
		stop()
	}
	l.finish(nil)
	l.cancel()
}

// next, scan and close read the rows of its statement.
func (l *loan) next() (more bool, err error) {
	err = l.run(func(*connection) error {
		more, err = l.stmt.Step()
		return err
	})
	return more, err
}

func (l *loan) scan(into []any) error {
	return l.run(func(*connection) error { return l.stmt.scan(into) })
}

func (l *loan) close() error {
	l.end()
	return nil
}

// run runs do on the connection, unless it was returned.
func (l *loan) run(do func(c *connection) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return l.classed(l.ended)
	}
	return l.classed(do(l.conn))
}

// classed distinguishes the pool's limit from the caller's context, and marks errors that mean unavailable.
func (l *loan) classed(err error) error {
	interrupted := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		err != nil && sqlite.ErrCode(err) == sqlite.ResultInterrupt
	switch {
	case !interrupted:
		return l.pool.classed(err)
	case l.caller.Err() != nil:
		return l.caller.Err()
	case l.pool.ending.Err() != nil:
		return unavailable(errClosed)
	}
	return busy(errReadLong)
}

func (p *pool) classed(err error) error {
	class := classed(err)
	if class != err {
		p.observe(class)
	}
	return class
}

// poolReader reads on any connection of a pool.
type poolReader struct {
	*pool
	ctx context.Context
}

func (r poolReader) with(ctx context.Context) engine { return poolReader{r.pool, ctx} }
func (r poolReader) isPostgres() bool                { return false }
func (r poolReader) classed(err error) error         { return err } // the loan did so

func (r poolReader) run(do func(*connection) error) error {
	l, err := r.borrow(r.ctx)
	if err != nil {
		return err
	}
	defer l.end()
	return l.run(do)
}

func (r poolReader) exec(query string, args []any) (changed int64, err error) {
	err = r.run(func(c *connection) error {
		changed, err = c.exec(query, args)
		return err
	})
	return changed, err
}

func (r poolReader) queryRow(query string, args, into []any) error {
	return r.run(func(c *connection) error { return c.queryRow(query, args, into) })
}

func (r poolReader) query(query string, args []any) (rows, error) {
	l, err := r.borrow(r.ctx)
	if err != nil {
		return nil, err
	}
	err = l.run(func(c *connection) error {
		stmt, err := c.bound(query, args)
		if err == nil {
			stmt.inUse = true
			l.stmt = stmt
		}
		return err
	})
	if err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

// busy is the error of a reader that had to wait too long.
func busy(cause error) error {
	return &parley.Error{Code: parley.Unavailable, Message: "The database is busy. Try again soon.", RetryAfter: readerWait, Cause: cause}
}
