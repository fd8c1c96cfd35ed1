package whatsapp

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network/whatsapp/keystore"
)

// keepTimeout bounds keeping what must be kept although the session is being closed.
const keepTimeout = 20 * time.Second

// database holds the keys of all devices, and which channel has which device.
type database struct{ keys *keystore.Store }

func openDatabase(ctx context.Context, path string, log *logger) (*database, error) {
	keys, err := keystore.Open(ctx, path, log)
	if err != nil {
		return nil, err
	}
	return &database{keys}, nil
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
	c, err := db.keys.Channel(ctx, code)
	return record{c.JID, c.Status, c.Reason}, err
}

func (db *database) setRecord(ctx context.Context, code parley.ChannelCode, rec record) error {
	return db.keys.PutChannel(ctx, code, keystore.Channel{JID: rec.jid, Status: rec.status, Reason: rec.reason})
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
	return db.keys.ForgetChannel(ctx, code)
}

// deleteDevice removes the keys of a device. One that is not there is no error.
func (db *database) deleteDevice(ctx context.Context, jid types.JID) error {
	if jid.IsEmpty() {
		return nil
	}
	return db.keys.Forget(ctx, jid)
}

func (db *database) close() error { return db.keys.Close() }
