package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// writeLimit is how long one statement of the writer may take. Only a database that no longer answers reaches it.
const writeLimit = 30 * time.Second

var _ writeEngine = (*postgres)(nil)

// postgres is the writer's connection to PostgreSQL.
type postgres struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn         // the writer's; nil or closed: it was lost
	queue  *pgx.Batch        // statements of the writer that are sent with the next one
	many   *many             // the last of them that takes arrays; nil: none
	checks bool              // one of them may fail after it ran: the commit must wait for it
	from   []int             // by statement: the caller that it is from; nobody: no single one
	caller int               // whose statements are queued now
	blamed *blame            // a caller's statement that failed while another one was served; nil: none did
	sent   bool              // something of the transaction was sent
	mark   int               // how many statements wait up to a savepoint that was not sent yet; 0: there is none
	keys   map[string]string // the column of each table whose value the database chooses
	texts  postgresTexts
	member *Member // nil: there is no cluster
	named  int64   // the node that the session is named for
	own    session // of conn
	doubt  session // whose last commit has an unknown outcome; zero: none has
	warned bool    // the server sent a warning during the transaction
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

// ready is called when the tables are up to date. They are made before a node can join.
func (p *postgres) ready(o Options) error {
	p.member = o.Member
	return p.readKeys()
}

func (p *postgres) with(context.Context) engine { return p }
func (p *postgres) classed(err error) error     { return classed(err) }
func (p *postgres) isPostgres() bool            { return true }

func (p *postgres) committed(writes int, took time.Duration) {
	if p.member != nil && p.member.Committed != nil {
		p.member.Committed(writes, took)
	}
}

func (p *postgres) dialect() dialect {
	return dialect{
		migrations: "postgres", serves: `SELECT version FROM schema_serves`,
		touch: "SELECT pg_current_xact_id()", takeSpace: needsSpace, // the first has the commit written
		size: "SELECT pg_database_size(current_database())",
	}
}

// readKeys finds out which columns the database chooses values for. Tables must be up to date.
func (p *postgres) readKeys() error {
	p.keys = map[string]string{}
	rows, err := p.query(`SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND is_identity = 'YES'`, nil)
	if err != nil {
		return err
	}
	defer rows.close()
	for {
		var table, column string
		if more, err := rows.next(); err != nil || !more {
			return err
		}
		if err := rows.scan([]any{&table, &column}); err != nil {
			return err
		}
		p.keys[table] = column
	}
}

// begin starts a transaction of the writer, on a new connection if the old one was lost. The transaction fails unless the
// node is a member of the cluster.
func (p *postgres) begin() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	p.takeQueue()
	p.caller, p.blamed, p.warned, p.sent = nobody, nil, false, false
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
	if err := p.awaitOutcome(ctx); err != nil {
		return err
	}
	if p.member == nil {
		p.enqueue("BEGIN")
		return nil
	}
	if err := p.name(ctx, id); err != nil {
		return err
	}
	p.enqueue("BEGIN")
	p.enqueue("SELECT fence($1)", id)
	return nil
}

// session is a session of PostgreSQL.
type session struct {
	pid   int64
	began time.Time
}

// awaitOutcome waits until a session that was lost during its commit has ended the transaction, which it may do later: a commit waits
// for the standby even if nobody waits for its response. What is written next must see what it wrote.
func (p *postgres) awaitOutcome(ctx context.Context) error {
	for p.doubt != (session{}) {
		var runs bool
		err := p.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2 AND state <> 'idle')`,
			p.doubt.pid, p.doubt.began).Scan(&runs)
		if err != nil {
			return err
		}
		if !runs {
			p.doubt = session{}
			return nil
		}
		select {
		case <-ctx.Done():
			return unavailable(errors.New("the outcome of the last commit is not known yet"))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// SessionName is SQL for the application_name of the sessions in which a node writes. A node of another installation in the same
// database may have its id, but not its table.
func SessionName(node string) string {
	return `'parley-' || 'node'::regclass::oid || '-' || ` + node + `::bigint`
}

// name names the session for a node, so that other nodes find and end it. It is no part of a transaction: a rollback would undo it.
func (p *postgres) name(ctx context.Context, id int64) error {
	if id == p.named {
		return nil
	}
	_, err := p.conn.Exec(ctx, "SELECT set_config('application_name', "+SessionName("$1")+", false)", id)
	if err == nil {
		p.named = id
	}
	return err
}

// checkMember reports an error that says that the node is no longer a member.
func (p *postgres) checkMember(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == notMember && p.member != nil {
		p.member.Lost(p.named)
	}
	return err
}

// notMember is the error code of the function fence.
const notMember = "PF001"

func (p *postgres) control(statement string) error {
	if strings.HasPrefix(statement, "ROLLBACK") {
		return p.rollback(statement)
	}
	return p.finish(statement)
}

// rollback drops the statements that wait, and the transaction or a part of it.
func (p *postgres) rollback(statement string) error {
	if n := p.mark; n > 0 && strings.HasPrefix(statement, "ROLLBACK TO") {
		p.queue.QueuedQueries, p.from, p.many, p.checks = p.queue.QueuedQueries[:n], p.from[:n], nil, false
		return nil
	}
	p.takeQueue()
	if !p.sent { // not even BEGIN
		return nil
	}
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
	p.enqueue(statement)
	if statement != "COMMIT" { // it is sent with the next one
		if strings.HasPrefix(statement, "SAVEPOINT") {
			p.mark = p.queue.Len()
		}
		return nil
	}
	err := p.flush()
	if p.conn.IsClosed() {
		p.doubt = p.own
	}
	if err == nil && p.warned {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		p.conn.Close(ctx)
		err = unavailable(errors.New("the commit was not confirmed by the standby"))
	}
	return err
}

func (p *postgres) exec(query string, args []any) (changed int64, err error) {
	values, err := arguments(args)
	if err != nil {
		return 0, err
	}
	p.enqueue(query, values...)
	results, end, err := p.send(1)
	if err != nil {
		return 0, err
	}
	defer end()
	result, err := results.Exec()
	return result.RowsAffected(), err
}

// insert adds a row and returns the key that the database chose; zero: there was a conflict.
func (p *postgres) insert(query string, args []any) (key int64, err error) {
	if query, err = p.returning(query); err != nil {
		return 0, err
	}
	err = p.queryRow(query, args, []any{&key})
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return key, err
}

// returning makes an INSERT return the key that the database chooses.
func (p *postgres) returning(query string) (string, error) {
	table := insertInto.FindStringSubmatch(query)
	if table == nil || p.keys[table[1]] == "" {
		return "", fmt.Errorf("no key is chosen by the database: %s", query)
	}
	return query + ` RETURNING ` + p.keys[table[1]], nil
}

var insertInto = regexp.MustCompile(`^\s*INSERT INTO (\w+)`)

func (p *postgres) queryRow(query string, args, into []any) error {
	return postgresRow(p, query, args, into)
}

// postgresRow reads one row.
func postgresRow(from engine, query string, args, into []any) error {
	rows, err := from.query(query, args)
	if err != nil {
		return err
	}
	defer rows.close()
	more, err := rows.next()
	if err != nil {
		return err
	}
	if !more {
		return sql.ErrNoRows
	}
	if err := rows.scan(into); err != nil {
		return err
	}
	return rows.close()
}

func (p *postgres) query(query string, args []any) (rows, error) {
	values, err := arguments(args)
	if err != nil {
		return nil, err
	}
	p.enqueue(query, values...)
	results, end, err := p.send(1)
	if err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		end()
		return nil, err
	}
	return &postgresRows{rows: rows, end: end}, nil
}

func (p *postgres) close() error {
	if p.conn == nil {
		return nil
	}
	return p.conn.Close(context.Background())
}

// postgresTexts are statements as PostgreSQL reads them, by how they are written. The differences are few: it chooses indexes by itself.
type postgresTexts struct{ all sync.Map }

func (p *postgresTexts) text(query string) string {
	if known, ok := p.all.Load(query); ok {
		return known.(string)
	}
	text := indexedBy.ReplaceAllString(query, "")
	p.all.Store(query, text)
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
