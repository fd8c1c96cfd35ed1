package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/internal/store/sqldb"
)

// RenewedAt is when the node renewed its membership last.
func (n Node) RenewedAt() time.Time { return n.ExpiresAt.Add(-lease) }

// Inspection is the state of a database and its nodes.
type Inspection struct {
	Version          string // of PostgreSQL
	Size             int64
	Commit, Standbys string        // synchronous_commit, synchronous_standby_names
	Ahead            time.Duration // how far the clock of this machine is ahead of the database's
	Exposure         sqldb.Exposure
	KeyPrint         []byte // nil: no node has joined yet
	Nodes            []Node // by id; Self is not set
}

// Inspect reads the state of a database in a session of its own. It changes nothing.
func Inspect(ctx context.Context, database string) (i Inspection, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callLimit)
	defer cancel()
	conn, err := sqldb.ConnectPostgres(ctx, database)
	if err != nil {
		return i, err
	}
	defer conn.Close(context.Background())
	i.Exposure = sqldb.NewExposure(conn)
	var now time.Time
	var exists bool
	began := time.Now()
	err = conn.QueryRow(ctx, `SELECT clock_timestamp(), split_part(current_setting('server_version'), ' ', 1),
		pg_database_size(current_database()), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
		to_regclass('cluster') IS NOT NULL`).
		Scan(&now, &i.Version, &i.Size, &i.Commit, &i.Standbys, &exists)
	if err != nil {
		return i, fmt.Errorf("inspect the database: %w", err)
	}
	i.Ahead = began.Add(time.Since(began) / 2).Sub(now)
	if !exists {
		return i, nil
	}
	if i.KeyPrint, err = StoredKeyPrint(ctx, database); err != nil {
		return i, err
	}
	rows, err := conn.Query(ctx, `SELECT id, url, version, draining, started_at, expires_at,
		(SELECT count(*) FROM shard WHERE shard.node = node.id) FROM node ORDER BY id`)
	if err != nil {
		return i, fmt.Errorf("list the nodes: %w", err)
	}
	i.Nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Node, err error) {
		err = row.Scan(&n.ID, &n.URL, &n.Version, &n.Draining, &n.StartedAt, &n.ExpiresAt, &n.Shards)
		return n, err
	})
	return i, err
}

// StoredKeyPrint reads the fingerprint of the secret key that a database was made with; nil: there is no cluster yet.
func StoredKeyPrint(ctx context.Context, database string) (print []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callLimit)
	defer cancel()
	conn, err := sqldb.ConnectPostgres(ctx, database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	var exists bool
	simple := pgx.QueryExecModeSimpleProtocol // also behind a pooler, which is refused later
	if err := conn.QueryRow(ctx, `SELECT to_regclass('cluster') IS NOT NULL`, simple).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	err = conn.QueryRow(ctx, `SELECT key_print FROM cluster`, simple).Scan(&print)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return print, err
}

// RunningNodes reads the nodes that run now, with their keys.
func RunningNodes(ctx context.Context, database string) (nodes []Node, err error) {
	err = withConn(ctx, database, func(ctx context.Context, conn *pgx.Conn) error {
		nodes, err = runningNodes(ctx, conn)
		return err
	})
	return nodes, err
}

func runningNodes(ctx context.Context, conn *pgx.Conn) ([]Node, error) {
	rows, err := conn.Query(ctx, `SELECT id, url, keys, started_at FROM node WHERE expires_at > now() AND cardinality(keys) > 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the nodes: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Node, err error) {
		err = row.Scan(&n.ID, &n.URL, &n.Keys, &n.StartedAt)
		return n, err
	})
}

// SetKeyPrint stores the fingerprint of the secret key that replaced the one that the database was made with.
func SetKeyPrint(ctx context.Context, database string, print []byte) error {
	return withConn(ctx, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE cluster SET key_print = $1`, print)
		return err
	})
}

// withConn runs do in a session of its own.
func withConn(ctx context.Context, database string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*callLimit)
	defer cancel()
	conn, err := sqldb.ConnectPostgres(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return do(ctx, conn)
}
