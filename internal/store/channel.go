package store

import (
	"context"
	"encoding/json"
	"fmt"

	"parley"
)

const channelColumns = `code, id, name, network, number, phone_name, enabled, settings, created_at, status, reason, since, working_at, account_from, lasting_status, lasting_since`

// Channels lists all channels by code.
func (r Reader) Channels(ctx context.Context) ([]parley.Channel, error) {
	r = r.with(ctx)
	return list(r, `SELECT `+channelColumns+` FROM channel ORDER BY code`, nil, scanChannel)
}

// Channel finds a channel.
func (r Reader) Channel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+channelColumns+` FROM channel WHERE code = $1`, []any{string(code)}, scanChannel)
}

func scanChannel(row scanner) (parley.Channel, error) {
	var c parley.Channel
	var settings []byte
	var created, since, working, lasting int64
	if err := row.Scan(&c.Code, &c.ID, &c.Name, &c.Network, &c.Number, &c.PhoneName, &c.Enabled, &settings, &created,
		&c.State.Status, &c.State.Reason, &since, &working, &c.AccountFrom, &c.LastingStatus, &lasting); err != nil {
		return c, err
	}
	if err := json.Unmarshal(settings, &c.Settings); err != nil {
		return c, fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	c.CreatedAt, c.State.Since, c.State.WorkingAt, c.LastingSince = moment(created), moment(since), moment(working), moment(lasting)
	return c, nil
}

// AddChannel stores a new channel.
func (t *Tx) AddChannel(_ context.Context, c parley.Channel) error {
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	id, err := t.nextNumber()
	if err != nil {
		return err
	}
	return t.add(`INSERT INTO channel (`+channelColumns+`, chats)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, $15, 0) ON CONFLICT DO NOTHING`,
		string(c.Code), id, c.Name, string(c.Network), c.Number, c.PhoneName, flag(c.Enabled), string(settings), millis(c.CreatedAt),
		string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt),
		string(c.LastingStatus), millis(c.LastingSince))
}

// nextNumber returns a number that no channel had. Numbers follow the revision, which only grows.
func (t *Tx) nextNumber() (id int64, err error) {
	err = t.row(`UPDATE revision SET counter = counter + 1 RETURNING counter`, nil, &id)
	return id, err
}

// channelID returns the number of a channel.
func (r Reader) channelID(code parley.ChannelCode) (id int64, err error) {
	err = r.row(`SELECT id FROM channel WHERE code = $1`, []any{string(code)}, &id)
	return id, err
}

// channelNumber returns the number of a channel, and 0 for none.
func (r Reader) channelNumber(code parley.ChannelCode) (int64, error) {
	if code == "" {
		return 0, nil
	}
	return r.channelID(code)
}

// channelID returns the number of a channel. A transaction mostly works on one, so it remembers the last.
func (t *Tx) channelID(code parley.ChannelCode) (int64, error) {
	if t.lastCode == code && code != "" {
		return t.lastID, nil
	}
	id, err := t.Reader.channelID(code)
	if err == nil {
		t.lastCode, t.lastID = code, id
	}
	return id, err
}

// CheckChannel makes sure that a channel is there.
func (t *Tx) CheckChannel(_ context.Context, code parley.ChannelCode, id int64) error {
	known, err := t.channelID(code)
	if err == nil && id != 0 && id != known {
		err = parley.ErrNotFound
	}
	return err
}

// UpdateChannel stores what an operator can change of a channel.
func (t *Tx) UpdateChannel(_ context.Context, c parley.Channel) error {
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	if err := t.change(`UPDATE channel SET name = $1, network = $2, enabled = $3, settings = $4 WHERE code = $5`,
		c.Name, string(c.Network), flag(c.Enabled), string(settings), string(c.Code)); err != nil {
		return err
	}
	return t.revise()
}

// SetChannelState stores what was seen of a channel's connection and account.
func (t *Tx) SetChannelState(_ context.Context, c parley.Channel) error {
	return t.change(`UPDATE channel SET number = $1, phone_name = $2, status = $3, reason = $4, since = $5, working_at = $6,
		lasting_status = $8, lasting_since = $9, account_from = CASE WHEN number IN ('', $1) THEN account_from ELSE (SELECT coalesce(max(seq), 0) FROM message) END WHERE code = $7`,
		c.Number, c.PhoneName, string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt), string(c.Code),
		string(c.LastingStatus), millis(c.LastingSince))
}

// Revision counts the changes to channels, tokens and keys.
func (r Reader) Revision(ctx context.Context) (int64, error) {
	r = r.with(ctx)
	var n int64
	err := r.row(`SELECT counter FROM revision`, nil, &n)
	return n, err
}

func (t *Tx) revise() error {
	return t.change(`UPDATE revision SET counter = counter + 1`)
}
