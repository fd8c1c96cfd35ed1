package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network/whatsapp/keystore"
	"parley/internal/store/sqldb"
)

// persistTimeout bounds writes that must happen even while the session is closing.
const persistTimeout = 20 * time.Second

// database holds the keys of all devices, and which channel has which device.
type database struct{ keys *keystore.Store }

func openDatabase(ctx context.Context, path string, member *sqldb.Member, log *logger) (*database, error) {
	keys, err := keystore.Open(ctx, path, member, log)
	if err != nil {
		return nil, err
	}
	return &database{keys}, nil
}

// channelDevice is the stored device of a channel.
type channelDevice struct {
	jid types.JID // empty: not paired
	// Why the channel is not paired: the status and the sentence to show. Empty if it never was.
	status parley.ChannelStatus
	reason string
}

func (db *database) channel(ctx context.Context, code parley.ChannelCode) (channelDevice, error) {
	c, err := db.keys.Channel(ctx, code)
	return channelDevice{c.JID, c.Status, c.Reason}, err
}

func (db *database) setChannel(ctx context.Context, code parley.ChannelCode, rec channelDevice) error {
	return db.keys.PutChannel(ctx, code, keystore.Channel{JID: rec.jid, Status: rec.status, Reason: rec.reason})
}

// deleteChannel removes a channel with its device.
func (db *database) deleteChannel(ctx context.Context, code parley.ChannelCode) error {
	rec, err := db.channel(ctx, code)
	if err != nil {
		return err
	}
	if err := db.deleteDevice(ctx, rec.jid); err != nil {
		return err
	}
	return db.keys.DeleteChannel(ctx, code)
}

// deleteDevice removes the keys of a device. An unknown device is not an error.
func (db *database) deleteDevice(ctx context.Context, jid types.JID) error {
	if jid.IsEmpty() {
		return nil
	}
	return db.keys.RemoveDevice(ctx, jid)
}

func (db *database) close() error { return db.keys.Close() }

// PrepareRestored deletes the Signal sessions of a restored database. Old sessions would encrypt with keys that were
// used since the backup, and recipients would drop those messages as duplicates. The next message starts new sessions.
func PrepareRestored(ctx context.Context, path string, log *slog.Logger) error {
	db, err := openDatabase(ctx, path, nil, newLogger(log, ""))
	if err != nil {
		return fmt.Errorf("open the keys of linked devices: %w", err)
	}
	return errors.Join(db.keys.DeleteSessions(ctx), db.close())
}
