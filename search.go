package parley

import (
	"context"
	"time"
)

// MessageQuery says which records are looked for, over all channels. The zero value is all of them.
type MessageQuery struct {
	Channel ChannelCode
	Contact ContactID
	Number  string // digits that the contact's number begins with; where they are somebody's whole number, that one's alone
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

// MessageFacts is the little of a message that is cheap to look up for many.
type MessageFacts struct {
	Seq       int64
	FromMe    bool
	CreatedAt time.Time
}

// MessageSearcher finds messages by other things than their id or their chat.
type MessageSearcher interface {
	// FindMessages looks for records, newest first, in steps of bounded work.
	FindMessages(ctx context.Context, q MessageQuery) (MessagePage, error)
	// Facts looks up messages by their Seqs, in any order. Those that are not there are left out.
	Facts(ctx context.Context, seqs []int64) ([]MessageFacts, error)
	// Secrets finds those messages that carry one-time codes among all from one Seq to another.
	Secrets(ctx context.Context, from, to int64) ([]MessageFacts, error)
	// Reactions lists the emojis now standing on a message, by its Seq.
	Reactions(ctx context.Context, seq int64) ([]string, error)
	// KeyOf finds the idempotency key of the request that sent a message, if it had one that is still
	// kept. It looks among the requests of that time, so many and no more.
	KeyOf(ctx context.Context, m *Message) (string, error)
}

// Trace is an event without what it tells: enough to count it.
type Trace struct {
	Seq     int64
	Type    EventType
	Channel ChannelCode
	At      time.Time
	Message int64  // the Seq of the message that it is about; zero: it is about none
	Status  Status // that the message got or had
}

// EventTracer looks into the event log without reading all of it.
type EventTracer interface {
	// Traces visits the log after a place, in order: about limit events. It returns how far it got: nothing
	// is left when that is the place it was asked for. The visitor must not use the store.
	Traces(ctx context.Context, after int64, limit int, visit func(Trace)) (reached int64, err error)
	// PlaceBefore is a place in the log that everything since a time comes after.
	PlaceBefore(ctx context.Context, at time.Time) (int64, error)
	// EventsAbout lists events of a message, in order: those from soon after it was made, from about when
	// its status last changed, and of late. What lies far from all of these is not looked for.
	EventsAbout(ctx context.Context, m *Message) ([]Event, error)
	// ChannelStates lists what a channel's status was since a time, newest first, up to limit changes, and
	// the one before that, which lasted into it.
	ChannelStates(ctx context.Context, code ChannelCode, since time.Time, limit int) ([]ChannelState, error)
}
