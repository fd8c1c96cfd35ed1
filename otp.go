package parley

import (
	"strings"
	"time"
)

// OTPID names a one-time code ("otc_…") or a login link ("otl_…").
type OTPID string

func NewCodeID() OTPID { return OTPID("otc_" + randomHex(12)) }

func (id OTPID) IsCode() bool { return strings.HasPrefix(string(id), "otc_") }

func NewLinkID() OTPID { return OTPID("otl_" + randomHex(12)) }

// OTPStatus is the status of a code or a link, or how one try ended. The numbers are stored and must
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

func (s OTPStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// OTPCode is a one-time code that was sent to a contact. The code itself is not stored, only a keyed
// hash of it, and the encrypted text as long as that may have to be sent.
type OTPCode struct {
	ID        OTPID
	Channel   ChannelCode
	Contact   ContactID
	Hash      []byte
	Encrypted []byte // the text of the message that carries it; nil once the code ended
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

// OTPLink is a login link: a message with its prompt from the right phone logs its contact in.
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

	// Encrypted is the prompt as it is to be sent, encrypted for [PromptContext]: only on the sandbox
	// network, where a request can have a phone tap the link by its id, and only while the link is open.
	Encrypted []byte
}

// PromptContext is what the encrypted prompt of a link is bound to.
func PromptContext(id OTPID) string { return "prompt of " + string(id) }

// LinkMessages are the texts of a login link. ##code## and ##name## are replaced in each.
type LinkMessages struct {
	Prompt  string `json:"prompt"`  // what the contact sends to the channel
	Success string `json:"success"` // the reply
	Failed  string `json:"failed"`
	Expired string `json:"expired"`
}
