package whatsapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"parley"
)

// connections is how many the pool has: enough that readers do not wait for a writer, few enough that
// writers, who wait for each other inside SQLite, are always served within the busy timeout.
const connections = 4

const busyTimeout = 20_000 // milliseconds

// database holds the keys of all devices, and which channel has which device.
type database struct {
	sql       *sql.DB
	container *sqlstore.Container
}

// openDatabase opens the file, which nothing else may write, and checks what our promises rest on. A commit
// must survive a power cut: a Signal session that falls back to an earlier state encrypts the next message
// with a key that was used before, and the recipient takes it for a copy and shows nothing.
func openDatabase(ctx context.Context, path string, log *logger) (*database, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout),
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)", "journal_size_limit(67108864)",
	}}
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	db := &database{sql: pool, container: sqlstore.NewWithDB(pool, "sqlite", log)}
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db, nil
}

func (db *database) prepare(ctx context.Context) error {
	for pragma, want := range map[string]string{"busy_timeout": fmt.Sprint(busyTimeout), "journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		if err := db.sql.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&got); err != nil {
			return fmt.Errorf("read %s: %w", pragma, err)
		}
		if got != want {
			return fmt.Errorf("%s is %s, not %s", pragma, got, want)
		}
	}
	if err := db.container.Upgrade(ctx); err != nil {
		return fmt.Errorf("prepare the tables of devices: %w", err)
	}
	_, err := db.sql.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS parley_channels (
		channel TEXT PRIMARY KEY, jid TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL)`)
	if err != nil {
		return fmt.Errorf("prepare the table of channels: %w", err)
	}
	return nil
}

// record is what is kept of a channel.
type record struct {
	jid types.JID // its device; empty: it has none
	// Why it has none: the status to show and a sentence. Empty where it never had one.
	status parley.ChannelStatus
	reason string
}

// record reads what is kept of a channel; nothing is kept of a new one.
func (db *database) record(ctx context.Context, code parley.ChannelCode) (record, error) {
	var jid string
	var rec record
	err := db.sql.QueryRowContext(ctx, `SELECT jid, status, reason FROM parley_channels WHERE channel = $1`, string(code)).Scan(&jid, &rec.status, &rec.reason)
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read channel %s: %w", code, err)
	}
	if jid == "" {
		return rec, nil
	}
	if rec.jid, err = types.ParseJID(jid); err != nil {
		return record{}, fmt.Errorf("read the device of channel %s: %w", code, err)
	}
	return rec, nil
}

func (db *database) setRecord(ctx context.Context, code parley.ChannelCode, rec record) error {
	jid := ""
	if !rec.jid.IsEmpty() {
		jid = rec.jid.String()
	}
	_, err := db.sql.ExecContext(ctx, `INSERT INTO parley_channels (channel, jid, status, reason) VALUES ($1, $2, $3, $4)
		ON CONFLICT (channel) DO UPDATE SET jid = excluded.jid, status = excluded.status, reason = excluded.reason`,
		string(code), jid, string(rec.status), rec.reason)
	if err != nil {
		return fmt.Errorf("keep channel %s: %w", code, err)
	}
	return nil
}

// forget removes a channel with its device.
func (db *database) forget(ctx context.Context, code parley.ChannelCode) error {
	rec, err := db.record(ctx, code)
	if err != nil {
		return err
	}
	if err := db.deleteDevice(ctx, rec.jid); err != nil {
		return err
	}
	if _, err := db.sql.ExecContext(ctx, `DELETE FROM parley_channels WHERE channel = $1`, string(code)); err != nil {
		return fmt.Errorf("forget channel %s: %w", code, err)
	}
	return nil
}

// deleteDevice removes the keys of a device. One that is not there is no error.
func (db *database) deleteDevice(ctx context.Context, jid types.JID) error {
	if jid.IsEmpty() {
		return nil
	}
	device, err := db.container.GetDevice(ctx, jid)
	if err != nil {
		return fmt.Errorf("find a device: %w", err)
	}
	if device == nil {
		return nil
	}
	if err := device.Delete(ctx); err != nil {
		return fmt.Errorf("remove a device: %w", err)
	}
	return nil
}

func (db *database) close() error { return db.sql.Close() }
