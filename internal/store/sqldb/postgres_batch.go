package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// do runs a statement together with the next one. Its error comes with that.
func (p *postgres) do(query string, args []any) error {
	values, err := arguments(args)
	if err == nil {
		p.enqueue(query, values...)
	}
	return err
}

// doOr is do for a statement that must change a row.
func (p *postgres) doOr(otherwise error, query string, args []any) error {
	values, err := arguments(args)
	if err == nil {
		p.checks = true
		p.enqueue(query, values...).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return otherwise
			}
			return nil
		})
	}
	return err
}

// many is a statement for several calls of manyThen. It is the last one in the queue.
type many struct {
	of     *Many
	queued *pgx.QueuedQuery // its arguments are []int64, []*string or [][]byte
	into   [][]any          // by call
}

// manyThen is do for a statement that several calls share. It returns a row for each.
func (p *postgres) manyThen(of *Many, args, into []any) error {
	values, err := arguments(args)
	if err != nil {
		return err
	}
	m := p.many
	waiting := p.queue.QueuedQueries
	if m == nil || m.of != of || len(m.into) == maxMany || len(waiting) == 0 || waiting[len(waiting)-1] != m.queued {
		m = &many{of: of, queued: p.enqueue(of.Postgres, make([]any, len(values))...)}
		m.queued.Query(func(rows pgx.Rows) error { return m.scan(rows) })
		p.many = m
	}
	if last := len(p.from) - 1; p.from[last] != p.caller {
		p.from[last] = nobody
	}
	m.into = append(m.into, into)
	for i, value := range values {
		column := m.queued.Arguments[i]
		switch v := value.(type) {
		case int64:
			numbers, _ := column.([]int64)
			column = append(numbers, v)
		case string:
			texts, _ := column.([]*string)
			column = append(texts, &v)
		case []byte:
			blobs, _ := column.([][]byte)
			column = append(blobs, v)
		case nil:
			texts, _ := column.([]*string)
			column = append(texts, nil)
		default:
			return fmt.Errorf("argument %d: a %T", i+1, value)
		}
		m.queued.Arguments[i] = column
	}
	return nil
}

func (p *postgres) beside(bool)          {} // nothing depends on what the server has and what waits
func (p *postgres) waitingNumber() int64 { return 0 }

func (m *many) scan(rows pgx.Rows) error {
	for _, into := range m.into {
		if !rows.Next() {
			return cmp.Or(rows.Err(), sql.ErrNoRows)
		}
		if err := (&postgresRows{rows: rows}).scan(into); err != nil {
			return err
		}
	}
	return nil
}

// flush sends the statements that wait, in one round trip.
func (p *postgres) flush() error {
	if p.queue == nil || p.queue.Len() == 0 {
		return nil
	}
	results, end, err := p.send(0)
	if err != nil {
		return err
	}
	defer end()
	return results.Close()
}

// enqueue adds a statement to those that wait.
func (p *postgres) enqueue(query string, values ...any) *pgx.QueuedQuery {
	p.from = append(p.from, p.caller)
	return p.queue.Queue(p.texts.text(query), values...)
}

// takeQueue returns the statements that wait and whose they are, and begins a new queue.
func (p *postgres) takeQueue() (waiting *pgx.Batch, from []int) {
	waiting, from = p.queue, p.from
	p.queue, p.from, p.many, p.checks, p.mark = &pgx.Batch{}, nil, nil, false, 0
	return waiting, from
}

// send sends the statements that wait in one round trip and reads their results, but for the last ones. Call end after those are
// read.
func (p *postgres) send(unread int) (results pgx.BatchResults, end func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	batch, from := p.takeQueue()
	p.sent = true
	results = p.conn.SendBatch(ctx, batch)
	end = func() {
		results.Close() // its error came with the result
		cancel()
	}
	for i, q := range batch.QueuedQueries[:batch.Len()-unread] {
		if q.Fn != nil {
			err = q.Fn(results)
		} else {
			_, err = results.Exec()
		}
		if err != nil {
			end()
			return nil, nil, p.blame(from[i], p.checkMember(err))
		}
	}
	return results, end, nil
}

// blame is a statement of a caller that failed while another one was served.
type blame struct {
	caller int // nobody: of several
	err    error
}

// nobody is the caller of statements that are of no caller, or of several.
const nobody = -1

var errOther = errors.New("a statement of another caller failed")

// blame notes whose statement failed. The caller that is served must not take the error for its own.
func (p *postgres) blame(caller int, err error) error {
	if caller == p.caller || classed(err) != err {
		return err
	}
	p.blamed = &blame{caller, err}
	return errOther
}

func (p *postgres) serve(caller int) { p.caller = caller }
func (p *postgres) failed() *blame   { return p.blamed }
