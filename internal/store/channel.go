package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	channelColumns = `code, id, name, network, number, phone_name, enabled, settings, labels, created_at, status, reason,
		since, working_at, account_from, lasting_status, lasting_since, restricted_until, banned_until,
		paired_at, use_day, use_messages, use_firsts`

	// ofChannel is the condition for rows of the channel whose code is the first parameter.
	ofChannel = `channel = (SELECT id FROM channel WHERE code = $1)`
)

// channelIDFrom is SQL for the number of a channel. The argument is SQL for its code.
func channelIDFrom(code string) string { return `(SELECT id FROM channel WHERE code = ` + code + `)` }

// Channels lists all channels by code.
func (r Reader) Channels(ctx context.Context) ([]parley.Channel, error) {
	return list(r.with(ctx), `SELECT `+channelColumns+` FROM channel ORDER BY code`, nil, scanChannel)
}

// Channel finds a channel.
func (r Reader) Channel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	return one(r.with(ctx), `SELECT `+channelColumns+` FROM channel WHERE code = $1`, []any{string(code)}, scanChannel)
}

// ChannelsOf reads those of some channels that exist.
func (r Reader) ChannelsOf(ctx context.Context, codes []parley.ChannelCode) ([]parley.Channel, error) {
	return listIn(r.with(ctx), `SELECT `+channelColumns+` FROM channel WHERE code IN `, ``, nil, texts(codes), scanChannel)
}

// UsedNetworks lists the networks that have channels.
func (r Reader) UsedNetworks(ctx context.Context) ([]parley.NetworkName, error) {
	return list(r.with(ctx), `SELECT DISTINCT network FROM channel`, nil, sqldb.ScanOne[parley.NetworkName])
}

func scanChannel(row scanner) (parley.Channel, error) {
	var c parley.Channel
	var settings, labels []byte
	var created, since, working, lasting, restricted, banned, paired int64
	if err := row.Scan(&c.Code, &c.ID, &c.Name, &c.Network, &c.Number, &c.PhoneName, &c.Enabled, &settings, &labels, &created,
		&c.State.Status, &c.State.Reason, &since, &working, &c.AccountFrom, &c.LastingStatus, &lasting, &restricted, &banned,
		&paired, &c.Use.Day, &c.Use.Messages, &c.Use.Firsts); err != nil {
		return c, err
	}
	if err := json.Unmarshal(settings, &c.Settings); err != nil {
		return c, fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	if err := json.Unmarshal(labels, &c.Labels); err != nil {
		return c, fmt.Errorf("labels of channel %s: %w", c.Code, err)
	}
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	c.CreatedAt, c.State.Since, c.State.WorkingAt, c.LastingSince = moment(created), moment(since), moment(working), moment(lasting)
	c.PairedAt = moment(paired)
	if c.Restricted, c.BannedUntil = restricted != 0, moment(banned); restricted > endUnknown {
		c.RestrictedUntil = moment(restricted)
	}
	return c, nil
}

// AddChannel stores a new channel.
func (t *Tx) AddChannel(_ context.Context, c parley.Channel) error {
	id, err := t.nextNumber()
	if err != nil {
		return err
	}
	return t.addChannel(c, id, 0)
}

func (t *Tx) addChannel(c parley.Channel, id, chats int64) error {
	settings, labels, err := encodeProperties(c)
	if err != nil {
		return err
	}
	return t.revised(ChannelChange, c.Code, t.add(`INSERT INTO channel (`+channelColumns+`, chats)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16, 0, 0, $17, '', 0, 0, $18) ON CONFLICT DO NOTHING`,
		string(c.Code), id, c.Name, string(c.Network), c.Number, c.PhoneName, flag(c.Enabled), settings, labels,
		millis(c.CreatedAt), string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt),
		string(c.LastingStatus), millis(c.LastingSince), millis(c.PairedAt), chats))
}

// encodeProperties returns the settings and the labels of a channel as JSON.
func encodeProperties(c parley.Channel) (settings, labels string, err error) {
	set, err := json.Marshal(c.Settings)
	if err != nil {
		return "", "", fmt.Errorf("settings of channel %s: %w", c.Code, err)
	}
	words, err := json.Marshal(append([]string{}, c.Labels...))
	return string(set), string(words), err
}

// nextNumber returns a number that no channel ever had. It is the revision, which only grows.
func (t *Tx) nextNumber() (id int64, err error) {
	t.channelsChange()
	err = t.row(`UPDATE revision SET counter = counter + 1 RETURNING counter`, nil, &id)
	return id, err
}

// channelID returns the number of a channel.
func (r Reader) channelID(code parley.ChannelCode) (id int64, err error) {
	err = r.row(`SELECT id FROM channel WHERE code = $1`, []any{string(code)}, &id)
	return id, err
}

// channelNumber is channelID with 0 for no channel.
func (t *Tx) channelNumber(code parley.ChannelCode) (int64, error) {
	if code == "" {
		return 0, nil
	}
	return t.channelID(code)
}

// channelID returns the number of a channel. Most transactions use one channel, so the last one is cached.
func (t *Tx) channelID(code parley.ChannelCode) (int64, error) {
	if t.lastCode == code && code != "" {
		return t.lastID, nil
	}
	known := t.db.channels.of(t.sql.Batch)
	id, ok := known.ids[code]
	if !ok {
		var err error
		if id, err = t.Reader.channelID(code); err != nil {
			return 0, err
		}
		known.add(code, id)
	}
	t.lastCode, t.lastID = code, id
	return id, nil
}

// FindChannels looks up the numbers of channels at once, for what follows in the transaction.
func (t *Tx) FindChannels(_ context.Context, codes []parley.ChannelCode) error {
	known := t.db.channels.of(t.sql.Batch)
	var unknown []string
	for _, code := range codes {
		if _, ok := known.ids[code]; !ok && code != "" {
			unknown = append(unknown, string(code))
		}
	}
	slices.Sort(unknown)
	_, err := listIn(t.Reader, `SELECT code, id FROM channel WHERE code IN `, ``, nil, slices.Compact(unknown),
		func(row scanner) (id int64, err error) {
			var code parley.ChannelCode
			if err = row.Scan(&code, &id); err == nil {
				known.add(code, id)
			}
			return id, err
		})
	return err
}

// batchChannels holds the ids of channels that the current transaction looked up: its callers mostly need the same few. Only the
// writer uses it.
type batchChannels struct {
	batch   int64 // the number of the transaction
	ids     map[parley.ChannelCode]int64
	changed bool // ids changed in this transaction, perhaps in a part that is rolled back: nothing is held any more
}

func (c *batchChannels) of(batch int64) *batchChannels {
	if c.batch != batch {
		*c = batchChannels{batch: batch}
	}
	return c
}

func (c *batchChannels) add(code parley.ChannelCode, id int64) {
	if c.changed {
		return
	}
	if c.ids == nil {
		c.ids = map[parley.ChannelCode]int64{}
	}
	c.ids[code] = id
}

// channelsChange is called before the id of a channel changes.
func (t *Tx) channelsChange() {
	*t.db.channels.of(t.sql.Batch) = batchChannels{batch: t.sql.Batch, changed: true}
	t.lastCode = ""
}

// CheckChannel returns [parley.ErrNotFound] unless a channel exists, with that number if one is given.
func (t *Tx) CheckChannel(_ context.Context, code parley.ChannelCode, id int64) error {
	known, err := t.channelID(code)
	if err == nil && id != 0 && id != known {
		err = parley.ErrNotFound
	}
	return err
}

// UpdateChannel stores the properties of a channel that an operator can change.
func (t *Tx) UpdateChannel(_ context.Context, c parley.Channel) error {
	settings, labels, err := encodeProperties(c)
	if err != nil {
		return err
	}
	return t.revised(ChannelChange, c.Code, t.change(
		`UPDATE channel SET name = $1, network = $2, enabled = $3, settings = $4, labels = $5 WHERE code = $6`,
		c.Name, string(c.Network), flag(c.Enabled), settings, labels, string(c.Code)))
}

// SetChannelState stores the state of a channel's connection and account.
func (t *Tx) SetChannelState(_ context.Context, c parley.Channel) error {
	return t.change(`UPDATE channel SET number = $1, phone_name = $2, status = $3, reason = $4, since = $5, working_at = $6,
		lasting_status = $8, lasting_since = $9, paired_at = $10, account_from = CASE WHEN number IN ('', $1) THEN account_from
			ELSE (SELECT coalesce(max(seq), 0) FROM message) END WHERE code = $7`,
		c.Number, c.PhoneName, string(c.State.Status), c.State.Reason, millis(c.State.Since), millis(c.State.WorkingAt), string(c.Code),
		string(c.LastingStatus), millis(c.LastingSince), millis(c.PairedAt))
}

// ChangeAge keeps the age of the number that a channel has, and returns since when it knows another one; now: it does not.
func (t *Tx) ChangeAge(_ context.Context, c parley.Channel, number string, now time.Time) (time.Time, error) {
	var text string
	if err := t.sql.QueryRow(`SELECT ages FROM channel WHERE code = $1`, []any{string(c.Code)}, &text); err != nil {
		return now, err
	}
	ages := map[string]int64{}
	if err := json.Unmarshal([]byte(text), &ages); err != nil {
		return now, fmt.Errorf("ages of the numbers of %s: %w", c.Code, err)
	}
	if since, known := ages[number]; known {
		now = moment(since)
	}
	ages[c.Number] = millis(c.PairedAt)
	updated, err := json.Marshal(ages)
	if err != nil {
		return now, err
	}
	return now, t.change(`UPDATE channel SET ages = $1 WHERE code = $2`, string(updated), string(c.Code))
}

// SetDailyUse stores what left a careful channel.
func (t *Tx) SetDailyUse(_ context.Context, code parley.ChannelCode, use parley.DailyUse) error {
	return t.change(`UPDATE channel SET use_day = $1, use_messages = $2, use_firsts = $3 WHERE code = $4`, use.Day, int64(use.Messages),
		int64(use.Firsts), string(code))
}

// endUnknown is the end of a restriction whose end is not known.
const endUnknown = 1

// SetRestriction stores what the network forbids the account of a channel.
func (t *Tx) SetRestriction(_ context.Context, c parley.Channel) error {
	restricted := int64(0)
	if c.Restricted {
		restricted = max(endUnknown, millis(c.RestrictedUntil))
	}
	return t.change(`UPDATE channel SET restricted_until = $1, banned_until = $2 WHERE code = $3`, restricted, millis(c.BannedUntil),
		string(c.Code))
}

// Revision counts the changes to channels, tokens and keys.
func (r Reader) Revision(ctx context.Context) (n int64, err error) {
	err = r.with(ctx).row(`SELECT counter FROM revision`, nil, &n)
	return n, err
}

// ArchiveChannel gives the messages of a channel to a new one, its archive, and no message of them changes: the archive gets the number
// of the channel, and the channel gets another one. [Tx.PurgeChannels] moves what an archive does not have, such as events, to the new
// number.
func (t *Tx) ArchiveChannel(_ context.Context, code parley.ChannelCode, archive parley.Channel) error {
	var chats int64
	if err := t.row(`SELECT chats FROM channel WHERE code = $1`, []any{string(code)}, &chats); err != nil {
		return err
	}
	from, to, err := t.renumber(code)
	if err != nil {
		return err
	}
	for i := range t.ending.events { // of messages that the same transaction changed
		if e := &t.ending.events[i]; e.channel == from {
			e.channel = to
		}
	}
	return t.revised(ChannelChange, code, t.addChannel(archive, from, chats))
}

// renumber gives a channel another number, which hides the rows with the old one, and schedules their purge. The current status and what
// counts towards the limits of a day stay.
func (t *Tx) renumber(code parley.ChannelCode) (from, to int64, err error) {
	if from, err = t.channelID(code); err != nil {
		return 0, 0, err
	}
	if to, err = t.nextNumber(); err != nil {
		return 0, 0, err
	}
	if err := t.change(`UPDATE channel SET id = $1, chats = 0, use_day = '' WHERE id = $2`, to, from); err != nil {
		return 0, 0, err
	}
	if err := t.execAll([]string{
		`UPDATE channel_state SET channel = $1 WHERE channel = $2 AND seq = (SELECT max(seq) FROM channel_state WHERE channel = $2)`,
		`UPDATE stored_hour SET channel = $1 WHERE channel = $2 AND chat <= 0`,
	}, to, from); err != nil {
		return 0, 0, err
	}
	return from, to, t.retire(from, to)
}
