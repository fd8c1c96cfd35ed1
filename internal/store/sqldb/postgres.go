package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// writeLimit is how long one statement of the writer may take. Only a database that no longer answers reaches it.
const writeLimit = 30 * time.Second

// IsPostgres reports whether a path names a PostgreSQL database.
func IsPostgres(path string) bool {
	return strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://")
}

// Redacted is a path without its password, for messages.
func Redacted(path string) string {
	if !IsPostgres(path) {
		return path
	}
	u, err := url.Parse(path)
	if err != nil {
		return "postgres://…"
	}
	return u.Redacted()
}

// postgres runs statements on PostgreSQL: on the pool for reading, or on the writer's own connection.
type postgres struct {
	pool   *pgxpool.Pool // nil: it is the writer
	config *pgx.ConnConfig
	conn   *pgx.Conn         // the writer's; nil or closed: it was lost
	queue  *pgx.Batch        // statements of the writer that are sent with the next one
	keys   map[string]string // the column of each table whose value the database chooses
	texts  sync.Map          // statements as PostgreSQL reads them, by how they are written
	closed atomic.Bool
}

// openPostgres opens the writer's connection and the pool for reading.
func openPostgres(o Options) (write, read *postgres, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	config, err := pgxpool.ParseConfig(o.Path)
	if err != nil {
		return nil, nil, errors.New("the address of the database cannot be read: write postgres://user@host/name") // it may hold a password
	}
	config.MaxConns = int32(o.Readers)
	if o.Schema != "" {
		settings := config.ConnConfig.RuntimeParams
		if first, _, _ := strings.Cut(settings["search_path"], ","); first != "" {
			o.Schema = first + "_" + o.Schema
		}
		settings["search_path"] = o.Schema
	}
	write = &postgres{config: config.ConnConfig.Copy(), queue: &pgx.Batch{}}
	if err := write.connect(ctx); err != nil {
		return nil, nil, err
	}
	if o.Schema != "" {
		if _, err := write.conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{o.Schema}.Sanitize()); err != nil {
			write.close()
			return nil, nil, err
		}
	}
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	read = &postgres{}
	if read.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		write.close()
		return nil, nil, err
	}
	return write, read, nil
}

// connect connects the writer, unless it is connected.
func (p *postgres) connect(ctx context.Context) (err error) {
	if p.conn == nil || p.conn.IsClosed() {
		p.conn, err = pgx.ConnectConfig(ctx, p.config)
	}
	return err
}

// prepare makes sure of the settings that our promises rest on.
func (p *postgres) prepare(durable bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	var commit string
	if err := p.conn.QueryRow(ctx, "SHOW synchronous_commit").Scan(&commit); err != nil {
		return err
	}
	if durable && commit != "on" && commit != "remote_apply" {
		return fmt.Errorf("synchronous_commit is %s, not on: a commit would not survive a power cut", commit)
	}
	return nil
}

// readKeys finds out which columns the database chooses values for. Tables must be up to date.
func (p *postgres) readKeys() error {
	p.keys = map[string]string{}
	rows, err := p.query(context.Background(), `SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND is_identity = 'YES'`, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		p.keys[table] = column
	}
	return rows.Err()
}

// script runs several statements.
func (p *postgres) script(text string) error {
	_, err := p.conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol)
	return err
}

// lockMigrations makes other nodes wait that want to change the tables.
func (p *postgres) lockMigrations() (unlock func(), err error) {
	const key = 7276
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if _, err := p.conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
		defer cancel()
		if _, err := p.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, key); err != nil {
			p.conn.Close(ctx) // that unlocks too
		}
	}, nil
}

// begin starts a transaction of the writer, on a new connection if the old one was lost.
func (p *postgres) begin() error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	p.queue = &pgx.Batch{}
	if err := p.connect(ctx); err != nil {
		return err
	}
	p.queue.Queue("BEGIN")
	return nil
}

// do runs a statement together with the next one. Its error comes with that.
func (p *postgres) do(query string, args []any) error {
	values, err := arguments(args)
	if err == nil {
		p.queue.Queue(p.text(query), values...)
	}
	return err
}

// flush sends the statements that wait, in one round trip.
func (p *postgres) flush() error {
	if p.queue == nil || p.queue.Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	waiting := p.queue
	p.queue = &pgx.Batch{}
	return p.conn.SendBatch(ctx, waiting).Close()
}

// rollback drops the statements that wait, and the transaction or a part of it.
func (p *postgres) rollback(statement string) error {
	p.queue = &pgx.Batch{}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	_, err := p.conn.Exec(ctx, statement)
	return err
}

// finish sends the statements that wait and one that ends the transaction.
func (p *postgres) finish(statement string) error {
	p.queue.Queue(statement)
	return p.flush()
}

func (p *postgres) exec(query string, args []any) (changed int64, err error) {
	if err := p.flush(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	values, err := arguments(args)
	if err != nil {
		return 0, err
	}
	result, err := p.conn.Exec(ctx, p.text(query), values...)
	return result.RowsAffected(), err
}

// insert adds a row and returns the key that the database chose; zero: there was a conflict.
func (p *postgres) insert(query string, args []any) (key int64, err error) {
	table := insertInto.FindStringSubmatch(query)
	if table == nil || p.keys[table[1]] == "" {
		return 0, fmt.Errorf("no key is chosen by the database: %s", query)
	}
	err = p.queryRow(context.Background(), query+` RETURNING `+p.keys[table[1]], args, []any{&key})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return key, err
}

var insertInto = regexp.MustCompile(`^\s*INSERT INTO (\w+)`)

func (p *postgres) queryRow(ctx context.Context, query string, args, into []any) error {
	rows, err := p.query(ctx, query, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

func (p *postgres) query(ctx context.Context, query string, args []any) (*postgresRows, error) {
	values, err := arguments(args)
	if err != nil {
		return nil, err
	}
	if p.pool == nil {
		if err := p.flush(); err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(context.Background(), writeLimit)
		rows, err := p.conn.Query(limited, p.text(query), values...)
		if err != nil {
			cancel()
			return nil, err
		}
		return &postgresRows{rows: rows, end: cancel}, nil
	}
	waits, stop := context.WithTimeout(ctx, readerWait)
	conn, err := p.pool.Acquire(waits)
	stop()
	if err != nil {
		if p.closed.Load() {
			err = unavailable(errClosed)
		}
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = busy(errNoReader)
		}
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, readLimit)
	end := func() {
		cancel()
		conn.Release()
	}
	rows, err := conn.Query(limited, p.text(query), values...)
	if err != nil {
		end()
		return nil, err
	}
	return &postgresRows{rows: rows, end: end}, nil
}

func (p *postgres) close() error {
	p.closed.Store(true)
	if p.pool != nil {
		closed := make(chan struct{})
		go func() {
			p.pool.Close() // waits for rows that are being read
			close(closed)
		}()
		select {
		case <-closed:
			return nil
		case <-time.After(readerWait):
			return errors.New("some rows were not closed")
		}
	}
	if p.conn == nil {
		return nil
	}
	return p.conn.Close(context.Background())
}

// text is a statement as PostgreSQL reads it. The differences are few: it chooses indexes by itself.
func (p *postgres) text(query string) string {
	if known, ok := p.texts.Load(query); ok {
		return known.(string)
	}
	text := indexedBy.ReplaceAllString(query, "")
	p.texts.Store(query, text)
	return text
}

var indexedBy = regexp.MustCompile(` INDEXED BY \w+`)

// arguments are values as PostgreSQL gets them: flags are numbers.
func arguments(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		switch v := value.(type) {
		case bool:
			value = int64(0)
			if v {
				value = int64(1)
			}
		case []byte:
			if v == nil {
				value = nil
			}
		case time.Time:
			return nil, errors.New("a time is stored as a number")
		}
		values[i] = value
	}
	return values, nil
}

// postgresRows are the rows of a result.
type postgresRows struct {
	rows pgx.Rows
	end  func() // releases the connection; nil: it is done
}

func (r *postgresRows) Next() bool { return r.rows.Next() }

func (r *postgresRows) Scan(into ...any) error {
	values, err := r.rows.Values()
	if err != nil {
		return err
	}
	if len(values) != len(into) {
		return fmt.Errorf("%d variables for %d columns", len(into), len(values))
	}
	for i, value := range values {
		if err := assign(into[i], value); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *postgresRows) Err() error { return r.rows.Err() }

func (r *postgresRows) Close() {
	r.rows.Close()
	if r.end != nil {
		r.end()
		r.end = nil
	}
}

// assign sets a variable to a value of the database, by the rules that hold for SQLite too.
func assign(into, value any) error {
	switch v := value.(type) {
	case int32:
		value = int64(v)
	case int16:
		value = int64(v)
	case pgtype.Numeric: // the sum of numbers
		n, err := v.Int64Value()
		if err != nil {
			return err
		}
		value = n.Int64
	case bool:
		value = int64(0)
		if v {
			value = int64(1)
		}
	}
	switch into := into.(type) {
	case *any:
		*into = value
		return nil
	case *[]byte:
		switch v := value.(type) {
		case nil:
			*into = nil
		case []byte:
			*into = v
		case string:
			*into = []byte(v)
		default:
			return fmt.Errorf("a %T for a []byte", value)
		}
		return nil
	}
	if value == nil {
		return fmt.Errorf("NULL for a %T", into)
	}
	v := reflect.ValueOf(into).Elem()
	switch value := value.(type) {
	case int64:
		switch v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(value)
			return nil
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(uint64(value))
			return nil
		case reflect.Bool:
			v.SetBool(value != 0)
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(value)
			return nil
		}
	}
	return fmt.Errorf("a %T for a %T", value, into)
}

// isPostgresUnavailable reports whether an error of PostgreSQL means that it does not work now.
func isPostgresUnavailable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code[:2] {
		case "08", "40", "53", "57", "58", "XX": // connection, rollback, resources, operator, system, internal
			return true
		case "25": // a transaction that a time-out or an earlier error ended
			return e.Code == "25P03" || e.Code == "25006"
		}
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, lost := errors.AsType[net.Error](err)
	return connecting || lost || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
