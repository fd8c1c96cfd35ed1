package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/store/sqldb"
)

type Outgoing struct {
	Content parley.Content // a text, image, video, file, voice or location; a file has a key for [Network.OpenFile]
	ReplyTo string         // the id of a message in the chat, full or bare; empty: no reply
	Group   parley.GroupID // empty: to the channel
	Owner   bool           // the owner of the channel's account wrote it, on a phone of their own, to this phone or the group
	// Unreadable is why the channel cannot read it; empty: it can. An undecryptable one is sent again at once, as real phones do.
	Unreadable parley.UnreadableReason
	// ID is the message's; empty: a new one. A caller that can lose the response chooses it and looks for it with [Network.Message].
	ID parley.MessageID
}

// MessageIDFrom makes the id of a message that a phone sends, in the form of the real network's phones, which is not the
// gateway's.
func MessageIDFrom(random [9]byte) parley.MessageID {
	return parley.MessageID(fmt.Sprintf("3A%X", random))
}

// SendAs sends a message as a phone. It is stored until the channel accepts it. A phone that is offline sends it when it is
// online again.
func (n *Network) SendAs(ctx context.Context, channel parley.ChannelCode, number string, o Outgoing) (Message, error) {
	w, p, err := n.sender(ctx, channel, number)
	if err != nil {
		return Message{}, err
	}
	if file := parley.MediaIn(o.Content); file != nil && file.Key == "" {
		return Message{}, parley.InvalidField("file", "file must have content.")
	}
	var replyTo parley.MessageID
	if o.ReplyTo != "" {
		target, err := n.target(ctx, p, "reply_to", o.ReplyTo)
		if err != nil {
			return Message{}, err
		}
		replyTo = target.ID.ID
	}
	m := p.newMessage(o.Content, replyTo)
	m.ID.ID, m.unreadable = cmp.Or(o.ID, m.ID.ID), o.Unreadable
	if o.Owner {
		m.ID.FromMe, m.Author, m.direction, m.Status = true, "", fromChannel, parley.Sent
	}
	if o.Group != "" {
		return *m, w.sendInGroup(ctx, p, m, o)
	}
	err = w.write(ctx, "send as phone", func(tx *sqldb.Tx) (err error) {
		if p, err = w.sending(tx, p.Number); err != nil { // again, in case the world was reset
			return err
		}
		if o.Owner {
			return w.addOwnMessage(tx, m, p.ContactID, p)
		}
		return w.addPhoneMessage(tx, p, m)
	})
	return *m, err
}

// addOwnMessage adds a message that the owner wrote to a contact, or to a group if that is empty, to the phones that get it.
func (w *world) addOwnMessage(tx *sqldb.Tx, m *Message, to parley.ContactID, phones ...*phone) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return err
	}
	var arrived []delivery
	for _, p := range phones {
		if !p.OnNetwork || p.Blocks && m.group == 0 {
			continue
		}
		_, seq, err := w.insertMessage(tx, p, fromChannel, m, "")
		if err != nil {
			return err
		}
		m.Cursor = cursorAt(seq)
		arrived = append(arrived, delivery{p, arrival{seq: seq, id: m.ID.ID, group: m.group, voice: m.Kind == parley.KindVoice, at: m.At}})
	}
	tx.OnCommit(func() { w.arrived(arrived) })
	return w.addEvent(tx, phones[0], event{Type: messageEvent, Own: true, To: to, Group: m.group, Target: m.ID.ID, Kind: m.Kind, Text: m.Body,
		Data: data, ReplyTo: m.ReplyTo})
}

func (p *phone) newMessage(content parley.Content, replyTo parley.MessageID) *Message {
	var random [9]byte
	rand.Read(random[:]) // never fails
	text := content.Text()
	return &Message{
		ID: parley.MessageRef{Chat: p.ContactID, ID: MessageIDFrom(random)}, Author: p.ContactID, direction: fromPhone,
		Kind: content.Kind(), Body: text, Content: content, Media: parley.MediaIn(content),
		ReplyTo: replyTo, Status: parley.Received, At: time.Now().UTC().Truncate(time.Millisecond),
		Copies: 1, Codes: Codes(text), Links: safehttp.Links(text), Timer: p.Timer,
	}
}

func (w *world) addPhoneMessage(tx *sqldb.Tx, p *phone, m *Message) error {
	data, seq, err := w.insertMessage(tx, p, fromPhone, m, "")
	if err != nil {
		return err
	}
	m.Cursor = cursorAt(seq)
	tx.OnCommit(func() { w.net.purger.grew([]delivery{{phone: p}}) })
	if p.Blocked && m.group == 0 {
		return nil
	}
	if m.unreadable != "" {
		err := w.addEvent(tx, p, event{Type: unreadableEvent, Group: m.group, Target: m.ID.ID, Reason: m.unreadable})
		if err != nil || m.unreadable == parley.ViewOnce {
			return err
		}
	}
	return w.addEvent(tx, p, event{Type: messageEvent, Group: m.group, Target: m.ID.ID, Kind: m.Kind, Text: m.Body, Data: data,
		ReplyTo: m.ReplyTo})
}

// insertMessage stores a message on a phone, and returns its encoded content and its position.
func (w *world) insertMessage(tx *sqldb.Tx, p *phone, direction int64, m *Message, author string) (data []byte, seq int64, err error) {
	if data, err = parley.EncodeContent(m.Content); err == nil {
		seq, err = w.net.nextSeq(tx)
	}
	if err == nil {
		err = tx.Do(insertMessage, seq, p.id, direction, string(m.ID.ID), string(m.Kind), m.Body, data, string(m.ReplyTo), m.At.UnixMilli(),
			m.group, author, m.Timer)
	}
	return data, seq, err
}

// Call calls the channel as a phone and returns the id of the call, or ends the call with this id; empty: a new one begins. A blocked
// phone calls in vain.
func (n *Network) Call(ctx context.Context, channel parley.ChannelCode, number string, id parley.MessageID, video bool) (
	parley.MessageID, error) {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return "", err
	}
	e := event{Type: callEvent, Target: id, Video: video, Ended: parley.CallOver}
	if id == "" {
		var random [9]byte
		rand.Read(random[:]) // never fails
		e.Target, e.Ended = MessageIDFrom(random), ""
	}
	if p.Blocked {
		return e.Target, nil
	}
	return e.Target, w.write(ctx, "call as phone", func(tx *sqldb.Tx) (err error) {
		if p, err = w.phone(tx, p.Number); err != nil { // again, in case the world was reset
			return err
		}
		return w.addEvent(tx, p, e)
	})
}

// React reacts to a message of the chat as a phone; an empty emoji removes the reaction.
func (n *Network) React(ctx context.Context, channel parley.ChannelCode, number, messageID, emoji string) error {
	w, p, target, err := n.actOn(ctx, channel, number, messageID)
	if err != nil {
		return err
	}
	e := event{Type: reactionEvent, Group: target.group, Target: target.ID.ID, FromMe: target.ID.FromMe, Emoji: emoji}
	return n.change(ctx, w, p, target, e,
		`UPDATE messages SET phone_reaction = $4`+oneMessage, emoji)
}

// Vote chooses options of a poll that the channel sent, as a phone. No options remove the vote.
func (n *Network) Vote(ctx context.Context, channel parley.ChannelCode, number, messageID string, options []string) error {
	w, p, target, err := n.actOn(ctx, channel, number, messageID)
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
		return parley.InvalidField("options", "options must be one option: this poll allows a single choice.")
	}
	votes, err := json.Marshal(options)
	if err != nil {
		return err
	}
	return n.change(ctx, w, p, target, event{Type: voteEvent, Group: target.group, Target: target.ID.ID, Options: options},
		`UPDATE messages SET votes = $4`+oneMessage, string(votes))
}

// Delete deletes a message that a phone sent. A second call is no error.
func (n *Network) Delete(ctx context.Context, channel parley.ChannelCode, number, messageID string) error {
	w, p, target, err := n.actOn(ctx, channel, number, messageID)
	if err != nil {
		return err
	}
	if target.direction != fromPhone {
		return parley.InvalidField("message_id",
			"message_id must be that of a message which the phone sent: it cannot delete others.")
	}
	if target.Status == parley.Deleted {
		return nil
	}
	if target.group != 0 {
		if err := w.deleteForMembers(ctx, p, target); err != nil {
			return err
		}
	}
	return n.change(ctx, w, p, target, event{Type: deletionEvent, Group: target.group, Target: target.ID.ID}, deleteMessage,
		int64(parley.Deleted))
}

// Edit changes the text or the caption of a message that a phone sent.
func (n *Network) Edit(ctx context.Context, channel parley.ChannelCode, number, messageID, text string) error {
	w, p, target, err := n.actOn(ctx, channel, number, messageID)
	if err != nil {
		return err
	}
	if target.direction != fromPhone || target.Status == parley.Deleted {
		return parley.InvalidField("message_id", "message_id must be that of a message which the phone sent and did not delete.")
	}
	edited, ok := parley.Edited(target.Content, parley.Text{Body: text})
	if !ok {
		return parley.InvalidField("message_id", "message_id must be that of a text or of a file with a caption.")
	}
	data, err := parley.EncodeContent(edited)
	if err != nil {
		return err
	}
	e := event{Type: editEvent, Group: target.group, Target: target.ID.ID, Kind: parley.KindText, Text: text}
	edit := func(tx *sqldb.Tx, phone, direction int64) error {
		return tx.Do(editMessage, phone, string(target.ID.ID), direction, text, data, time.Now().UnixMilli(), int64(parley.Deleted))
	}
	if target.group == 0 {
		e.early = !target.ID.Chat.IsHidden()
		return w.write(ctx, "edit as phone", func(tx *sqldb.Tx) error {
			return errors.Join(edit(tx, p.id, fromPhone), w.addEvent(tx, p, e))
		})
	}
	return w.asMember(ctx, p, groupID(target.group), func(tx *sqldb.Tx, p *phone, _ int64, others []*phone) error {
		return errors.Join(sqldb.Each(others, func(other *phone) error { return edit(tx, other.id, fromMember) }),
			edit(tx, p.id, fromPhone), w.addEvent(tx, p, e))
	})
}

// Read reads one message as a phone, or everything that it shows if messageID is empty. It returns how many were unread. A
// phone that never reads sends no receipts, so it returns 0.
func (n *Network) Read(ctx context.Context, channel parley.ChannelCode, number, messageID string) (int, error) {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return 0, err
	}
	if p.Reads == Never {
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
	return 1, n.change(ctx, w, p, m, event{Type: receiptEvent, Group: m.group, IDs: []parley.MessageID{m.ID.ID}, Status: int(status)},
		`UPDATE messages SET status = $4`+oneMessage, int64(status))
}

func (n *Network) readAll(ctx context.Context, w *world, p *phone) (count int, err error) {
	err = w.write(ctx, "read as phone", func(tx *sqldb.Tx) error {
		if p, err = w.phone(tx, p.Number); err != nil { // its cursors may have moved
			return err
		}
		unread, err := sqldb.Collect(tx.Conn, scanArrival, `SELECT seq, id, grp, kind, at FROM messages
			WHERE phone = $1 AND seq > $2 AND seq <= $3 AND from_phone = 0 AND status = 0 ORDER BY seq`, p.id, p.read, p.shownUpTo())
		count = len(unread)
		if err != nil || count == 0 {
			return err
		}
		if err := tx.Do(`UPDATE phones SET read = $1 WHERE id = $2`, unread[count-1].seq, p.id); err != nil {
			return err
		}
		return sqldb.Each(p.byChat(unread), func(chat []arrival) error {
			return sqldb.Each(slices.Collect(slices.Chunk(chat, maxReceipt)), func(some []arrival) error { return w.addReadReceipts(tx, p, some) })
		})
	})
	return count, err
}

func (w *world) addReadReceipts(tx *sqldb.Tx, p *phone, list []arrival) error {
	e := event{Type: receiptEvent, Group: list[0].group, IDs: toIDs(list), Status: int(parley.Read), early: p.isEarly(list[0])}
	if err := w.addEvent(tx, p, e); err != nil {
		return err
	}
	if e.IDs = toVoiceIDs(list); len(e.IDs) == 0 {
		return nil
	}
	e.Status = int(parley.Played)
	return w.addEvent(tx, p, e)
}

// change changes a message of a phone's chat and stores the event for the channel, in one transaction.
func (n *Network) change(ctx context.Context, w *world, p *phone, m Message, e event, update string, value any) error {
	e.early = m.group == 0 && !m.ID.Chat.IsHidden()
	return w.write(ctx, "act as phone", func(tx *sqldb.Tx) error {
		return errors.Join(tx.Do(update, p.id, string(m.ID.ID), m.direction, value), w.addEvent(tx, p, e))
	})
}

func (n *Network) actOn(ctx context.Context, channel parley.ChannelCode, number, messageID string) (*world, *phone, Message, error) {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return nil, nil, Message{}, err
	}
	target, err := n.target(ctx, p, "message_id", messageID)
	return w, p, target, err
}

func (n *Network) actor(ctx context.Context, channel parley.ChannelCode, number string) (*world, *phone, error) {
	w, p, err := n.find(ctx, channel, number)
	if err == nil {
		err = p.checkActs()
	}
	return w, p, err
}

// sender is actor for a phone that only sends: it is not read if the session knows it.
func (n *Network) sender(ctx context.Context, channel parley.ChannelCode, number string) (*world, *phone, error) {
	if digits, err := parley.ParseNumber(number); err == nil {
		if w := n.inMemory(channel); w != nil {
			if p := w.cached(digits); p != nil {
				return w, p, p.checkActs()
			}
		}
	}
	return n.actor(ctx, channel, number)
}

// sending is phone for one that only sends.
func (w *world) sending(tx *sqldb.Tx, number string) (*phone, error) {
	if p := w.cached(number); p != nil {
		return p, nil
	}
	p, err := w.phone(tx, number)
	if s := w.session.Load(); s != nil && err == nil {
		read := *p
		tx.OnCommit(func() { s.phones.add([]phone{read}) })
	}
	return p, err
}

// checkActs returns an error about a phone that cannot do anything on the network.
func (p *phone) checkActs() error {
	if !p.contactID().CanExist() {
		return parley.Errorf(parley.BadRequest, "%s", network.ErrImpossibleNumber.Failure.Message)
	}
	if !p.OnNetwork {
		return parley.Errorf(parley.BadRequest,
			"This phone is not on the network and cannot do anything there. Set its on_network to true first.")
	}
	return nil
}

// CheckMessage returns an error about a field unless it is the id of a message in the chat with a phone.
func (n *Network) CheckMessage(ctx context.Context, channel parley.ChannelCode, number, field, id string) error {
	_, p, err := n.find(ctx, channel, number)
	if err == nil {
		_, err = n.target(ctx, p, field, id)
	}
	return err
}

// target finds a message of the phone's chat by its full or bare id. If both sides used a bare id, it finds the channel's
// message.
func (n *Network) target(ctx context.Context, p *phone, field, id string) (Message, error) {
	unknown := parley.InvalidField(field, field+" must be the id of a message in the chat with this phone.")
	ref, err := parley.ParseMessageRef(id)
	if err != nil || !ref.IsBare() && ref.Chat != p.contactID() && ref.Chat != hiddenID(p.id) && !ref.Chat.IsGroup() {
		return Message{}, unknown
	}
	least, most := fromChannel, fromMember
	switch {
	case ref.IsBare():
	case ref.FromMe:
		most = fromChannel
	default:
		least = fromPhone
	}
	m, err := first(sqldb.Collect(n.db.Read(ctx), p.scanMessage, `SELECT `+messageColumns+` FROM messages
		WHERE phone = $1 AND id = $2 AND from_phone BETWEEN $3 AND $4 ORDER BY from_phone`, p.id, string(ref.ID), least, most))
	if errors.Is(err, sql.ErrNoRows) || err == nil && !ref.IsBare() && ref.Chat.Group() != m.ID.Chat.Group() {
		return Message{}, unknown
	}
	return m, err
}
