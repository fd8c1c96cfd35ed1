package parley

import (
	"cmp"
	"time"
)

type Contact struct {
	ID         ContactID
	Name       string
	Username   string // empty: none, or not known
	IsBusiness bool
	IsBlocked  bool
	LastSeenAt time.Time // zero: not known

	// The rest is set only when one contact is read.
	About      string
	Timer      int    // seconds after which new messages of the chat disappear; 0: they stay
	PictureURL string // empty: no picture, or not shown to us
	OnNetwork  bool
}

// Group is a group that a channel is in.
type Group struct {
	ID               GroupID
	Name             string
	CreatedAt        time.Time
	Owner            ContactID
	Restricted       bool // only admins may change its settings
	IsCommunity      bool
	IsOwner          bool // the channel owns it
	JoinApproval     bool // an admin must let people in
	CanAddMember     bool // the channel may add people
	OnlyAdminsSend   bool
	Description      string
	Timer            int // as of a contact
	ParticipantCount int
}

// GroupPatch says what to change in a group; nil: no change.
type GroupPatch struct {
	Name           *string
	Description    *string
	OnlyAdminsEdit *bool // its name, description and settings
	OnlyAdminsSend *bool
	OnlyAdminsAdd  *bool
	JoinApproval   *bool   // an admin must let people in
	Picture        *[]byte // a square JPEG
}

// JoinRequest is somebody who asks to be let into a group.
type JoinRequest struct {
	ID ContactID
	At time.Time
}

type Participant struct {
	ID      ContactID `json:"id"`
	Name    string    `json:"name"`
	IsAdmin bool      `json:"is_admin"`
	IsOwner bool      `json:"is_owner"`
}

// Chat is one row of a channel's chat list.
type Chat struct {
	Contact  ContactID // or the group
	Messages int64     // how many messages it has; also the position of the newest
	LastAt   time.Time
	Archived bool
}

// MinEnding is how many of its last digits a number is found by at least.
const MinEnding = 4

// ChatQuery selects chats. Without contacts and a number it selects all.
type ChatQuery struct {
	Channel  ChannelCode // empty: of all channels
	Contacts []ContactID // with any of these contacts or groups
	Number   string      // or with a number that begins with these digits
	Ending   string      // or with a number that ends with these, at least MinEnding
	After    ChatCursor  // zero: from the newest on
	Limit    int
}

// ChatCursor is a position in the list of chats, newest first.
type ChatCursor struct {
	// At is when the chat was last active, in milliseconds since 1970. In lists that an index sorts alone it is when the first
	// message of that minute came.
	At int64
	ID int64 // of the chat
}

func (c ChatCursor) Compare(other ChatCursor) int {
	return cmp.Or(cmp.Compare(c.At, other.At), cmp.Compare(c.ID, other.ID))
}

// ChatSummary is a chat with its last message.
type ChatSummary struct {
	Channel  ChannelCode
	Chat     ContactID // the contact, or the group
	Archived bool
	Messages int64
	Unread   int // received messages since the last one that was read or sent; at most [MaxUnread]
	Last     Message
	Cursor   ChatCursor
}

// MaxUnread is how many unread messages of a chat are counted.
const MaxUnread = 10

// Page is a window on a list: Limit rows after skipping Offset or, of a list by seq, beyond the seq of a row.
type Page struct {
	Limit  int
	Offset int64
	Beyond int64 // zero: from the beginning of the list
}
