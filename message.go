package parley

import (
	"slices"
	"time"
)

// Message is a message in a chat, or an operation on the chat, such as a reaction or a deletion. Both wait in the same
// queue, so a deletion never overtakes its message. Only kinds with [Kind.InHistory] are part of the chat's history.
type Message struct {
	Seq     int64 // the order in which the gateway accepted messages, over all channels
	Channel ChannelCode
	Chat    ContactID // the contact, or the group
	Author  ContactID // who wrote an inbound message in a group; empty elsewhere
	ID      MessageID
	FromMe  bool
	Content Content
	ReplyTo MessageID // empty: no reply
	Request string    // the id of the request that sent it; empty: none did
	// IdempotencyKey is the one that the request had; empty: none.
	IdempotencyKey string
	Token          TokenID // of the request that sent it; empty: a console session, a contact or the phone itself did

	Status  Status
	Failure *Failure // why, when Status is Failed

	// Copies is how often the network may have the message: 0 once, as usual; 1 perhaps twice; above that so many times, as the network
	// confirmed.
	Copies int

	Priority    Priority  // what goes ahead of what in the channel's queue
	Pool        PoolID    // after one of a pool fails, the later ones are not sent
	Attempts    int       // how often sending was tried and failed
	NextAttempt time.Time // not to be tried before; zero: at once
	ExpiresAt   time.Time // not to be sent after

	CreatedAt  time.Time // by the network's clock
	ReceivedAt time.Time // when the gateway accepted or received it, which retention counts from; zero: at CreatedAt
	UpdatedAt  time.Time // when Status last changed
	EditedAt   time.Time // when its text was last changed; zero: never

	Starred   bool
	Reactions []string // filled where history is read
	// OwnReaction is the channel's own emoji among them, filled with them; empty: none.
	OwnReaction string
	// QuotedBody is the text of the message that ReplyTo names, filled where history is read; empty: it is not stored.
	QuotedBody string
	// Votes counts the votes for each option of a poll, filled where history is read.
	Votes map[string]int
}

// SentOnPhone reports whether the owner of the account wrote the message on the phone or on another linked device: such a message never
// waited here, and cannot expire.
func (m *Message) SentOnPhone() bool { return m.FromMe && m.ExpiresAt.IsZero() }

func (m *Message) Ref() MessageRef {
	return MessageRef{FromMe: m.FromMe, Chat: m.Chat, ID: m.ID}
}

// Queued is a message that waits to be sent, without what it says.
type Queued struct {
	Seq         int64
	Chat        ContactID
	ID          MessageID
	Kind        Kind
	Priority    Priority
	Pool        PoolID
	Attempts    int
	NextAttempt time.Time
	ExpiresAt   time.Time
}

// Queued returns what the queue holds of the message.
func (m *Message) Queued() Queued {
	return Queued{Seq: m.Seq, Chat: m.Chat, ID: m.ID, Kind: m.Content.Kind(), Priority: m.Priority, Pool: m.Pool,
		Attempts: m.Attempts, NextAttempt: m.NextAttempt, ExpiresAt: m.ExpiresAt}
}

func (q *Queued) Ref() MessageRef { return MessageRef{FromMe: true, Chat: q.Chat, ID: q.ID} }

// Priority orders the queue of a channel: what has a higher one leaves first. The numbers are stored and
// must not change.
type Priority int

const (
	PriorityNormal   Priority = 0
	PriorityStranger Priority = 1 // a one-time code for a contact that the channel does not know
	PriorityKnown    Priority = 2 // a one-time code for a known contact, or the reply to a login link or to an opt-out
)

// Priorities is how many there are.
const Priorities = 3

// Waiting is why a message has not been sent yet.
type Waiting struct {
	Reason WaitingReason
	Until  time.Time // zero: unknown
}

type WaitingReason string

const (
	WaitsForPace        WaitingReason = "pace"
	WaitsForRestriction WaitingReason = "restricted" // the network does not let the account write to new contacts
	WaitsForQuota       WaitingReason = "quota"      // the channel is careful: a cap is reached, or it is night
	WaitsForConnection  WaitingReason = "not_connected"
)

// Failure says why a message was not sent.
type Failure struct {
	Code    FailureCode
	Message string    // a sentence
	Until   time.Time // until when the reason holds; zero: not known
}

type FailureCode string

const (
	NotOnNetwork FailureCode = "not_on_network" // the number has no account
	Blocked      FailureCode = "blocked"        // the recipient blocks us
	Restricted   FailureCode = "restricted"     // the network does not let this account write to new contacts now
	Refused      FailureCode = "refused"        // the network refused, for a reason in the message
	Expired      FailureCode = "expired"        // it waited longer than the channel allows
	NotSent      FailureCode = "not_sent"       // an earlier one of its pool failed, its channel went live, or another channel has the code
	GaveUp       FailureCode = "gave_up"        // too many attempts failed
	// AccountChanged: the channel was paired with another account than the one it was accepted for.
	AccountChanged FailureCode = "account_changed"
	Unsupported    FailureCode = "unsupported" // the network has no such thing
	OptedOut       FailureCode = "opted_out"   // the contact asked for no more messages
	QuotaReached   FailureCode = "quota"       // it expired while a cap of the channel was reached

	// Those of the official network.
	OutsideWindow   FailureCode = "outside_window"  // the contact has not written for a day: only templates are allowed
	TemplateProblem FailureCode = "template"        // the template is not approved, or its parameters do not fit
	HeldBack        FailureCode = "held_back"       // the network does not want this contact to get more marketing now
	PaymentProblem  FailureCode = "payment"         // the account cannot pay
	UnknownOutcome  FailureCode = "unknown_outcome" // it may have been sent, and nobody knows
)

// MessageQuery selects messages over all channels. The zero value selects all.
type MessageQuery struct {
	Channel ChannelCode
	Contact ContactID
	Number  string // digits that the contact's number begins with; where they are somebody's whole number, that one's alone
	Ending  string // digits that it ends with, at least MinEnding; with Number: that it begins or ends with
	Status  *Status
	Kind    Kind
	FromMe  *bool
	Since   time.Time // made at this time or later
	Until   time.Time // made before this time
	Text    string    // that their text contains, in upper or lower case

	// Before is the Seq that all must be below, to go on with a search; zero: any.
	Before int64
	Limit  int
}

// MessagePage is what one step of a search found.
type MessagePage struct {
	Messages []Message // by Seq, newest first
	// Next is where to go on from, the next step's Before; zero: everything was looked through. A step
	// looks through so many messages and no more, so it may find few or none although more follow.
	Next int64
}

// Status is the status of a message. It only moves forward; [Status.CanFollow] has the rule. The
// numbers are stored and must not change.
type Status int

const (
	Pending   Status = 0 // durably accepted, not yet confirmed by the network
	Sent      Status = 1 // the network has it
	Delivered Status = 2 // it reached the recipient's phone
	Read      Status = 3 // the recipient saw it; of an inbound message: it was marked as seen
	Played    Status = 4 // the recipient played it (voice)
	Failed    Status = 5 // it will not be sent, or the network reported later that it failed; the message's Failure says why
	Deleted   Status = 6 // it was deleted for everyone
	Received  Status = 7 // inbound, not yet marked as seen
)

var statusNames = []string{"PENDING", "SENT", "DELIVERED", "READ", "PLAYED", "FAILED", "DELETED", "RECEIVED"}

// Statuses lists every status in the order of their numbers.
var Statuses = []Status{Pending, Sent, Delivered, Read, Played, Failed, Deleted, Received}

func (s Status) String() string { return statusNames[s] }

func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// CanFollow reports whether a message in status from may go on to s.
//
// A receipt can overtake the confirmation of the send that it belongs to, so every receipt confirms
// a pending message. What the network has can fail until it is delivered. What failed may still turn out to have arrived. Deleted is
// the end.
func (s Status) CanFollow(from Status) bool { return slices.Contains(s.Before(), from) }

// Before lists the statuses that s can follow.
func (s Status) Before() []Status { return statusesBefore[s] }

var statusesBefore = map[Status][]Status{
	Sent:      {Pending},
	Delivered: {Pending, Sent, Failed},
	Read:      {Pending, Sent, Delivered, Failed, Received},
	Played:    {Pending, Sent, Delivered, Read, Failed},
	Failed:    {Pending, Sent},
	Deleted:   {Pending, Sent, Delivered, Read, Played, Failed, Received},
}

// IsFinal reports whether the outbox is done with a message in this status.
func (s Status) IsFinal() bool { return s != Pending }
