package sqldb

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"parley/internal/wait"
)

// postgresPool holds the connections to PostgreSQL for reading.
type postgresPool struct {
	pool   *pgxpool.Pool
	turns  *wait.Turns // of those who want a connection
	texts  postgresTexts
	closed atomic.Bool
}

// postgresReader reads on any connection of a pool.
type postgresReader struct {
	*postgresPool
	ctx context.Context
}

func (r postgresReader) with(ctx context.Context) engine { return postgresReader{r.postgresPool, ctx} }
func (r postgresReader) classed(err error) error         { return classed(err) }
func (r postgresReader) isPostgres() bool                { return true }

func (r postgresReader) exec(query string, args []any) (changed int64, err error) {
	rows, err := r.query(query, args)
	if err == nil {
		err = rows.close()
	}
	return 0, err // a session that reads changes nothing
}

func (r postgresReader) queryRow(query string, args, into []any) error {
	return postgresRow(r, query, args, into)
}

func (r postgresReader) query(query string, args []any) (rows, error) {
	values, err := arguments(args)
	if err != nil {
		return nil, err
	}
	conn, name, err := r.acquire()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(r.ctx, readLimit)
	end := func() {
		cancel()
		conn.Release()
		r.turns.Give(name)
	}
	rows, err := conn.Query(limited, r.texts.text(query), values...)
	if err != nil {
		end()
		return nil, err
	}
	return &postgresRows{rows: rows, end: end}, nil
}

// acquire waits for a connection, which name's turn is for.
func (r postgresReader) acquire() (conn *pgxpool.Conn, name string, err error) {
	waits, stop := context.WithTimeout(r.ctx, readerWait)
	defer stop()
	name = Caller(r.ctx)
	if err = r.turns.Take(waits, name); err == nil {
		if conn, err = r.pool.Acquire(waits); err != nil {
			r.turns.Give(name)
		}
	}
	switch {
	case err == nil:
	case r.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = busy(errNoReader)
	case r.closed.Load():
		err = unavailable(errClosed)
	}
	return conn, name, err
}

func (r postgresReader) close() error {
	r.closed.Store(true)
	closed := make(chan struct{})
	go func() {
		r.pool.Close() // waits for rows that are being read
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(readerWait):
		return errors.New("some rows were not closed")
	}
}
