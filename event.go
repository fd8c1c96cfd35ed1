package parley

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Event is a row of the event log. It is written in the transaction of the change that it reports, and never changed.
type Event struct {
	Seq     int64 // its position in the log; only grows, and has gaps
	ID      EventID
	Type    EventType
	Channel ChannelCode // empty: it belongs to no channel
	At      time.Time

	// Chat is whose chat it happened in; events of one chat are delivered in order. Empty: it is the
	// channel's own.
	Chat ContactID
	// Message is the message of the event as it is stored now, but with the status
	// that the event reports. Nil on other events.
	Message *Message
	// Data is what the event holds besides the message: a JSON object, or nil.
	Data json.RawMessage
	// Encrypted is what only the receivers of the event may read, until it is delivered: the text of a message whose
	// channel stores none, or the data of a pairing with its code. Nil: nothing.
	Encrypted []byte
}

// EventTextContext is what the encrypted text of an event is bound to.
func EventTextContext(channel ChannelCode) string { return "event of " + string(channel) }

// EncodeEventContent returns what is encrypted in the event of a message whose channel stores no text: the text and, after
// a zero byte, the place or the cards. Empty: nothing.
func EncodeEventContent(c Content) ([]byte, error) {
	text := []byte(c.Text())
	switch c.(type) {
	case Location, Contacts:
		data, err := EncodeContent(c)
		return slices.Concat(text, []byte{0}, data), err
	}
	return text, nil
}

// DecodeEventContent reads what EncodeEventContent returned.
func DecodeEventContent(kind Kind, stored []byte) (Content, error) {
	text, data, _ := bytes.Cut(stored, []byte{0})
	return DecodeContent(kind, string(text), data)
}

type EventType string

const (
	MessageReceived      EventType = "message.received"
	MessageStatus        EventType = "message.status"   // a message got another status
	MessageReaction      EventType = "message.reaction" // a contact reacted, or removed the reaction
	MessageDeleted       EventType = "message.deleted"  // a message was deleted for everyone
	PollVoted            EventType = "poll.vote"
	ChannelStatusChanged EventType = "channel.status"
	ChannelPairing       EventType = "channel.pairing" // a step of the pairing
	OTPApproved          EventType = "otp.approved"
	OTPFailed            EventType = "otp.failed"
	OTPExpired           EventType = "otp.expired"
	OTPPaused            EventType = "otp.paused"            // codes to strangers pause
	OTPGuessing          EventType = "otp.guessing"          // many wrong tries, over all contacts
	MessageMedia         EventType = "message.media"         // the file of an inbound message is there, or will never be
	WebhookGap           EventType = "webhook.gap"           // events were removed before a webhook got them; it belongs to no channel
	GroupChanged         EventType = "group.changed"         // members or the name of a group changed
	MessageEdited        EventType = "message.edited"        // the text of a message was changed
	MessageSentOnPhone   EventType = "message.sent_on_phone" // the owner of the account wrote it on another device
	ChannelRestricted    EventType = "channel.restricted"    // the network restricts the account, or does not any more
	ContactOptedOut      EventType = "contact.opted_out"     // a contact wants no more messages
	ContactOptedIn       EventType = "contact.opted_in"      // it wants messages again
	MessageUnreadable    EventType = "message.unreadable"    // a message arrived that cannot be shown
	CallReceived         EventType = "call.received"         // somebody calls the account
	CallEnded            EventType = "call.ended"            // the call is over, or does not ring any more
	ChannelNotice        EventType = "channel.notice"        // the network says something about the account
)

var EventTypes = []EventType{MessageReceived, MessageStatus, MessageReaction, MessageDeleted, PollVoted,
	ChannelStatusChanged, ChannelPairing, OTPApproved, OTPFailed, OTPExpired, OTPPaused, OTPGuessing, MessageMedia, WebhookGap,
	GroupChanged, MessageEdited, ChannelRestricted, MessageSentOnPhone, ContactOptedOut, ContactOptedIn,
	CallReceived, CallEnded, MessageUnreadable, ChannelNotice}

func ParseEventType(s string) (EventType, bool) {
	return EventType(s), slices.Contains(EventTypes, EventType(s))
}

// EventID is the public id of an event: the same in every delivery and on every stream. It is
// "evt_" and 26 characters, which begin with the event's time. Ids are not in the order of the log: an event
// can be older than the one before it. Order is by Seq.
type EventID string

// NewEventID makes the id of an event from its time, its seq and the number of the log. Because of the time, an id is not
// used again after an older backup was restored.
func NewEventID(at time.Time, log uint32, seq int64) EventID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16)
	binary.BigEndian.PutUint64(b[8:], uint64(seq))
	b[6], b[7], b[8] = byte(log>>16), byte(log>>8), byte(log)
	return EventID("evt_" + eventBase.EncodeToString(b[:]))
}

func (id EventID) Seq() (int64, error) {
	wrong := errors.New("not an event id")
	if len(id) != 30 || id[:4] != "evt_" {
		return 0, wrong
	}
	b, err := eventBase.DecodeString(string(id[4:]))
	if err != nil {
		return 0, wrong
	}
	b[8] = 0
	return int64(binary.BigEndian.Uint64(b[8:])), nil
}

// eventBase sorts like what it encodes, and has no letters that look like digits.
var eventBase = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// EventFilter says which events are wanted. The zero value is all.
type EventFilter struct {
	Channel ChannelCode // empty: of every channel
	Types   []EventType // none: of every type
}

func (f EventFilter) Wants(e *Event) bool {
	return (f.Channel == "" || f.Channel == e.Channel) && (len(f.Types) == 0 || slices.Contains(f.Types, e.Type))
}

// NewReactionEvent is the event of a reaction; an empty emoji removes it. The
// channel itself is the empty contact.
func NewReactionEvent(target *Message, by ContactID, emoji string, at time.Time) *Event {
	type reaction struct {
		Emoji     string    `json:"emoji"`
		FromMe    bool      `json:"from_me,string"`
		Outgoing  bool      `json:"outgoing"`
		ContactID ContactID `json:"contact_id,omitempty"`
	}
	return &Event{Type: MessageReaction, Channel: target.Channel, At: at, Chat: target.Chat, Message: target,
		Data: eventData(map[string]any{"reaction": reaction{emoji, by == "", by == "", by}})}
}

// NewVoteEvent is the event of a vote in a poll: all options that the contact chooses now.
func NewVoteEvent(poll *Message, by ContactID, options []string, at time.Time) *Event {
	type vote struct {
		ContactID ContactID `json:"contact_id"`
		Options   []string  `json:"options"`
	}
	if options == nil {
		options = []string{}
	}
	return &Event{Type: PollVoted, Channel: poll.Channel, At: at, Chat: poll.Chat, Message: poll,
		Data: eventData(map[string]any{"vote": vote{by, options}})}
}

// GroupChange says what changed in a group.
type GroupChange struct {
	GroupID GroupID     `json:"group_id"`
	By      ContactID   `json:"contact_id,omitempty"` // who changed it; empty: the channel, or not known
	FromMe  bool        `json:"from_me,string"`       // the channel changed it
	Added   []ContactID `json:"added"`
	Removed []ContactID `json:"removed"`        // those who left too
	Name    string      `json:"name,omitempty"` // the new name; empty: it did not change
}

func NewGroupEvent(channel ChannelCode, c GroupChange, at time.Time) *Event {
	if c.Added == nil {
		c.Added = []ContactID{}
	}
	if c.Removed == nil {
		c.Removed = []ContactID{}
	}
	data := struct {
		GroupChange
		Outgoing bool `json:"outgoing"`
	}{c, c.FromMe}
	return &Event{Type: GroupChanged, Channel: channel, At: at, Chat: c.GroupID.Chat(), Data: eventData(data)}
}

func NewRestrictionEvent(c Channel, at time.Time) *Event {
	type data struct {
		Restricted bool   `json:"restricted"`
		Until      string `json:"until,omitempty"` // empty: unknown
	}
	d := data{Restricted: c.Restricted}
	if !c.RestrictedUntil.IsZero() {
		d.Until = Stamp(c.RestrictedUntil)
	}
	return &Event{Type: ChannelRestricted, Channel: c.Code, At: at, Data: eventData(d)}
}

// Notice is what a network says about the account of a channel. It changes nothing by itself.
type Notice struct {
	Kind     NoticeKind `json:"kind"`
	Status   string     `json:"status"` // in the network's words: capital letters, digits and _
	Text     string     `json:"text"`   // a sentence
	Template string     `json:"template,omitempty"`
	Language string     `json:"language,omitempty"`   // of the template
	Contact  ContactID  `json:"contact_id,omitempty"` // whose number changed
}

type NoticeKind string

const (
	QualityNotice       NoticeKind = "quality"        // how the network rates the number
	LimitNotice         NoticeKind = "limit"          // how many contacts the number may write to first
	RestrictionNotice   NoticeKind = "restriction"    // what the account may not do
	TemplateNotice      NoticeKind = "template"       // the review of a template
	NumberChangedNotice NoticeKind = "number_changed" // a contact has another number
)

func NewNoticeEvent(channel ChannelCode, n Notice, at time.Time) *Event {
	return &Event{Type: ChannelNotice, Channel: channel, At: at, Chat: n.Contact, Data: eventData(n)}
}

// PhoneCall is a call to the account of a channel.
type PhoneCall struct {
	ID    string
	From  ContactID
	Group GroupID // of a call in a group; empty: to the account alone
	Video bool
	Ended CallEnd // empty: it begins
	At    time.Time
}

// CallEnd is how a call ended.
type CallEnd string

const (
	CallRejected CallEnd = "rejected"
	CallAccepted CallEnd = "accepted" // on another device of the account
	CallOver     CallEnd = "ended"    // it was missed, or talked out
)

func NewCallEvent(channel ChannelCode, c PhoneCall) *Event {
	type data struct {
		ID        string    `json:"id"`
		ContactID ContactID `json:"contact_id"`
		GroupID   GroupID   `json:"group_id,omitempty"`
		Video     *bool     `json:"video,omitempty"`  // when it begins
		Reason    CallEnd   `json:"reason,omitempty"` // when it ends
	}
	d, kind, chat := data{ID: c.ID, ContactID: c.From, GroupID: c.Group, Reason: c.Ended}, CallEnded, c.From
	if c.Ended == "" {
		d.Video, kind = &c.Video, CallReceived
	}
	if c.Group != "" {
		chat = c.Group.Chat()
	}
	return &Event{Type: kind, Channel: channel, At: c.At, Chat: chat, Data: eventData(d)}
}

// Unreadable is a message that arrived and cannot be shown. If it can be read later, it is published as any other.
type Unreadable struct {
	From   ContactID
	Group  GroupID // empty: a direct chat
	ID     MessageID
	Reason UnreadableReason
	At     time.Time
}

type UnreadableReason string

const (
	Undecryptable UnreadableReason = "undecryptable" // its sender and the account's phone are asked for it again
	ViewOnce      UnreadableReason = "view_once"     // only the account's phone can open it
)

func NewUnreadableEvent(channel ChannelCode, u Unreadable) *Event {
	type data struct {
		MessageID string           `json:"message_id"`
		ID        MessageID        `json:"id"`
		ContactID ContactID        `json:"contact_id"`
		GroupID   GroupID          `json:"group_id,omitempty"`
		Reason    UnreadableReason `json:"reason"`
	}
	chat := u.From
	if u.Group != "" {
		chat = u.Group.Chat()
	}
	d := data{MessageRef{Chat: chat, ID: u.ID}.String(), u.ID, u.From, u.Group, u.Reason}
	return &Event{Type: MessageUnreadable, Channel: channel, At: u.At, Chat: chat, Data: eventData(d)}
}

// NewOptOutEvent is the event of a contact that wants no more messages of a channel, or wants them again. The source is "contact" or "api".
func NewOptOutEvent(channel ChannelCode, contact ContactID, out bool, source string, at time.Time) *Event {
	type data struct {
		ContactID ContactID `json:"contact_id"`
		Source    string    `json:"source"`
	}
	kind := ContactOptedIn
	if out {
		kind = ContactOptedOut
	}
	return &Event{Type: kind, Channel: channel, At: at, Chat: contact, Data: eventData(data{contact, source})}
}

func NewChannelEvent(c Channel, was ChannelStatus, at time.Time) *Event {
	type data struct {
		Status ChannelStatus `json:"status"`
		Was    ChannelStatus `json:"was"`
		Reason string        `json:"reason"`
		Since  string        `json:"since"`
		Name   string        `json:"name"`
		Number string        `json:"number"`
	}
	return &Event{Type: ChannelStatusChanged, Channel: c.Code, At: at,
		Data: eventData(data{c.State.Status, was, c.State.Reason, Stamp(c.State.Since), c.Name, c.Number})}
}

// NewOTPEvent is the event of how a code or a login link ended, or of a failed try. The reason is
// empty where it was approved. The channels that a code was tried on are given if its request named some.
func NewOTPEvent(
	kind EventType, id OTPID, channel ChannelCode, contact ContactID, reason string, at time.Time, tried ...ChannelCode,
) *Event {
	type data struct {
		ID        OTPID         `json:"id"`
		ContactID ContactID     `json:"contact_id"`
		Reason    string        `json:"reason,omitempty"`
		Tried     []ChannelCode `json:"channels_tried,omitempty"`
	}
	return &Event{Type: kind, Channel: channel, At: at, Chat: contact, Data: eventData(data{id, contact, reason, tried})}
}

// NewGapEvent reports that the events after a webhook's cursor were removed before it got them, up to a seq.
func NewGapEvent(w Webhook, to int64, at time.Time) *Event {
	type data struct {
		Webhook WebhookID   `json:"webhook"`
		Channel ChannelCode `json:"channel"`
		Lost    int64       `json:"lost"`
		From    int64       `json:"from"`
		To      int64       `json:"to"`
	}
	return &Event{Type: WebhookGap, At: at, Data: eventData(data{w.ID, w.Channel, to - w.Cursor, w.Cursor + 1, to})}
}

// eventData encodes what cannot fail to be encoded.
func eventData(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
