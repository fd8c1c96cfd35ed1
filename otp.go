package parley

import (
	"context"
	"strings"
	"time"
)

// OTPID names a one-time code ("otc_…") or a login link ("otl_…").
type OTPID string

// NewCodeID chooses the id of a one-time code.
func NewCodeID() OTPID { return OTPID("otc_" + randomHex(12)) }

// IsCode reports whether the id is that of a code, not of a link.
func (id OTPID) IsCode() bool { return strings.HasPrefix(string(id), "otc_") }

// NewLinkID chooses the id of a login link.
func NewLinkID() OTPID { return OTPID("otl_" + randomHex(12)) }

// OTPStatus is where a code or a link stands, or how one try ended. The numbers are stored and must
// not change.
type OTPStatus int

const (
	OTPStatusPending  OTPStatus = 0 // open
	OTPStatusApproved OTPStatus = 1 // used, once
	OTPStatusInvalid  OTPStatus = 2 // of a try: the wrong code. Of a link: replaced by a newer one
	OTPStatusExpired  OTPStatus = 3
	OTPStatusLocked   OTPStatus = 4 // too many wrong tries
)

// OTPStatuses lists every status in the order of their numbers.
var OTPStatuses = []OTPStatus{OTPStatusPending, OTPStatusApproved, OTPStatusInvalid, OTPStatusExpired, OTPStatusLocked}

var otpStatusNames = []string{"PENDING", "APPROVED", "INVALID", "EXPIRED", "LOCKED"}

func (s OTPStatus) String() string { return otpStatusNames[s] }

// MarshalText writes the status as callers see it.
func (s OTPStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// OTPCode is a one-time code that was sent to a contact. The code itself is not kept, only a keyed
// hash of it, and the encrypted text as long as that may have to be sent.
type OTPCode struct {
	ID        OTPID
	Channel   ChannelCode
	Contact   ContactID
	Hash      []byte
	Sealed    []byte // the text of the message that carries it; nil once the code ended
	Status    OTPStatus
	Tries     int // wrong ones
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero: it is open
}

// OTPLedger is what is known of the codes of one contact on one channel. Its rules are in its methods.
type OTPLedger struct {
	// Code is the newest code, whatever became of it. Without an id there was none, or it is forgotten,
	// and only the channel and the contact are set.
	Code     OTPCode
	Wrong    []time.Time // wrong tries, over all codes, oldest first: those that still count
	Requests []time.Time // when codes were asked for, oldest first: those that still count
}

// OTPLink is a login link: whoever sends its prompt from the right phone is who they say.
type OTPLink struct {
	ID        OTPID
	Channel   ChannelCode
	Contact   ContactID
	Hash      []byte // keyed, of the code
	Name      string // of the application
	Messages  LinkMessages
	OnSuccess string // address to call; empty: none
	OnFailure string
	Status    OTPStatus
	Tries     int // wrong ones, by the right contact
	Others    int // tries by anybody else: counted, and nothing follows from them
	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero: it is open

	// Sealed is the prompt as it is to be sent, encrypted for [SealedPrompt]: only on the sandbox
	// network, where a phone can be told to tap the link by its id, and only while the link is open.
	Sealed []byte
}

// SealedPrompt is what the encrypted prompt of a link is bound to.
func SealedPrompt(id OTPID) string { return "prompt of " + string(id) }

// LinkMessages are the texts of a login link. In each, ##code## and ##name## stand for what they say.
type LinkMessages struct {
	Prompt  string `json:"prompt"`  // what the contact sends to the channel
	Success string `json:"success"` // what is answered
	Failed  string `json:"failed"`
	Expired string `json:"expired"`
}

// OTPReader reads codes and links.
type OTPReader interface {
	// Ledger reads what is known of the codes of a contact on a channel. If that is nothing, it is a
	// ledger without a code, and no error.
	Ledger(ctx context.Context, channel ChannelCode, contact ContactID) (OTPLedger, error)
	// Ledgers reads what every channel knows of a contact's codes.
	Ledgers(ctx context.Context, contact ContactID) ([]OTPLedger, error)
	// OTPsDue reports whether a channel has open links that are past their time, or open codes whose
	// time came after one and not after the other.
	OTPsDue(ctx context.Context, channel ChannelCode, after, now time.Time) (bool, error)
	// Code finds a code that is still a contact's newest.
	Code(ctx context.Context, id OTPID) (OTPCode, error)

	Link(ctx context.Context, id OTPID) (OTPLink, error)
	// LinksByHash finds those of a channel's links that have one of these keyed hashes of their code.
	LinksByHash(ctx context.Context, channel ChannelCode, hashes [][]byte) ([]OTPLink, error)
	// RecentCodes and RecentLinks list a channel's codes and links, newest first: as many as asked for of
	// those that end last. A code is listed while it is its contact's newest.
	RecentCodes(ctx context.Context, channel ChannelCode, limit int) ([]OTPCode, error)
	RecentLinks(ctx context.Context, channel ChannelCode, limit int) ([]OTPLink, error)
	// LinkReplies lists when a sender was answered, since a time, oldest first.
	LinkReplies(ctx context.Context, channel ChannelCode, to ContactID, since time.Time) ([]time.Time, error)
}

// OTPWriter writes codes and links.
type OTPWriter interface {
	// PutLedger stores all of a ledger, with a new code in it.
	PutLedger(ctx context.Context, l OTPLedger) error
	// UpdateLedger stores what a try changes: the code's status, tries and end, and the wrong tries. The
	// text of a code that ended is removed.
	UpdateLedger(ctx context.Context, l OTPLedger) error
	// ExpireCodes ends up to limit open codes of a channel whose time came after one and not after the
	// other, and returns them, the earliest first. Where it ended all up to some time, that is where to
	// go on from: to look through those that ended long ago would take longer each time.
	ExpireCodes(ctx context.Context, channel ChannelCode, after, now time.Time, limit int) ([]OTPCode, error)

	// AddLink stores a new link and ends the one that the contact had open on the channel: it becomes
	// invalid, and loses what was sealed.
	AddLink(ctx context.Context, l OTPLink) error
	// UpdateLink stores status, tries, others' tries and end of a link. One that ended loses what was
	// sealed.
	UpdateLink(ctx context.Context, l OTPLink) error
	// AddLinkReply notes that a sender is answered.
	AddLinkReply(ctx context.Context, channel ChannelCode, to ContactID, at time.Time) error
	// ExpireLinks ends up to limit open links of a channel that are past their time, and returns them.
	// They lose what was sealed.
	ExpireLinks(ctx context.Context, channel ChannelCode, now time.Time, limit int) ([]OTPLink, error)

	// ForgetOTPs removes up to limit rows of each kind of a channel from before a time: codes that were
	// to end before it, links that did. It returns how many.
	ForgetOTPs(ctx context.Context, channel ChannelCode, before time.Time, limit int) (int, error)
}
