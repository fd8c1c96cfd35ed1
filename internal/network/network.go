package network

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"parley"
)

// Driver opens sessions on one chat network. Its methods may be called from several goroutines.
type Driver interface {
	// Info describes the network. It never changes.
	Info() Info

	// NewID chooses the id of a message before it is queued: letters, digits and hyphens, at most 100, never twice. It is the
	// only id that callers see. A driver whose network assigns ids of its own maps them in both directions.
	NewID() parley.MessageID

	// Open starts a channel's session and returns without waiting for the network. The sink gets its [State] changes.
	// The session lives until it is closed, not until ctx ends.
	Open(ctx context.Context, channel parley.Channel, sink Sink) (Session, error)

	// DeleteChannel removes everything that the driver stores for a channel whose session is closed.
	DeleteChannel(ctx context.Context, code parley.ChannelCode) error
}

// Session is a channel's live connection. Its methods may be called from several goroutines. They return errors of this
// package's constructors, or plain ones, which are temporary. What only some networks can do is in the interfaces of
// optional.go, which a session may have too.
type Session interface {
	// Send sends messages and operations in order and returns one error for each: nil when the network confirmed it.
	// After a failure, later ones of the same chat are not sent and get [ErrHeldBack], so that the order is preserved;
	// only after [NotReady] they are sent. The network identifies a message by its ID: sent twice, the recipient sees
	// it once. Parallel calls never share a chat. ctx ends early when receipts have confirmed every message of the
	// call.
	Send(ctx context.Context, ms []*parley.Message) []error
	// Limits are how many messages one call of Send should carry at most, and how many calls are
	// useful at once. Both are at least 1.
	Limits() (burst, calls int)

	// Fetch writes the file of a [Message] into an empty file as a stream, never whole in memory. It is not called by
	// the sink, and must not delay other events. After a Permanent error it is not repeated; after another one it is,
	// with an empty file.
	Fetch(ctx context.Context, reference []byte, to *os.File) error

	// Close ends the session, waiting for calls of the sink under way. It may be called twice.
	Close() error
}

// Sink receives events of a session. Events of one chat come in order, the next one only after the sink returned. The
// context ends when the session is closing.
type Sink func(ctx context.Context, e Event) error

// Event is something that arrives from a network. The types below are all there are.
type Event interface{ event() }

// State is the state of a session's connection. It is sent at every change.
type State struct {
	Status parley.ChannelStatus
	Reason string // a sentence; empty while all is well
	Phone  Phone  // zero if not known yet
}

// Phone is the account behind a channel.
type Phone struct {
	Name   string
	Number string // digits
}

// Message is a message in a direct chat or a group, not in a broadcast, which the session did not send itself.
// From is the sender's phone number according to the network. The same message may come again: the sink stores it once.
type Message struct {
	From    parley.ContactID
	Group   parley.GroupID // empty: a direct chat
	ID      parley.MessageID
	Content parley.Content
	ReplyTo parley.MessageID
	At      time.Time // by the network's clock, not the sender's
	// File is what [Session.Fetch] needs to get the file of Content, also after a restart; nil: no file, or it cannot
	// be fetched. It may contain keys: it is stored encrypted.
	File []byte
	// Own: the owner of the account wrote it, on the phone or another device. From is then whom it went to, and empty in a group.
	Own bool
	// Past marks history. It is stored, but triggers nothing: no login, no reply.
	Past bool
	// History marks messages from before pairing, possibly years of them. They are stored; no event is published.
	History bool
}

// Receipt says that messages of the channel were delivered, read or played, or that they failed although the network had
// confirmed them. A sink that does not know some ids (the receipt overtook the send) stores the others and returns
// [UnknownMessages] to get those again. In a group From is one of the members that it is from.
type Receipt struct {
	From   parley.ContactID
	Group  parley.GroupID // empty: a direct chat
	IDs    []parley.MessageID
	Status parley.Status
	// Failure is why they failed; nil unless Status is Failed. It changes nothing for a message that was delivered.
	Failure *parley.Failure
	At      time.Time
}

// Reaction is a contact's reaction to a message; an empty emoji removes it. Target names the chat.
type Reaction struct {
	From   parley.ContactID
	Target parley.MessageRef
	Emoji  string
	At     time.Time
}

// Deletion says that a contact deleted a message that it had sent, or an admin one of a group.
type Deletion struct {
	From   parley.ContactID
	Group  parley.GroupID // empty: a direct chat
	Target parley.MessageID
	// ByAdmin: an admin of the group may delete messages of others.
	ByAdmin bool
	At      time.Time
}

// Edit says that a contact changed the text or caption of a message that it had sent.
type Edit struct {
	From    parley.ContactID
	Group   parley.GroupID // empty: a direct chat
	Target  parley.MessageID
	Content parley.Content // its text is the new one
	At      time.Time
}

// Vote is a contact's current choice in a poll of the channel.
type Vote struct {
	From    parley.ContactID
	Group   parley.GroupID // empty: a direct chat
	Poll    parley.MessageID
	Options []string
	At      time.Time
}

// GroupChange says that members or the name of a group changed, also if the account itself changed them.
type GroupChange struct {
	parley.GroupChange
	At time.Time
}

// Alias says that the network spells a contact's number differently. It comes before the session uses that spelling,
// and may come again. If the sink rejects it, the call that learned it fails.
type Alias struct{ Asked, Contact parley.ContactID }

// Restriction says that the network does not let the account write to new contacts, until a time, or lets it again.
type Restriction struct {
	Active bool
	Until  time.Time // zero: unknown
}

// Ban says until when the network bans the account. The session comes back then.
type Ban struct{ Until time.Time }

// Pairing is a step of pairing. Steps come in order, among the states. A rejected step may be dropped: the next one
// replaces it.
type Pairing parley.Pairing

// PhoneCall is a call to the account, or its end. It may come again.
type PhoneCall parley.PhoneCall

// Unreadable is a message that cannot be shown now. It may come as a Message later.
type Unreadable parley.Unreadable

// Copies says how often the network may have a message of the channel: see [parley.Message].
type Copies struct {
	To     parley.ContactID
	ID     parley.MessageID
	Copies int
}

func (Copies) event() {}

// Notice is what the network says about the account. It may come again.
type Notice parley.Notice

// NewTemplateNotice says that the network reviewed a template. The reason may be empty.
func NewTemplateNotice(name, language, status, reason string) Notice {
	text := fmt.Sprintf("The template %s (%s) is %s.", name, language, status)
	if reason != "" {
		text = strings.TrimSuffix(text, ".") + ": " + reason
	}
	return Notice{Kind: parley.TemplateNotice, Status: status, Text: text, Template: name, Language: language}
}

func (Notice) event()      {}
func (PhoneCall) event()   {}
func (Unreadable) event()  {}
func (State) event()       {}
func (Message) event()     {}
func (Receipt) event()     {}
func (Reaction) event()    {}
func (Deletion) event()    {}
func (Edit) event()        {}
func (Vote) event()        {}
func (GroupChange) event() {}
func (Alias) event()       {}
func (Pairing) event()     {}
func (Restriction) event() {}
func (Ban) event()         {}

// ToChat returns the chat of a message by a contact.
func ToChat(from parley.ContactID, group parley.GroupID) parley.ContactID {
	if group != "" {
		return group.Chat()
	}
	return from
}
