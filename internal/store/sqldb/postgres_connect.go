package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/internal/socket"
	"parley/internal/wait"
)

const (
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

// openPostgres opens the writer's connection and the pool for reading.
func openPostgres(o Options) (writeEngine, engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	config, err := postgresConfig(o)
	if err != nil {
		return nil, nil, err
	}
	write := &postgres{config: config.ConnConfig.Copy(), queue: &pgx.Batch{}}
	maps.Copy(write.config.RuntimeParams, map[string]string{
		"idle_in_transaction_session_timeout": fmt.Sprint(idleLimit.Milliseconds()),
		"plan_cache_mode":                     "force_generic_plan", // each of its statements is planned once
	})
	write.config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		write.warned = write.warned || n.SeverityUnlocalized == "WARNING"
	}
	setAfterConnect(write.config)
	if err := write.connect(ctx); err != nil {
		return nil, nil, connectError(err)
	}
	if o.Schema != "" {
		_, err := write.conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{configSchema(config)}.Sanitize())
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation {
			err = nil // another node made it at the same moment
		}
		if err != nil {
			write.close()
			return nil, nil, err
		}
	}
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	setAfterConnect(config.ConnConfig)
	pool := &postgresPool{turns: wait.NewTurns(o.Readers)}
	if pool.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		write.close()
		return nil, nil, err
	}
	return write, postgresReader{pool, context.Background()}, nil
}

// uniqueViolation is what PostgreSQL reports also where IF NOT EXISTS loses a race.
const uniqueViolation = "23505"

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
	settings["jit"] = "off" // it costs more than any statement here takes
	// Statements find their rows by indexes. A plan that is made while a table is small would scan it, and stay when the table has grown.
	settings["enable_seqscan"] = "off"
	// Of several hosts, the one that can be written. A standby shows the past, so it is not read either.
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	if o.Schema != "" {
		main := cmp.Or(configSchema(config), "public")
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

// configSchema is the schema that tables are made in; empty: the server's default.
func configSchema(config *pgxpool.Config) string {
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
		if p.conn, err = pgx.ConnectConfig(ctx, p.config); err == nil {
			err = p.conn.QueryRow(ctx, "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()",
				pgx.QueryExecModeSimpleProtocol).Scan(&p.own.pid, &p.own.began)
		}
	}
	return err
}

// check makes sure of the settings that durability and fencing depend on.
func (p *postgres) check(o Options) error {
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
	if o.Durable && commit != "on" && commit != "remote_apply" {
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

// ConnectPostgres opens a connection to the database of an address.
func ConnectPostgres(ctx context.Context, path string) (*pgx.Conn, error) {
	config, err := postgresConfig(Options{Path: path, Readers: 1})
	if err != nil {
		return nil, err
	}
	setAfterConnect(config.ConnConfig)
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}
