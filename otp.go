package parley

import (
	"strings"
	"time"
)

// OTPID names a one-time code ("otc_…") or a login link ("otl_…").
type OTPID string

func NewCodeID() OTPID { return OTPID("otc_" + TimedHex(12)) }

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

	// Tried lists the channels that had their turn to carry it; nil: the request named none, so that Channel alone did.
	Tried []ChannelCode
}

// Fallback is how a code goes from channel to channel until one of them has sent it. The code belongs to the first one.
type Fallback struct {
	ID        OTPID         `json:"-"` // of the code
	Channel   ChannelCode   `json:"-"` // the one that the code belongs to
	DueAt     time.Time     `json:"-"` // when the next channel may have to carry it, by the clock of the current one; zero: never
	ExpiresAt time.Time     `json:"-"` // as the code does
	Channels  []FallbackHop `json:"channels"`
	Turns     int           `json:"turns"` // how many channels had their turn; the current one is the last of them
	// Message is the copy on the current channel; empty: the channel has not accepted one yet.
	Message MessageID `json:"message,omitempty"`

	// What the copies have in common.
	To       ContactID `json:"to"`
	Request  string    `json:"request,omitempty"`
	Token    TokenID   `json:"token,omitempty"`
	Priority Priority  `json:"priority"`
}

// FallbackHop is a channel that may carry a code. A later channel with the same code has another id.
type FallbackHop struct {
	ID   int64       `json:"id"`
	Code ChannelCode `json:"code"`
}

// Current is the channel whose turn it is.
func (f Fallback) Current() FallbackHop { return f.Channels[f.Turns-1] }

// Tried lists the channels that had their turn.
func (f Fallback) Tried() []ChannelCode {
	tried := make([]ChannelCode, f.Turns)
	for i := range tried {
		tried[i] = f.Channels[i].Code
	}
	return tried
}

// FallsBack reports whether another channel may send what one failed to send for this reason. It may not if the contact cannot
// or does not want to be reached, or if the message may have arrived.
func (c FailureCode) FallsBack() bool {
	switch c {
	case Restricted, QuotaReached, PaymentProblem, TemplateProblem, Refused, Unsupported, GaveUp:
		return true
	}
	return false
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

// MaxOTPTries is how many wrong tries lock a code or end a link: with six digits a guesser then hits
// once in 200,000 codes.
const MaxOTPTries = 5

// LinkTry is a message that carries the code of a login link.
type LinkTry struct {
	From   ContactID
	Alias  ContactID // another spelling of the sender's number, under which the link was asked for; empty: none
	Edited bool      // the prompt was changed
	At     time.Time
}

// LinkOutcome is what follows from a try.
type LinkOutcome struct {
	Reply    LinkReply
	Event    EventType // to publish; empty: none
	Reason   string    // why it failed, for the event
	Callback string    // the address to call; empty: none
}

// LinkReply says which of a link's messages is the reply to a try.
type LinkReply int

const (
	ReplySuccess LinkReply = iota
	ReplyFailed
	ReplyExpired
)

// Why a try to use a login link failed.
const (
	WrongSender  = "wrong_sender"  // somebody else sent it
	NumberHidden = "number_hidden" // the sender hides the number: nobody knows who it is
	EditedPrompt = "edited_prompt" // the right contact sent something else with it
)

// maxReportedOthers is how many tries by others are reported for a link. Later ones are only counted: who
// has a link's code and another phone could cause any number of events and callbacks.
const maxReportedOthers = 5

// StatusAt is the status of the link at a time, whether or not its expiry is stored yet.
func (l OTPLink) StatusAt(now time.Time) OTPStatus {
	if l.Status == OTPStatusPending && !now.Before(l.ExpiresAt) {
		return OTPStatusExpired
	}
	return l.Status
}

// Try returns the link as it is after somebody tried to use it, and what follows. A link is approved
// once: by the right contact, with the unchanged prompt, in time. A failed try does not use it up, but the right contact has
// only so many. A try on a link that has ended gets a reply and publishes no event: its caller knows how it ended.
func (l OTPLink) Try(t LinkTry) (OTPLink, LinkOutcome) {
	if was := l.Status; l.StatusAt(t.At) != OTPStatusPending {
		l.Status = l.StatusAt(t.At)
		if l.EndedAt.IsZero() {
			l.EndedAt = l.ExpiresAt
		}
		switch {
		case l.Status != OTPStatusExpired:
			return l, LinkOutcome{Reply: ReplyFailed}
		case was == OTPStatusPending:
			return l, LinkOutcome{Reply: ReplyExpired, Event: OTPExpired}
		}
		return l, LinkOutcome{Reply: ReplyExpired}
	}
	failed := LinkOutcome{Reply: ReplyFailed, Event: OTPFailed, Callback: l.OnFailure}
	switch {
	case t.From.IsHidden(), t.From != l.Contact && t.Alias != l.Contact:
		if l.Others++; l.Others > maxReportedOthers {
			return l, LinkOutcome{Reply: ReplyFailed}
		}
		failed.Reason = WrongSender
		if t.From.IsHidden() {
			failed.Reason = NumberHidden
		}
		return l, failed
	case t.Edited:
		if l.Tries++; l.Tries >= MaxOTPTries {
			l.Status, l.EndedAt = OTPStatusLocked, t.At
		}
		failed.Reason = EditedPrompt
		return l, failed
	}
	l.Status, l.EndedAt = OTPStatusApproved, t.At
	return l, LinkOutcome{Reply: ReplySuccess, Event: OTPApproved, Callback: l.OnSuccess}
}

// Text returns the reply to a try, with the code and the name yet to be filled in.
func (m LinkMessages) Text(a LinkReply) string {
	switch a {
	case ReplySuccess:
		return m.Success
	case ReplyExpired:
		return m.Expired
	}
	return m.Failed
}

// OTPAlarm is what was last noticed of an attack on a channel.
type OTPAlarm struct {
	Channel ChannelCode
	Type    EventType // OTPPaused or OTPGuessing
	At      time.Time
	Until   time.Time // it holds until then
	Count   int       // codes to strangers, or wrong tries
}

func NewPauseEvent(a OTPAlarm, approved int) *Event {
	type data struct {
		Codes    int    `json:"codes"`
		Approved int    `json:"approved"`
		Until    string `json:"until"`
	}
	return &Event{Type: OTPPaused, Channel: a.Channel, At: a.At, Data: eventData(data{a.Count, approved, Stamp(a.Until)})}
}

func NewGuessingEvent(a OTPAlarm) *Event {
	type data struct {
		Tries int `json:"tries"`
	}
	return &Event{Type: OTPGuessing, Channel: a.Channel, At: a.At, Data: eventData(data{a.Count})}
}
