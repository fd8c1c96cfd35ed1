package sqldb

import (
	"context"
	"errors"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"parley"
)

const (
	// readerWait is how long a statement waits for a free connection. If all of them are busy for so long, an error
	// that says so is better than a request that hangs.
	readerWait = 5 * time.Second
	// readLimit is how long a statement and its rows hold a connection. Rows that nobody closed are closed then.
	readLimit = time.Minute
)

var (
	errNoReader = errors.New("no connection for reading became free")
	errReadLong = errors.New("reading took too long")
)

// pool holds the connections for reading. They are opened when they are needed.
type pool struct {
	open    func() (*connection, error)
	observe func(error)        // gets the errors that mean that the database does not work now
	free    chan *connection   // nil: one that is not open yet
	ending  context.Context    // over when the pool is closed
	end     context.CancelFunc // ends it

	wait, limit time.Duration // readerWait and readLimit, but in tests
}

func newPool(size int, open func() (*connection, error), observe func(error)) *pool {
	p := &pool{open: open, observe: observe, free: make(chan *connection, size), wait: readerWait, limit: readLimit}
	p.ending, p.end = context.WithCancel(context.Background())
	for range size {
		p.free <- nil
	}
	return p
}

// close ends the statements that run and closes all connections.
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
	caller context.Context
	ctx    context.Context // the caller's, with the limit
	cancel context.CancelFunc
	stop   [2]func() bool

	mu    sync.Mutex
	conn  *connection // nil: it was returned
	stmt  *statement  // whose rows are being read; nil: none
	ended error       // why it was returned before its rows were read to their end
}

// borrow waits for a free connection.
func (p *pool) borrow(ctx context.Context) (*loan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		if conn, err = p.open(); err != nil {
			p.free <- nil
			return nil, p.classed(err)
		}
	}
	l := &loan{pool: p, caller: ctx, conn: conn}
	l.ctx, l.cancel = context.WithTimeout(ctx, p.limit)
	conn.interruptWith(l.ctx)
	l.stop[0] = context.AfterFunc(p.ending, l.cancel)
	l.stop[1] = context.AfterFunc(l.ctx, func() { l.finish(l.ctx.Err()) }) // also for a caller that forgot its rows
	return l, nil
}

func (p *pool) take(ctx context.Context) (*connection, error) {
	if p.ending.Err() != nil {
		return nil, unavailable(errClosed)
	}
	select {
	case conn := <-p.free:
		return conn, nil
	default:
	}
	timeout := time.NewTimer(p.wait)
	defer timeout.Stop()
	select {
	case conn := <-p.free:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ending.Done():
		return nil, unavailable(errClosed)
	case <-timeout.C:
		return nil, busy(errNoReader)
	}
}

// finish resets the statement and returns the connection, once. It waits for a step under way, which ends with the
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
	l.pool.free <- conn
}

// end returns the connection. Only the caller calls it; it may do so twice.
func (l *loan) end() {
	for _, stop := range l.stop {
		stop()
	}
	l.finish(nil)
	l.cancel()
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

// classed tells our own limit from the caller's context, and marks what means that the database does not work now.
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

// busy is the error of a reader that had to wait too long.
func busy(cause error) error {
	return &parley.Error{Code: parley.Unavailable, Message: "The database is busy. Try again soon.", RetryAfter: readerWait, Cause: cause}
}
