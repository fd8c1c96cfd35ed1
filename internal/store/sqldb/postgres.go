package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/internal/socket"
)

const (
	// writeLimit is how long one statement of the writer may take. Only a database that no longer answers reaches it.
	writeLimit = 30 * time.Second
	// connectLimit is how long connecting may take.
	connectLimit = 5 * time.Second
	// idleLimit is how long a transaction may wait for its next statement. Then PostgreSQL ends it and its locks.
	idleLimit = 5 * time.Second
)

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
	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} { // libpq reads them here, too
		if query.Has(name) {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}

// postgres runs statements on PostgreSQL: on the pool for reading, or on the writer's own connection.
type postgres struct {
	pool   *pgxpool.Pool // nil: it is the writer
	config *pgx.ConnConfig
	conn   *pgx.Conn         // the writer's; nil or closed: it was lost
	queue  *pgx.Batch        // statements of the writer that are sent with the next one
	checks bool              // one of them may fail after it ran: the commit must wait for it
	keys   map[string]string // the column of each table whose value the database chooses
	texts  sync.Map          // statements as PostgreSQL reads them, by how they are written
	member *Member           // nil: there is no cluster
	named  int64             // the node that the session is named for
	warned bool              // the server sent a warning during the transaction
	closed atomic.Bool
}

// Member ties the transactions of a node to its membership of the cluster: once the node is removed, none can commit.
type Member struct {
	// ID is the node's id; 0: the node is not a member now, and nothing is written.
	ID func() int64
	// Lost is called when a transaction was refused because the node is no longer a member. It must not block.
	Lost func(id int64)
	// Committed is called after each commit with the number of writes in it and its duration; nil: nothing.
	Committed func(writes int, took time.Duration)
}

var errNotMember = errors.New("this node is not a member of the cluster now")

// openPostgres opens the writer's connection and the pool for reading.
func openPostgres(o Options) (write, read *postgres, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	config, err := postgresConfig(o)
	if err != nil {
		return nil, nil, err
	}
	write = &postgres{config: config.ConnConfig.Copy(), queue: &pgx.Batch{}}
	write.config.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(idleLimit.Milliseconds())
	write.config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		write.warned = write.warned || n.SeverityUnlocalized == "WARNING"
	}
	setAfterConnect(write.config)
	if err := write.connect(ctx); err != nil {
		return nil, nil, connectError(err)
	}
	if o.Schema != "" {
		if _, err := write.conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schemaOf(config)}.Sanitize()); err != nil {
			write.close()
			return nil, nil, err
		}
	}
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	setAfterConnect(config.ConnConfig)
	read = &postgres{}
	if read.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		write.close()
		return nil, nil, err
	}
	return write, read, nil
}

// postgresConfig reads an address.
func postgresConfig(o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.Path)
	if err != nil { // the error may contain a password
		return nil, errors.New("the address of the database cannot be read: write postgres://user@host/name")
	}
	config.MaxConns = int32(o.Readers)
	config.ConnConfig.DialFunc = socket.Dialer(0).DialContext
	settings := config.ConnConfig.RuntimeParams
	if settings["application_name"] == "" {
		settings["application_name"] = "parley"
	}
	// Of several hosts, the one that can be written. A standby shows the past, so it is not read either.
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	if o.Schema != "" {
		main := cmp.Or(schemaOf(config), "public")
		own := o.Schema
		if main != "public" {
			own = main + "_" + own
		}
		settings["search_path"] = own + "," + main // the cluster's tables are in main
	}
	return config, nil
}

// setAfterConnect has the settings of a session set after it is connected, apart from its name. PgBouncer in session mode refuses
// most settings in the first packet of a connection.
func setAfterConnect(config *pgx.ConnConfig) {
	var calls []string
	var values [][]byte
	for _, name := range slices.Sorted(maps.Keys(config.RuntimeParams)) {
		if name != "application_name" && name != "options" {
			calls = append(calls, fmt.Sprintf("set_config($%d, $%d, false)", len(values)+1, len(values)+2))
			values = append(values, []byte(name), []byte(config.RuntimeParams[name]))
			delete(config.RuntimeParams, name)
		}
	}
	if len(calls) == 0 {
		return
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.ExecParams(ctx, "SELECT "+strings.Join(calls, ", "), values, nil, nil, nil).Read().Err
	}
}

// schemaOf is the schema that tables are made in; empty: the server's default.
func schemaOf(config *pgxpool.Config) string {
	first, _, _ := strings.Cut(config.ConnConfig.RuntimeParams["search_path"], ",")
	return first
}

// connectError explains why there is no connection.
func connectError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(e.Message, "unsupported startup parameter") {
		return errPooler
	}
	return err
}

var errPooler = errors.New("the address leads to a connection pooler in transaction mode (PgBouncer?): " +
	"use the address of PostgreSQL itself, because a session needs a connection of its own")

// connect connects the writer, unless it is connected.
func (p *postgres) connect(ctx context.Context) (err error) {
	if p.conn == nil || p.conn.IsClosed() {
		p.named = 0
		p.conn, err = pgx.ConnectConfig(ctx, p.config)
	}
	return err
}

// prepare makes sure of the settings that durability and fencing depend on.
func (p *postgres) prepare(durable bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	var version int
	var commit string
	if err := p.refusePooler(ctx); err != nil { // before a statement is prepared, which fails there in other ways
		return err
	}
	if err := p.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, current_setting('synchronous_commit')").
		Scan(&version, &commit); err != nil {
		return err
	}
	if version < 140000 {
		return fmt.Errorf("PostgreSQL %d is too old: use version 14 or newer", version/10000)
	}
	if durable && commit != "on" && commit != "remote_apply" {
		return fmt.Errorf("synchronous_commit of PostgreSQL is %s: set it to on, else an acknowledged message could be lost", commit)
	}
	return nil
}

// refusePooler refuses a pooler that gives one session of PostgreSQL to several connections. It shows when a second connection
// begins a transaction in the session of the first, or when the first gets another session meanwhile.
func (p *postgres) refusePooler(ctx context.Context) error {
	const ownPID = "SELECT pg_backend_pid()"
	second, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	defer second.Close(ctx)
	var one, two int
	if err := p.conn.QueryRow(ctx, ownPID, pgx.QueryExecModeSimpleProtocol).Scan(&one); err != nil {
		return err
	}
	tx, err := second.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if err := tx.QueryRow(ctx, ownPID, pgx.QueryExecModeSimpleProtocol).Scan(&two); err != nil {
		return err
	}
	var again int
	if err := p.conn.QueryRow(ctx, ownPID, pgx.QueryExecModeSimpleProtocol).Scan(&again); err != nil {
		return err
	}
	if one == two || one != again {
		return errPooler
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

// begin starts a transaction of the writer, on a new connection if the old one was lost. The transaction fails unless the
// node is a member of the cluster.
func (p *postgres) begin() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	p.queue, p.checks, p.warned = &pgx.Batch{}, false, false
	var id int64
	if p.member != nil {
		if id = p.member.ID(); id == 0 {
			return unavailable(errNotMember)
		}
	}
	if p.conn != nil && p.named != 0 && p.named != id {
		p.conn.Close(ctx) // other nodes may have ended the session when they removed the earlier member
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	p.queue.Queue("BEGIN")
	if p.member == nil {
		return nil
	}
	if id != p.named { // so that other nodes find the sessions of this one
		p.queue.Queue("SELECT set_config('application_name', $1, false)", SessionName(id))
		p.named = id
	}
	p.queue.Queue("SELECT fence($1)", id)
	return nil
}

// SessionName is the application_name of the sessions in which a node writes.
func SessionName(node int64) string { return fmt.Sprintf("parley-%d", node) }

// do runs a statement together with the next one. Its error comes with that.
func (p *postgres) do(query string, args []any) error {
	values, err := arguments(args)
	if err == nil {
		p.queue.Queue(p.text(query), values...)
	}
	return err
}

// doThen is do with the number of changed rows.
func (p *postgres) doThen(query string, args []any, then func(changed int64)) error {
	values, err := arguments(args)
	if err == nil {
		p.queue.Queue(p.text(query), values...).Exec(func(tag pgconn.CommandTag) error {
			then(tag.RowsAffected())
			return nil
		})
	}
	return err
}

// doOr is do for a statement that must change a row.
func (p *postgres) doOr(otherwise error, query string, args []any) error {
	values, err := arguments(args)
	if err == nil {
		p.checks = true
		p.queue.Queue(p.text(query), values...).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return otherwise
			}
			return nil
		})
	}
	return err
}

// rowThen is do for a statement that returns one row.
func (p *postgres) rowThen(query string, args, into []any) error {
	values, err := arguments(args)
	if err == nil {
		p.queue.Queue(p.text(query), values...).Query(func(rows pgx.Rows) error {
			if !rows.Next() {
				return cmp.Or(rows.Err(), sql.ErrNoRows)
			}
			return (&postgresRows{rows: rows}).Scan(into...)
		})
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
	p.queue, p.checks = &pgx.Batch{}, false
	err := p.conn.SendBatch(ctx, waiting).Close()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == notMember && p.member != nil {
		p.member.Lost(p.named)
	}
	return err
}

// notMember is the error code of the function fence.
const notMember = "PF001"

// rollback drops the statements that wait, and the transaction or a part of it.
func (p *postgres) rollback(statement string) error {
	p.queue, p.checks = &pgx.Batch{}, false
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	_, err := p.conn.Exec(ctx, statement)
	return err
}

// finish sends the statements that wait and one that ends the transaction. After a warning the outcome is unknown: PostgreSQL
// reports a commit that did not reach the standby as a success with a warning.
func (p *postgres) finish(statement string) error {
	if p.checks {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.queue.Queue(statement)
	err := p.flush()
	if err == nil && p.warned {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		p.conn.Close(ctx)
		err = unavailable(errors.New("the commit was not confirmed by the standby"))
	}
	return err
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

// isPostgresFull reports whether an error says that the disk of PostgreSQL is full.
func isPostgresFull(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "53100"
}

// needsSpace is a statement that fails while the disk is full. A commit alone does not: it only writes the log, which has space
// reserved and may be on another disk.
const needsSpace = `CREATE TEMPORARY TABLE needs_space ON COMMIT DROP AS SELECT repeat('x', 4000) AS x FROM generate_series(1, 8)`

// ConnectPostgres opens a connection to the database of an address.
func ConnectPostgres(ctx context.Context, path string) (*pgx.Conn, error) {
	config, err := postgresConfig(Options{Path: path, Readers: 1})
	if err != nil {
		return nil, err
	}
	setAfterConnect(config.ConnConfig)
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}
