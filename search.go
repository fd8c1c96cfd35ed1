package parley

import (
	"time"
)

// MessageQuery selects messages over all channels. The zero value selects all.
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
