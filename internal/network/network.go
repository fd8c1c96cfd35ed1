package network

import (
	"context"
	"os"
	"time"

	"parley"
)

// Driver opens sessions on one chat network. Its methods may be called from several goroutines.
type Driver interface {
	// Open starts a channel's session and returns without waiting for the network; how it goes is
	// told to the sink as [State]. The session lives until it is closed, not until ctx ends.
	Open(ctx context.Context, channel parley.Channel, sink Sink) (Session, error)

	// Forget removes everything that the driver keeps of a channel whose session is closed.
	Forget(ctx context.Context, code parley.ChannelCode) error
}

// Witness is a driver that can tell when its channels last showed that they work.
type Witness interface {
	// Evidence returns what an open channel last saw; false: it is not open.
	Evidence(code parley.ChannelCode) (Evidence, bool)
}

// Evidence is when a channel's connection last showed that it works. Zero times: never since its session
// was opened.
type Evidence struct {
	Connected time.Time // the account was let in
	Heard     time.Time // anything came from the network, be it the answer to a ping
	Confirmed time.Time // the network confirmed something that we sent
	Received  time.Time // somebody said or did something
	// RestrictedUntil is until when the network does not let the account write to people who never wrote to
	// it; zero: it does, or did not say.
	RestrictedUntil time.Time
	// ClockAhead is how far the clock of this machine was ahead of the network's at ClockSeen, to a second or
	// two; negative: behind. Where ClockSeen is zero it is not known, or was set since.
	// A network may tell it to within a week only.
	ClockAhead time.Duration
	ClockSeen  time.Time
	// NetworkTime is the newest time, with its date, that the network told; zero: none.
	NetworkTime time.Time
}

// Session is a channel's live connection. Its methods may be called from several goroutines and
// answer errors made by this package's constructors, or plain ones, which count as temporary.
type Session interface {
	// Send gives messages and operations to the network, in order, and answers for each one: nil when
	// the network confirmed it. After one fails, the later ones of the same chat are not sent and
	// answer [ErrHeldBack], so that order holds; only behind a [NotReady] one they are sent. The network
	// knows a message by its ID: given the same ID again, the recipient sees it once. Calls at the same
	// time never share a chat. ctx ends early when receipts have confirmed everything in the call.
	Send(ctx context.Context, ms []*parley.Message) []error
	// Limits are how many messages one call of Send should carry at most, and how many calls are
	// useful at once. Both are at least 1.
	Limits() (burst, calls int)

	// Fetch writes the file that a [Message] refers to into an empty file, as it comes: it is never whole in
	// memory. It is not called by the sink, and must not hold up what arrives. After a Permanent error it is
	// not tried again; after any other it is, with what was written removed.
	Fetch(ctx context.Context, reference []byte, to *os.File) error

	// Typing shows or hides "typing…" to a contact.
	Typing(ctx context.Context, to parley.ContactID, on bool) error

	// Contacts lists those the account knows, by name, then number, and how many there are.
	Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error)
	// Contact tells all that is known of one contact, whether or not it is in the list.
	Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error)
	// CheckNumber asks whether a phone number is on the network, and under which contact id, as it was asked for.
	CheckNumber(ctx context.Context, number string) (id parley.ContactID, exists bool, err error)

	// Groups lists the groups that the account is in, by name, and how many there are.
	Groups(ctx context.Context, page parley.Page) ([]parley.Group, int64, error)
	// CreateGroup makes a group. Where the network may have made it nevertheless, the error's class is Unknown.
	CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (parley.Group, error)
	// Participants lists a group's members; an unknown group is parley.ErrNotFound.
	Participants(ctx context.Context, id parley.GroupID) ([]parley.Participant, error)

	// Pair begins to pair the account anew; how it goes is told to the sink.
	Pair(ctx context.Context) error
	// Logout ends the account's pairing.
	Logout(ctx context.Context) error
	// Close ends the session, waiting for calls of the sink under way. It may be called twice.
	Close() error
}

// QueueAware is a session that tries harder to reconnect while messages wait for it.
type QueueAware interface {
	// WatchQueue passes how to read the number of messages that wait for the session.
	WatchQueue(depth func() int)
}

// PairByCode is a session whose account can also be linked by a code that is typed on its phone, without a
// second screen to scan.
type PairByCode interface {
	// PairWithCode is Pair with a code for the phone with this number, in any spelling with its country
	// code; one that is none makes it parley.Invalid on the field "number".
	PairWithCode(ctx context.Context, number string) error
}

// Sink takes what arrives on a session. Events of one chat are given in order, the next one only
// after the sink returned. The context ends when the session is being closed.
type Sink func(ctx context.Context, e Event) error

// Event is something that arrives from a network. The types below are all there are.
type Event interface{ event() }

// State tells how a session's connection stands now. It is given at every change.
type State struct {
	Status parley.ChannelStatus
	Reason string // a sentence; empty while all is well
	Phone  Phone  // zero where not known yet
}

// Phone is the account behind a channel.
type Phone struct {
	Name   string
	Number string // digits
}

// Message is a message that somebody sent to the channel, in a chat of the two: what is said in groups
// and broadcasts, or by the account's own devices, is none. From is who the network says it is, by
// phone number. The same message may be given again: the sink keeps it once.
type Message struct {
	From    parley.ContactID
	ID      parley.MessageID
	Content parley.Content
	ReplyTo parley.MessageID
	At      time.Time // by the network's clock, not the sender's
	// File is what [Session.Fetch] needs to get the file that Content carries, also after a restart; nil
	// where it carries none, or none that can be fetched. It may hold keys: it is stored encrypted.
	File []byte
	// Past says that it is not said now: it is an edit of something said before, or history that the
	// network gives again. It is kept, but nothing follows from it: no login, no answer.
	Past bool
	// History says that it was said before the channel was linked to the account, which may be years of
	// messages: they are kept, and nobody is told of them.
	History bool
}

// Receipt tells that messages which the channel sent were delivered, read or played. A sink that
// does not know some of the ids (the receipt overtook the send) takes the others and refuses those with
// [UnknownMessages], to get them again.
type Receipt struct {
	From   parley.ContactID
	IDs    []parley.MessageID
	Status parley.Status
	At     time.Time
}

// Reaction tells that a contact reacted to a message of the chat; an empty emoji takes it back.
type Reaction struct {
	From   parley.ContactID
	Target parley.MessageRef
	Emoji  string
	At     time.Time
}

// Deletion tells that a contact took back a message that it had sent.
type Deletion struct {
	From   parley.ContactID
	Target parley.MessageID
	At     time.Time
}

// Vote tells what a contact now chooses in a poll that the channel sent.
type Vote struct {
	From    parley.ContactID
	Poll    parley.MessageID
	Options []string
	At      time.Time
}

// Alias says that the network spells the number of a contact in another way than we asked for it. The session gives it before
// it uses the network's spelling, and may give it again. Where the sink refuses it, the call that learned it fails.
type Alias struct{ Asked, Contact parley.ContactID }

// Pairing tells a step of linking the channel to an account. Steps are told in order, among the states;
// each is worth knowing only until the next one, so that a step which the sink refuses may be left out.
type Pairing parley.Pairing

func (State) event()    {}
func (Message) event()  {}
func (Receipt) event()  {}
func (Reaction) event() {}
func (Deletion) event() {}
func (Vote) event()     {}
func (Alias) event()    {}
func (Pairing) event()  {}
