package keystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/types"

	"parley"
)

// Channel is what is kept of a channel.
type Channel struct {
	JID types.JID // its device; empty: it has none
	// Why it has none: the status to show and a sentence. Empty where it never had one.
	Status parley.ChannelStatus
	Reason string
}

// Channel reads what is kept of a channel; nothing is kept of a new one.
func (s *Store) Channel(ctx context.Context, code parley.ChannelCode) (Channel, error) {
	var jid string
	var c Channel
	err := s.db.Read(ctx).QueryRow(`SELECT jid, status, reason FROM channels WHERE code = $1`, []any{string(code)}, &jid, &c.Status, &c.Reason)
	if errors.Is(err, sql.ErrNoRows) {
		return Channel{}, nil
	}
	if err != nil {
		return Channel{}, fmt.Errorf("read channel %s: %w", code, err)
	}
	if jid == "" {
		return c, nil
	}
	if c.JID, err = types.ParseJID(jid); err != nil {
		return Channel{}, fmt.Errorf("read the device of channel %s: %w", code, err)
	}
	return c, nil
}

// PutChannel keeps what is known of a channel.
func (s *Store) PutChannel(ctx context.Context, code parley.ChannelCode, c Channel) error {
	jid := ""
	if !c.JID.IsEmpty() {
		jid = c.JID.String()
	}
	return s.exec(ctx, fmt.Sprintf("keep channel %s", code), `INSERT INTO channels (code, jid, status, reason) VALUES ($1, $2, $3, $4)
		ON CONFLICT (code) DO UPDATE SET jid = excluded.jid, status = excluded.status, reason = excluded.reason`,
		string(code), jid, string(c.Status), c.Reason)
}

// ForgetChannel removes what is kept of a channel. Its device is removed with Forget.
func (s *Store) ForgetChannel(ctx context.Context, code parley.ChannelCode) error {
	return s.exec(ctx, fmt.Sprintf("forget channel %s", code), `DELETE FROM channels WHERE code = $1`, string(code))
}
