package store

import (
	"context"
	"time"

	"parley"
)

// RemoteSend is what is known of a message before it is sent on a network that assigns ids of its own.
type RemoteSend struct {
	Remote    string    // the network's id; empty: it did not confirm the message
	AttemptAt time.Time // when it may have left; zero: it did not, or the outcome is known
}

// RemoteMessage is a message as the network names it.
type RemoteMessage struct {
	ID      parley.MessageID
	Contact parley.ContactID
	FromMe  bool
}

// RemoteContact is what such a network said of a contact.
type RemoteContact struct {
	Contact   parley.ContactID
	UserID    string // of somebody who may hide the number; empty: not known
	Username  string
	Name      string
	Inbound   string    // the network's id of the newest message that came
	InboundAt time.Time // zero: none did
	AbsentAt  time.Time // when the network could not reach the contact; zero: it did not say so since the last message
}

// RemoteSend reads what is known of a message of a channel.
func (r Reader) RemoteSend(ctx context.Context, channel parley.ChannelCode, id parley.MessageID) (s RemoteSend, err error) {
	var at int64
	err = r.with(ctx).row(`SELECT coalesce((SELECT min(remote) FROM remote_message WHERE `+ofChannel+` AND message = $2), ''),
		coalesce((SELECT at FROM remote_attempt WHERE `+ofChannel+` AND message = $2), 0)`, []any{string(channel), string(id)}, &s.Remote, &at)
	s.AttemptAt = moment(at)
	return s, err
}

// BeginRemoteSend stores that a message may leave from now on. If it may have left before and is not to be sent again, it stores nothing
// and returns [parley.ErrExists].
func (t *Tx) BeginRemoteSend(_ context.Context, channel parley.ChannelCode, id parley.MessageID, to parley.ContactID, at time.Time,
	again bool) error {
	number, err := t.channelID(channel)
	if err != nil {
		return err
	}
	args := []any{number, string(id), string(to), millis(at)}
	if again {
		return t.exec(`INSERT INTO remote_attempt (channel, message, contact, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (channel, message) DO UPDATE SET at = excluded.at`, args...)
	}
	return t.add(`INSERT INTO remote_attempt (channel, message, contact, at) SELECT $1, $2, $3, $4
		WHERE NOT EXISTS (SELECT 1 FROM remote_message WHERE channel = $1 AND message = $2)
		ON CONFLICT (channel, message) DO NOTHING`, args...)
}

// EndRemoteSend stores the outcome of a message: the network's id, or that it did not leave if that is empty. It returns how many
// copies the network confirmed; zero: this one was known.
func (t *Tx) EndRemoteSend(_ context.Context, channel parley.ChannelCode, id parley.MessageID, to parley.ContactID, remote string) (
	copies int, err error) {
	number, err := t.channelID(channel)
	if err != nil {
		return 0, err
	}
	if err := t.exec(`DELETE FROM remote_attempt WHERE channel = $1 AND message = $2`, number, string(id)); err != nil || remote == "" {
		return 0, err
	}
	if err := t.addRemoteMessage(number, remote, RemoteMessage{id, to, true}); err == parley.ErrExists {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	return copies, t.row(`SELECT count(*) FROM remote_message WHERE channel = $1 AND message = $2`, []any{number, string(id)}, &copies)
}

func (t *Tx) addRemoteMessage(channel int64, remote string, m RemoteMessage) error {
	return t.add(`INSERT INTO remote_message (channel, remote, message, contact, from_me) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		channel, remote, string(m.ID), string(m.Contact), flag(m.FromMe))
}

// RemoteAttempt finds the contact of a message whose outcome is not known.
func (r Reader) RemoteAttempt(ctx context.Context, channel parley.ChannelCode, id parley.MessageID) (to parley.ContactID, err error) {
	err = r.with(ctx).row(`SELECT contact FROM remote_attempt WHERE `+ofChannel+` AND message = $2`, []any{string(channel), string(id)}, &to)
	return to, err
}

// RemoteMessage finds a message by the network's id.
func (r Reader) RemoteMessage(ctx context.Context, channel parley.ChannelCode, remote string) (m RemoteMessage, err error) {
	err = r.with(ctx).row(`SELECT message, contact, from_me FROM remote_message WHERE `+ofChannel+` AND remote = $2`,
		[]any{string(channel), remote}, &m.ID, &m.Contact, &m.FromMe)
	return m, err
}

// AddRemoteInbound stores the network's id of a message that came, and what it says of the contact. Empty fields change nothing. A user
// whose number became known has one row, that of the number.
func (t *Tx) AddRemoteInbound(_ context.Context, channel parley.ChannelCode, id parley.MessageID, c RemoteContact) error {
	number, err := t.channelID(channel)
	if err != nil {
		return err
	}
	if err := t.addRemoteMessage(number, c.Inbound, RemoteMessage{ID: id, Contact: c.Contact}); err != nil && err != parley.ErrExists {
		return err
	}
	if c.UserID != "" {
		if err := t.exec(`DELETE FROM remote_contact WHERE channel = $1 AND user_id = $2 AND user_id <> '' AND contact <> $3`,
			number, c.UserID, string(c.Contact)); err != nil {
			return err
		}
	}
	const other = ` = CASE WHEN excluded.`
	return t.exec(`INSERT INTO remote_contact (channel, contact, user_id, username, name, inbound, inbound_at, absent_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT (channel, contact) DO UPDATE SET absent_at = 0,
		user_id`+other+`user_id <> '' THEN excluded.user_id ELSE remote_contact.user_id END,
		username`+other+`username <> '' THEN excluded.username ELSE remote_contact.username END,
		name`+other+`name <> '' THEN excluded.name ELSE remote_contact.name END,
		inbound`+other+`inbound_at >= remote_contact.inbound_at THEN excluded.inbound ELSE remote_contact.inbound END,
		inbound_at`+other+`inbound_at >= remote_contact.inbound_at THEN excluded.inbound_at ELSE remote_contact.inbound_at END`,
		number, string(c.Contact), c.UserID, c.Username, c.Name, c.Inbound, millis(c.InboundAt))
}

// ReplaceRemoteUser stores that the network has another id for a user, who is a contact from now on; empty: nobody knows which.
func (t *Tx) ReplaceRemoteUser(_ context.Context, channel parley.ChannelCode, previous, current string, contact parley.ContactID) error {
	number, err := t.channelID(channel)
	if err != nil {
		return err
	}
	err = t.exec(`UPDATE remote_contact SET user_id = '' WHERE channel = $1 AND user_id IN ($2, $3) AND user_id <> ''`,
		number, previous, current)
	if err != nil || contact == "" {
		return err
	}
	return t.exec(`INSERT INTO remote_contact (channel, contact, user_id, username, name, inbound, inbound_at, absent_at)
		VALUES ($1, $2, $3, '', '', '', 0, 0) ON CONFLICT (channel, contact) DO UPDATE SET user_id = excluded.user_id`,
		number, string(contact), current)
}

// SetRemoteAbsent stores that the network could not reach a contact.
func (t *Tx) SetRemoteAbsent(_ context.Context, channel parley.ChannelCode, contact parley.ContactID, at time.Time) error {
	number, err := t.channelID(channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO remote_contact (channel, contact, user_id, username, name, inbound, inbound_at, absent_at)
		VALUES ($1, $2, '', '', '', '', 0, $3) ON CONFLICT (channel, contact) DO UPDATE SET absent_at = excluded.absent_at`,
		number, string(contact), millis(at))
}

const remoteContacts = `SELECT contact, user_id, username, name, inbound, inbound_at, absent_at FROM remote_contact WHERE ` + ofChannel

func scanRemoteContact(row scanner) (c RemoteContact, err error) {
	var inbound, absent int64
	err = row.Scan(&c.Contact, &c.UserID, &c.Username, &c.Name, &c.Inbound, &inbound, &absent)
	c.InboundAt, c.AbsentAt = moment(inbound), moment(absent)
	return c, err
}

// RemoteContact reads what is known of a contact, RemoteUser the same by the network's id of it.
func (r Reader) RemoteContact(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (RemoteContact, error) {
	return one(r.with(ctx), remoteContacts+` AND contact = $2`, []any{string(channel), string(contact)}, scanRemoteContact)
}

func (r Reader) RemoteUser(ctx context.Context, channel parley.ChannelCode, userID string) (RemoteContact, error) {
	return one(r.with(ctx), remoteContacts+` AND user_id = $2 AND user_id <> ''`, []any{string(channel), userID}, scanRemoteContact)
}

// RemoteContacts lists those who wrote to a channel by name and contact, and how many there are.
func (r Reader) RemoteContacts(ctx context.Context, channel parley.ChannelCode, page parley.Page) (
	some []RemoteContact, total int64, err error) {
	r = r.with(ctx)
	some, err = list(r, remoteContacts+` AND inbound_at > 0 ORDER BY name, contact LIMIT $2 OFFSET $3`,
		[]any{string(channel), int64(page.Limit), page.Offset}, scanRemoteContact)
	if err == nil {
		err = r.row(`SELECT count(*) FROM remote_contact WHERE `+ofChannel+` AND inbound_at > 0`, []any{string(channel)}, &total)
	}
	return some, total, err
}

// CountStarted counts the contacts of a channel whose chats got something since a time, and that did not write since then.
func (r Reader) CountStarted(ctx context.Context, channel parley.ChannelCode, since time.Time) (n int64, err error) {
	return n, r.with(ctx).row(`SELECT count(*) FROM chat WHERE `+ofChannel+` AND last_at >= $2 AND contact LIKE '%@c.us' AND coalesce(
		(SELECT inbound_at FROM remote_contact WHERE remote_contact.channel = chat.channel AND remote_contact.contact = chat.contact), 0) < $3`,
		[]any{string(channel), startOfMinute(millis(since)), millis(since)}, &n)
}

// RemoteFile finds the network's id of an uploaded file that is there at a time; empty: it must be uploaded.
func (r Reader) RemoteFile(ctx context.Context, channel parley.ChannelCode, sha256 []byte, at time.Time) (remote string, err error) {
	return remote, r.with(ctx).optional(`SELECT remote FROM remote_file WHERE `+ofChannel+` AND sha256 = $2 AND until > $3`,
		[]any{string(channel), sha256, millis(at)}, &remote)
}

// SetRemoteFile stores the network's id of an uploaded file.
func (t *Tx) SetRemoteFile(_ context.Context, channel parley.ChannelCode, sha256 []byte, remote string, until time.Time) error {
	number, err := t.channelID(channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO remote_file (channel, sha256, remote, until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (channel, sha256) DO UPDATE SET remote = excluded.remote, until = excluded.until`, number, sha256, remote, millis(until))
}
