package store

import (
	"context"
	"encoding/json"
	"fmt"

	"parley"
)

const channelColumns = `code, id, name, network, number, phone_name, enabled, settings, created_at, status, reason, since, working_at, account_from, lasting_status, lasting_since`

// Channels lists all channels by code.
func (r reader) Channels(ctx context.Context) ([]parley.Channel, error) {
	r = r.with(ctx)
	return list(r, `SELECT `+channelColumns+` FROM channel ORDER BY code`, nil, scanChannel)
}

// Channel finds a channel.
func (r reader) Channel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
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
func (t *tx) AddChannel(_ context.Context, c parley.Channel) error {
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	err = t.add(`INSERT INTO channel (`+channelColumns+`)
		VALUES ($1, (SELECT counter + 1 FROM revision), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14) ON CONFLICT DO NOTHING`,
		string(c.Code), c.Name, string(c.Network), c.Number, c.PhoneName, flag(c.Enabled), string(settings), millis(c.CreatedAt),
		string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt),
		string(c.LastingStatus), millis(c.LastingSince))
	if err != nil {
		return err
	}
	return t.revise()
}

// CheckChannel makes sure that a channel is there. It is asked for every message, so ids are cached.
func (t *tx) CheckChannel(_ context.Context, code parley.ChannelCode, id int64) error {
	cache, err := t.remember()
	if err != nil {
		return err
	}
	known, ok := cache.channels[code]
	if !ok {
		if err := t.row(`SELECT id FROM channel WHERE code = $1`, []any{string(code)}, &known); err != nil {
			return err
		}
		t.OnCommit(func() { cache.channels[code] = known })
	}
	if id != 0 && id != known {
		return parley.ErrNotFound
	}
	return nil
}

// UpdateChannel stores what an operator can change of a channel.
func (t *tx) UpdateChannel(_ context.Context, c parley.Channel) error {
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
func (t *tx) SetChannelState(_ context.Context, c parley.Channel) error {
	return t.change(`UPDATE channel SET number = $1, phone_name = $2, status = $3, reason = $4, since = $5, working_at = $6,
		lasting_status = $8, lasting_since = $9, account_from = CASE WHEN number IN ('', $1) THEN account_from ELSE (SELECT coalesce(max(seq), 0) FROM message) END WHERE code = $7`,
		c.Number, c.PhoneName, string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt), string(c.Code),
		string(c.LastingStatus), millis(c.LastingSince))
}

// DeleteChannel removes a channel with all that is its own.
func (t *tx) DeleteChannel(ctx context.Context, code parley.ChannelCode) ([]parley.Media, error) {
	if err := t.change(`DELETE FROM channel WHERE code = $1`, string(code)); err != nil {
		return nil, err
	}
	if err := t.keepPlace(); err != nil {
		return nil, err
	}
	t.deleted = append(t.deleted, code)
	for _, own := range []string{
		`DELETE FROM token WHERE channel = $1`,
		`DELETE FROM ticket WHERE channel = $1`,
		`DELETE FROM answer WHERE channel = $1`,
		`DELETE FROM event WHERE channel = $1`,
		`DELETE FROM channel_state WHERE channel = $1`,
	} {
		if _, err := t.Exec(own, string(code)); err != nil {
			return nil, err
		}
	}
	if err := t.deleteCallbacks(ctx, code); err != nil {
		return nil, err
	}
	return t.ClearChannel(ctx, code)
}

// ClearChannel removes all messages, codes and links of a channel.
func (t *tx) ClearChannel(_ context.Context, code parley.ChannelCode) ([]parley.Media, error) {
	if err := t.clearOTPs(code); err != nil {
		return nil, err
	}
	if err := t.fileAll(); err != nil {
		return nil, err
	}
	files, err := t.filesOf(code)
	if err != nil {
		return nil, err
	}
	var newest, left int64
	if err := t.row(`SELECT coalesce(max(seq), 0) FROM message`, nil, &newest); err != nil {
		return nil, err
	}
	const chats, messages = `(SELECT id FROM chat WHERE channel = $1)`, `(SELECT seq FROM message JOIN chat ON chat.id = message.chat WHERE chat.channel = $1)`
	for _, own := range []string{
		`DELETE FROM media_fetch WHERE channel = $1`,
		`DELETE FROM resend WHERE seq IN ` + messages,
		`DELETE FROM status WHERE seq IN ` + messages,
		`DELETE FROM failure WHERE seq IN ` + messages,
		`DELETE FROM reaction WHERE seq IN ` + messages,
		`DELETE FROM queue WHERE channel = $1`,
		`DELETE FROM name WHERE seq IN ` + messages,
		`DELETE FROM history WHERE chat IN ` + chats,
		`DELETE FROM message WHERE chat IN ` + chats,
		`DELETE FROM chat WHERE channel = $1`,
	} {
		if _, err := t.Exec(own, string(code)); err != nil {
			return nil, err
		}
	}
	t.db.memory.forget() // at once: others in the same transaction must not use it either
	t.OnCommit(t.db.memory.forget)
	if err := t.revise(); err != nil { // other processes must forget too
		return nil, err
	}
	if err := t.row(`SELECT coalesce(max(seq), 0) FROM message`, nil, &left); err != nil || left == newest {
		return files, err
	}
	// The newest number must not be given to another message: somebody may still mean the old one by
	// it. An empty row keeps it.
	_, err = t.Exec(`INSERT INTO message (seq, channel, chat, id, from_me, kind, reply_to, request, urgent, pool, expires_at, created_at, body)
		VALUES ($1, '', 0, '', 0, '', '', '', 0, '', 0, 0, '')`, newest)
	return files, err
}

// filesOf lists the files that messages of a channel carry.
func (t *tx) filesOf(code parley.ChannelCode) ([]parley.Media, error) {
	rows, err := t.Query(`SELECT kind, data FROM message JOIN chat ON chat.id = message.chat WHERE chat.channel = $1 AND data IS NOT NULL`, string(code))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var files []parley.Media
	for rows.Next() {
		var kind string
		var data []byte
		if err := rows.Scan(&kind, &data); err != nil {
			return nil, err
		}
		content, err := parley.DecodeContent(parley.Kind(kind), "", data)
		if err != nil {
			return nil, err
		}
		if file := parley.MediaOf(content); file != nil && file.Key != "" {
			files = append(files, *file)
		}
	}
	return files, rows.Err()
}

// Revision counts the changes to channels, tokens and keys.
func (r reader) Revision(ctx context.Context) (int64, error) {
	r = r.with(ctx)
	var n int64
	err := r.row(`SELECT counter FROM revision`, nil, &n)
	return n, err
}

func (t *tx) revise() error {
	return t.change(`UPDATE revision SET counter = counter + 1`)
}
