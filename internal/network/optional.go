package network

import (
	"context"
	"time"

	"parley"
)

// Typist is a session that can show that somebody is typing.
type Typist interface {
	// Typing shows or hides "typing…" to a contact or in a group.
	Typing(ctx context.Context, to parley.ContactID, on bool) error
}

// Directory is a session that knows contacts.
type Directory interface {
	// Contacts lists those the account knows, by name, then number, and how many there are.
	Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error)
	// Contact returns everything known of one contact, also of one that is not in the list.
	Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error)
	// CheckNumber reports whether a phone number is on the network, and its contact id as requested.
	CheckNumber(ctx context.Context, number string) (id parley.ContactID, exists bool, err error)
}

// Blocker is a session that can block contacts: what they write to the account does not arrive.
type Blocker interface {
	SetBlocked(ctx context.Context, id parley.ContactID, blocked bool) error
}

// CallRejecter is a session that can reject calls. The sink may call it.
type CallRejecter interface {
	RejectCall(ctx context.Context, c PhoneCall) error
}

// Groups is a session whose network has groups; see [Info.Groups].
type Groups interface {
	// Groups lists the groups that the account is in, by name, and how many there are.
	Groups(ctx context.Context, page parley.Page) ([]parley.Group, int64, error)
	// CreateGroup creates a group. If the network may have created it despite an error, the class is Unknown.
	CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (parley.Group, error)
	// Participants lists a group's members; an unknown group is parley.ErrNotFound.
	Participants(ctx context.Context, id parley.GroupID) ([]parley.Participant, error)
	// UpdateParticipants adds members to a group, or removes them. It returns one error for each: nil if it is done, or
	// was so before. An unknown group is parley.ErrNotFound.
	UpdateParticipants(ctx context.Context, id parley.GroupID, add bool, members []parley.ContactID) ([]error, error)
	// LeaveGroup leaves a group; an unknown group is parley.ErrNotFound.
	LeaveGroup(ctx context.Context, id parley.GroupID) error
	// InviteLink returns the address with which others can join a group; an unknown group is parley.ErrNotFound.
	InviteLink(ctx context.Context, id parley.GroupID) (string, error)
}

// GroupAdmin is a session that can administrate groups. An unknown group is parley.ErrNotFound. What the account may not do is refused.
type GroupAdmin interface {
	// SetAdmins makes members admins, or takes that away. It returns one error for each, like UpdateParticipants.
	SetAdmins(ctx context.Context, id parley.GroupID, admin bool, members []parley.ContactID) ([]error, error)
	ChangeGroup(ctx context.Context, id parley.GroupID, change parley.GroupPatch) error
	// JoinGroup joins a group by its invite link. waits: an admin has to let the account in. A link to nowhere is parley.ErrNotFound.
	JoinGroup(ctx context.Context, link string) (id parley.GroupID, waits bool, err error)
	// JoinRequests lists who asks to be let in.
	JoinRequests(ctx context.Context, id parley.GroupID) ([]parley.JoinRequest, error)
	// AnswerRequests lets people in, or turns them away. It returns one error for each.
	AnswerRequests(ctx context.Context, id parley.GroupID, approve bool, members []parley.ContactID) ([]error, error)
}

// Pairer is a session whose account is paired, and can be logged out; see [Info.Pairing].
type Pairer interface {
	// Pair starts pairing. The sink gets its steps.
	Pair(ctx context.Context) error
	// Logout ends the account's pairing.
	Logout(ctx context.Context) error
}

// PairByCode is a Pairer whose account can also be paired by a code that is typed on its phone.
type PairByCode interface {
	// PairWithCode is Pair with a code for the phone with this number, in any spelling with its country code. An
	// invalid number is parley.Invalid on the field "number".
	PairWithCode(ctx context.Context, number string) error
}

// PairByPasskey is a Pairer whose network can ask for a passkey during a pairing: see [parley.PasskeyStep].
type PairByPasskey interface {
	// Passkey hands in the response of the authenticator, as the JSON of WebAuthn. Nil: a person compared the code of
	// [parley.ConfirmStep] with the phone's. An invalid one is parley.Invalid on the field "assertion".
	Passkey(ctx context.Context, assertion []byte) error
}

// QueueAware is a session that tries harder to reconnect while messages wait for it.
type QueueAware interface {
	// WatchQueue passes how to read the number of messages that wait for the session.
	WatchQueue(depth func() int)
}

// Versioned is a driver whose network refuses old clients. The version that it says it is can be changed while it runs.
type Versioned interface {
	// Version returns the version, and when it was set or found; zero: it is the one that the program was built with.
	Version() (number string, since time.Time)
	// SetVersion changes it for the next connections. An invalid one is parley.Invalid on the field "version".
	SetVersion(ctx context.Context, version string) error
}

// Templates is a session whose network has message templates. Errors for callers are parley.Error.
type Templates interface {
	// Templates lists them by name and language. The list may be some minutes old.
	Templates(ctx context.Context) ([]parley.TemplateInfo, error)
	// CreateTemplate creates one, which the network may have to approve first. It returns it as it is then.
	CreateTemplate(ctx context.Context, t parley.TemplateInfo, examples []string) (parley.TemplateInfo, error)
	// DeleteTemplate deletes one in all its languages; an unknown one is parley.ErrNotFound.
	DeleteTemplate(ctx context.Context, name string) error
}

// Enroller is a driver whose channels get their account by credentials that a caller gives, and not by pairing.
type Enroller interface {
	// CheckAccount asks the network about an account, as JSON, and returns what SetAccount stores. What is missing in it stays as it is on
	// the channel, which may be a new one without an ID. An error for the caller names the field that is wrong.
	CheckAccount(ctx context.Context, channel parley.Channel, given []byte) (checked []byte, err error)
	// SetAccount stores an account. The network is to call address from then on; empty: nobody can reach us.
	SetAccount(ctx context.Context, channel parley.Channel, checked []byte, address string) error
	// Account describes the account of a channel as a response shows it; nil: it has none. whole: also with what only operators may
	// see. Secrets are never in it.
	Account(ctx context.Context, channel parley.Channel, whole bool) (any, error)
}

// Proxied is a driver whose channels can have a proxy of their own.
type Proxied interface {
	// CheckProxy reports whether a channel's proxy connects to the network; nil also if it has none. The error is a sentence.
	CheckProxy(ctx context.Context, c parley.Channel) error
}

// FileChecker is a driver whose network takes only some files.
type FileChecker interface {
	// CheckFile returns why the network does not take the file of a message, as a sentence for the caller; empty: it does, or there is none.
	CheckFile(c parley.Content) string
}

// Examiner is a driver that knows of problems of its channels' accounts.
type Examiner interface {
	// Examine lists the problems of a channel, as far as this process knows: it asks nobody.
	Examine(c parley.Channel) []parley.AccountProblem
}

// Witness is a driver that reports when its channels last worked.
type Witness interface {
	// Evidence returns false for a channel that is not open.
	Evidence(code parley.ChannelCode) (Evidence, bool)
}

// Evidence is when a channel's connection last worked. Zero times: not since its session was opened.
type Evidence struct {
	Connected time.Time // the login succeeded
	Heard     time.Time // anything arrived from the network, such as a pong
	Confirmed time.Time // the network confirmed something that we sent
	Received  time.Time // a message or receipt arrived
	// ClockAhead is how far this machine's clock was ahead of the network's at ClockSeen, within two seconds; negative:
	// behind. It is unknown if ClockSeen is zero. A network may know it modulo a week only.
	ClockAhead time.Duration
	ClockSeen  time.Time
	// NetworkTime is the newest time, with its date, that the network sent; zero: none.
	NetworkTime time.Time
}
