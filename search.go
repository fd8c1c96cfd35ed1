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

// MessageSearcher finds messages by other things than their id or their chat.
type MessageSearcher interface {
	// FindMessages looks for records, newest first, in steps of bounded work.
	FindMessages(ctx context.Context, q MessageQuery) (MessagePage, error)
	// Reactions lists the emojis now standing on a message, by its Seq.
	Reactions(ctx context.Context, seq int64) ([]string, error)
}

// EventTracer looks into the event log without reading all of it.
type EventTracer interface {
	// EventsAbout lists the events of a message, in order.
	EventsAbout(ctx context.Context, m *Message) ([]Event, error)
	// ChannelStates lists what a channel's status was since a time, newest first, up to limit changes, and
	// the one before that, which lasted into it.
	ChannelStates(ctx context.Context, code ChannelCode, since time.Time, limit int) ([]ChannelState, error)
}

// CounterReader reads what was counted.
type CounterReader interface {
	// Counters sums what happened since a time, over all channels.
	Counters(ctx context.Context, since time.Time) (map[Counter]int64, error)
	// CountersByMinute lists what happened in each minute since a time, which are numbered since 1970, over all channels.
	CountersByMinute(ctx context.Context, since time.Time) (map[int64]map[Counter]int64, error)
	// ChannelActivity lists what happened on each channel since a time, to the hour.
	ChannelActivity(ctx context.Context, since time.Time) (map[ChannelCode]ChannelActivity, error)
}
