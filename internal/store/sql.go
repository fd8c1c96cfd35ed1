package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Reader reads through the pool, where every method ends with its context, or inside a transaction, which ignores contexts.
// A missing row is [parley.ErrNotFound].
type Reader struct {
	conn *sqldb.Conn
}

// Tx is a transaction: it reads and writes.
type Tx struct {
	Reader
	sql      *sqldb.Tx
	db       *DB
	lastCode parley.ChannelCode // the channel that channelID last looked up
	lastID   int64
	spelled  struct { // what Spellings last returned
		channel parley.ChannelCode
		contact parley.ContactID
		all     []parley.ContactID
	}
	ending ending
}

// OnCommit calls f after the commit, before the next transaction begins and in the order of the transactions. f must not
// block and must not use the store.
func (t *Tx) OnCommit(f func()) { t.sql.OnCommit(f) }

// OnUnknown calls f if the database failed and the transaction may be committed nevertheless: at once, and again as soon as reads show
// its outcome, before the next transaction begins. The same rules hold for f.
func (t *Tx) OnUnknown(f func()) { t.sql.OnUnknown(f) }

// exec runs a statement.
func (t *Tx) exec(query string, args ...any) error {
	return t.sql.Do(query, args...)
}

// execAll runs statements that have the same arguments.
func (t *Tx) execAll(statements []string, args ...any) error {
	for _, statement := range statements {
		if err := t.exec(statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that must change a row.
func (t *Tx) change(query string, args ...any) error {
	n, err := t.sql.Exec(query, args...)
	if err == nil && n == 0 {
		return parley.ErrNotFound
	}
	return err
}

// add runs an INSERT … ON CONFLICT DO NOTHING of a row that must be new. The statement must not fail, because on some
// databases that would end the whole transaction.
func (t *Tx) add(query string, args ...any) error {
	n, err := t.sql.Exec(query, args...)
	if err == nil && n == 0 {
		return parley.ErrExists
	}
	return err
}

// with returns a reader whose statements end with ctx. Inside a transaction they do not: it is shared.
func (r Reader) with(ctx context.Context) Reader { return Reader{r.conn.With(ctx)} }

// row reads one row into variables.
func (r Reader) row(query string, args []any, into ...any) error {
	err := r.conn.QueryRow(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return parley.ErrNotFound
	}
	return err
}

// optional is row for a row that may be missing. Then the variables stay as they are.
func (r Reader) optional(query string, args []any, into ...any) error {
	err := r.row(query, args, into...)
	if err == parley.ErrNotFound {
		return nil
	}
	return err
}

// moment reads one time.
func (r Reader) moment(query string, args ...any) (time.Time, error) {
	var at int64
	err := r.row(query, args, &at)
	return moment(at), err
}

type scanner = sqldb.Scanner

// one reads the first row with scan.
func one[T any](r Reader, query string, args []any, scan func(scanner) (T, error)) (T, error) {
	all, err := list(r, query, args, scan)
	if err == nil && len(all) == 0 {
		err = parley.ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// list reads all rows, each with scan; nil: there are none.
func list[T any](r Reader, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
	all, err := sqldb.Collect(r.conn, scan, query, args...)
	if len(all) == 0 {
		return nil, err
	}
	return all, err
}

// each calls do for every row.
func each(r Reader, query string, args []any, do func(scanner) error) error {
	_, err := list(r, query, args, func(row scanner) (struct{}, error) { return struct{}{}, do(row) })
	return err
}

// millis is a time as it is stored.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// moment is a stored time.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func scanMoment(row scanner) (time.Time, error) {
	at, err := sqldb.ScanOne[int64](row)
	return moment(at), err
}

// flag is a boolean as it is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nullable is a blob; an empty one is NULL.
func nullable(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// nullableText is a text; an empty one is NULL.
func nullableText(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return string(b)
}

// maxList is the maximum length of a list in a statement. On PostgreSQL each list is a round trip.
const maxList = 256

// param is the nth parameter of a statement.
func param(n int) string { return "$" + strconv.Itoa(n) }

// inList makes the list of an IN and its arguments, starting with a parameter. It repeats the last value up to a power of
// two: each length needs a prepared statement of its own.
func inList[T any](first int, values []T) (text string, args []any) {
	size := 1
	for size < len(values) {
		size *= 2
	}
	args, params := make([]any, size), make([]string, size)
	for i := range args {
		args[i], params[i] = values[min(i, len(values)-1)], param(first+i)
	}
	return "(" + strings.Join(params, ", ") + ")", args
}

// listIn reads the rows of a query that ends with IN, for any number of values. rest follows the list.
func listIn[V, T any](r Reader, query, rest string, args []any, values []V, scan func(scanner) (T, error)) ([]T, error) {
	var all []T
	for some := range slices.Chunk(values, maxList) {
		in, more := inList(len(args)+1, some)
		found, err := list(r, query+in+rest, append(slices.Clip(args), more...), scan)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// texts are values as the database binds them.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
