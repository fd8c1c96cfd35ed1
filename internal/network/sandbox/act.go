package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// Outgoing is what a phone sends to the channel.
type Outgoing struct {
	// Content is a text, image, video, file, voice or location. What it says of its media (name, type,
	// seconds) is kept; what is left out is taken from the bytes.
	Content parley.Content
	Media   []byte // the bytes of the file that Content carries
	ReplyTo string // the id of a message in the chat, full or bare; empty: no reply
}

// SendAs has a phone send a message. It is kept until the channel took it: a phone that is offline
// sends it when it is online again.
func (n *Network) SendAs(ctx context.Context, channel parley.ChannelCode, number string, o Outgoing) (Message, error) {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return Message{}, err
	}
	content, err := describe(o)
	if err != nil {
		return Message{}, err
	}
	var replyTo parley.MessageID
	if o.ReplyTo != "" {
		target, err := n.target(ctx, p, "reply_to", o.ReplyTo)
		if err != nil {
			return Message{}, err
		}
		replyTo = target.ID.ID
	}
	said := saying{id: newPhoneMessageID(), content: content, replyTo: replyTo, media: o.Media, at: time.Now()}
	var seq int64
	err = n.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		seq, err = w.say(tx, p, said)
		return err
	})
	if err != nil {
		return Message{}, fmt.Errorf("send as phone: %w", err)
	}
	return said.message(p, seq), nil
}

// React has a phone react to a message of the chat; an empty emoji takes the reaction back.
func (n *Network) React(ctx context.Context, channel parley.ChannelCode, number, messageID, emoji string) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	target, err := n.target(ctx, p, "message_id", messageID)
	if err != nil {
		return err
	}
	return n.act(ctx, w, p, parcel{Type: parcelReaction, Target: target.ID.ID, FromMe: target.ID.FromMe, Emoji: emoji},
		`UPDATE messages SET phone_reaction = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4`,
		emoji, p.id, direction(target.ID.FromMe), string(target.ID.ID))
}

// Vote has a phone choose among the options of a poll that the channel sent; no options take the
// choice back.
func (n *Network) Vote(ctx context.Context, channel parley.ChannelCode, number, messageID string, options []string) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	target, err := n.target(ctx, p, "message_id", messageID)
	if err != nil {
		return err
	}
	poll, ok := target.Content.(parley.Poll)
	if !ok || !target.ID.FromMe || target.Status == parley.Deleted {
		return parley.InvalidField("message_id", "message_id must be that of a poll which the channel sent.")
	}
	for i, option := range options {
		if !slices.Contains(poll.Options, option) || slices.Contains(options[:i], option) {
			return parley.InvalidField("options", "options must be different options of the poll.")
		}
	}
	if len(options) > 1 && !poll.Multiple {
		return parley.InvalidField("options", "options must be one option: this poll takes a single answer.")
	}
	votes, err := json.Marshal(options)
	if err != nil {
		return err
	}
	return n.act(ctx, w, p, parcel{Type: parcelVote, Target: target.ID.ID, Options: options},
		`UPDATE messages SET votes = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4`, string(votes), p.id, fromChannel, string(target.ID.ID))
}

// Delete has a phone take back a message that it sent. Doing so twice is no error.
func (n *Network) Delete(ctx context.Context, channel parley.ChannelCode, number, messageID string) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	target, err := n.target(ctx, p, "message_id", messageID)
	if err != nil {
		return err
	}
	if target.ID.FromMe {
		return parley.InvalidField("message_id", "message_id must be that of a message which the phone sent: it cannot take back others.")
	}
	if target.Status == parley.Deleted {
		return nil
	}
	return n.act(ctx, w, p, parcel{Type: parcelDeletion, Target: target.ID.ID},
		deleteMessage, int64(parley.Deleted), "", nil, p.id, fromPhone, string(target.ID.ID))
}

// Read has a phone read one message, or everything that it shows if messageID is empty, and returns
// how many were new to it. A phone that never reads tells nobody, and so it is always none.
func (n *Network) Read(ctx context.Context, channel parley.ChannelCode, number, messageID string) (int, error) {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return 0, err
	}
	if p.behaviour().Reads == Never {
		return 0, nil
	}
	if messageID != "" {
		target, err := n.target(ctx, p, "message_id", messageID)
		if err != nil {
			return 0, err
		}
		if !target.ID.FromMe {
			return 0, parley.InvalidField("message_id", "message_id must be that of a message which the phone received.")
		}
		return n.readOne(ctx, w, p, target)
	}
	return n.readAll(ctx, w, p)
}

func (n *Network) readOne(ctx context.Context, w *world, p *phone, m Message) (int, error) {
	status := parley.Read
	if m.Kind == parley.KindVoice {
		status = parley.Played
	}
	if m.Status == parley.Deleted || m.Status == parley.Read || m.Status == parley.Played {
		return 0, nil
	}
	return 1, n.act(ctx, w, p, parcel{Type: parcelReceipt, IDs: []parley.MessageID{m.ID.ID}, Status: int(status)},
		`UPDATE messages SET status = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4`, int64(status), p.id, fromChannel, string(m.ID.ID))
}

// readAll moves the phone's mark and leaves the receipts for the channel, in one transaction.
func (n *Network) readAll(ctx context.Context, w *world, p *phone) (int, error) {
	var count int
	err := n.writeUnpacked(ctx, func(tx *sqldb.Tx) error {
		unread, err := unread(tx, p)
		count = len(unread)
		if err != nil || count == 0 {
			return err
		}
		last := unread[count-1].seq
		if _, err := tx.Exec(`UPDATE phones SET read = $1 WHERE id = $2`, last, p.id); err != nil {
			return err
		}
		for chunk := range slices.Chunk(unread, maxReceipt) {
			if err := w.post(tx, p, parcel{Type: parcelReceipt, IDs: ids(chunk), Status: int(parley.Read)}); err != nil {
				return err
			}
			if played := voices(chunk); len(played) > 0 {
				if err := w.post(tx, p, parcel{Type: parcelReceipt, IDs: played, Status: int(parley.Played)}); err != nil {
					return err
				}
			}
		}
		tx.OnCommit(func() { p.markRead(last) })
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read as phone: %w", err)
	}
	return count, nil
}

// unread lists what the phone shows and has not read: if it is offline, only what it got before.
func unread(tx *sqldb.Tx, p *phone) ([]arrival, error) {
	_, read := p.marks()
	rows, err := tx.Query(`SELECT `+arrivalColumns+` FROM messages
		WHERE phone = $1 AND seq > $2 AND seq <= $3 AND from_phone = 0 AND status = 0 ORDER BY seq`, p.id, read, p.shown())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []arrival
	for rows.Next() {
		a, err := scanArrival(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

// act changes the record and leaves what the phone did for the channel, in one transaction.
func (n *Network) act(ctx context.Context, w *world, p *phone, what parcel, change string, args ...any) error {
	err := n.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(change, args...); err != nil {
			return err
		}
		return w.post(tx, p, what)
	})
	if err != nil {
		return fmt.Errorf("act as phone: %w", err)
	}
	return nil
}

// actor finds the phone that somebody acts as.
func (n *Network) actor(ctx context.Context, channel parley.ChannelCode, number string) (*world, *phone, error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return nil, nil, err
	}
	if !p.contact.CanExist() {
		return nil, nil, parley.Errorf(parley.BadRequest, "%s", network.ErrImpossibleNumber.Failure.Message)
	}
	if !p.behaviour().OnNetwork {
		return nil, nil, parley.Errorf(parley.BadRequest, "This phone is not on the network and cannot do anything there. Set its on_network to true first.")
	}
	return w, p, nil
}

// CheckMessage reports a field that names no message of the chat with a phone.
func (n *Network) CheckMessage(ctx context.Context, channel parley.ChannelCode, number, field, id string) error {
	_, p, err := n.find(ctx, channel, number)
	if err == nil {
		_, err = n.target(ctx, p, field, id)
	}
	return err
}

// target finds a message of the phone's chat by its full or bare id. A bare id that both sides used
// means the one that the channel sent.
func (n *Network) target(ctx context.Context, p *phone, field, id string) (Message, error) {
	unknown := parley.InvalidField(field, field+" must be the id of a message in the chat with this phone.")
	ref, err := parley.ParseMessageRef(id)
	if err != nil || !ref.IsBare() && ref.Chat != p.contact {
		return Message{}, unknown
	}
	for _, from := range []int64{fromChannel, fromPhone} {
		if !ref.IsBare() && direction(ref.FromMe) != from {
			continue
		}
		m, err := n.message(ctx, p, from, ref.ID)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return m, err
		}
	}
	return Message{}, unknown
}

// message reads one message of a phone's chat; there being none is sql.ErrNoRows.
func (n *Network) message(ctx context.Context, p *phone, from int64, id parley.MessageID) (Message, error) {
	if err := n.unpack(ctx); err != nil {
		return Message{}, err
	}
	rows, err := n.db.Read(ctx).Query(`SELECT `+messageColumns+` FROM messages WHERE phone = $1 AND from_phone = $2 AND id = $3`,
		p.id, from, string(id))
	if err != nil {
		return Message{}, fmt.Errorf("read message: %w", err)
	}
	defer rows.Close()
	if !rows.Next() {
		return Message{}, errors.Join(sql.ErrNoRows, rows.Err())
	}
	delivered, read := p.marks()
	return scanMessage(rows, p, delivered, read)
}
