package parley

import (
	"time"
)

// A contact is known to a channel if it has written to it, approved a code, or received something other than
// a code. All others are strangers: somebody who requests codes for one made-up number after the other
// requests them for strangers. These limits hold for a channel.
const (
	OTPStrangerWindow = time.Hour // in which strangers, and numbers that share a prefix, are counted

	// Where so many codes went to strangers within the window and fewer than a tenth were approved, codes to
	// strangers pause.
	OTPApprovalWindow = 30 * time.Minute
	OTPApprovalCodes  = 50
	OTPPauseLength    = 15 * time.Minute

	// More wrong tries than this within the window, over all contacts, raise an alarm. Nobody is locked out:
	// that would be the attack.
	OTPGuessWindow = time.Hour
	OTPGuessLimit  = 500
)

// OTPStrangers is what counts towards the limits on codes to strangers, for one contact of a channel.
type OTPStrangers struct {
	Counted bool        // the contact was counted within the window, and may ask again
	Since   []time.Time // when strangers were counted, newest first
	Alike   []time.Time // when numbers were that share all but their last 4 digits with the contact's, newest first

	Codes, Approved int       // codes to strangers within the window of approvals, or since the last pause if that is later
	PausedUntil     time.Time // zero: they never paused
}

// OTPAlarm is what was last noticed of an attack on a channel.
type OTPAlarm struct {
	Channel ChannelCode
	Type    EventType // OTPPaused or OTPGuessing
	At      time.Time
	Until   time.Time // it holds until then
	Count   int       // codes to strangers, or wrong tries
}

// Limits returns the limits on strangers as they are now. Zero is no limit, and not among them.
func (s OTPStrangers) Limits(strangers, alike int, now time.Time) []OTPQuota {
	var quotas []OTPQuota
	if wait := s.PausedUntil.Sub(now); wait > 0 {
		quotas = append(quotas, PauseQuota(wait))
	}
	if s.Counted {
		return quotas
	}
	if strangers > 0 {
		quotas = append(quotas, OTPLimit{"otp-contacts", strangers, OTPStrangerWindow}.Of(Ages(s.Since, now)))
	}
	if alike > 0 {
		quotas = append(quotas, OTPLimit{"otp-prefix", alike, OTPStrangerWindow}.Of(Ages(s.Alike, now)))
	}
	return quotas
}

func (s OTPStrangers) MustPause() bool { return s.Codes >= OTPApprovalCodes && 10*s.Approved < s.Codes }

// PauseQuota is the limit of a pause that goes on for a time.
func PauseQuota(wait time.Duration) OTPQuota {
	return OTPQuota{OTPLimit: OTPLimit{"otp-paused", OTPApprovalCodes, OTPApprovalWindow}, Wait: wait}
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
