package parley

import (
	"context"
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

// OTPGuardReader reads what protects one-time codes from an attack.
type OTPGuardReader interface {
	// KnowsContact reports whether a contact is known to a channel.
	KnowsContact(ctx context.Context, channel ChannelCode, contact ContactID) (bool, error)
	// Strangers reads to which strangers a channel sent codes: of both lists the newest, up to limit.
	Strangers(ctx context.Context, channel ChannelCode, contact ContactID, now time.Time, limit int) (OTPStrangers, error)
	// OTPAlarms lists the alarms of all channels, also those that hold no longer.
	OTPAlarms(ctx context.Context) ([]OTPAlarm, error)
}

// OTPGuardWriter writes it.
type OTPGuardWriter interface {
	// AddStranger notes that a code is sent to a stranger. Count says that the contact is counted from now
	// on. What is out of all windows is removed.
	AddStranger(ctx context.Context, code OTPCode, count bool) error
	// ApproveContact notes that a contact approved a code, and is known by that.
	ApproveContact(ctx context.Context, code OTPCode) error
	// CountWrongTry counts a wrong try and returns how many there were within the window.
	CountWrongTry(ctx context.Context, channel ChannelCode, at time.Time) (int, error)
	// RaiseOTPAlarm stores an alarm in place of the earlier one of its type, unless that still holds. It
	// reports whether it did.
	RaiseOTPAlarm(ctx context.Context, a OTPAlarm) (bool, error)
	// CorrectOTPTimes replaces the times of a channel's codes, links and alarms that lie in the future by
	// the current time, and moves the ends that depend on them. A clock that was ahead for a moment would
	// lock people out otherwise. The lists of times in a ledger are corrected by [OTPLedger.Correct].
	CorrectOTPTimes(ctx context.Context, channel ChannelCode, now time.Time) error
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

// MustPause reports whether so few codes to strangers were approved that they must pause.
func (s OTPStrangers) MustPause() bool { return s.Codes >= OTPApprovalCodes && 10*s.Approved < s.Codes }

// PauseQuota is the limit of a pause that goes on for a time.
func PauseQuota(wait time.Duration) OTPQuota {
	return OTPQuota{OTPLimit: OTPLimit{"otp-paused", OTPApprovalCodes, OTPApprovalWindow}, Wait: wait}
}

// NewPauseEvent reports that codes to strangers pause.
func NewPauseEvent(a OTPAlarm, approved int) *Event {
	type data struct {
		Codes    int    `json:"codes"`
		Approved int    `json:"approved"`
		Until    string `json:"until"`
	}
	return &Event{Type: OTPPaused, Channel: a.Channel, At: a.At, Data: eventData(data{a.Count, approved, Stamp(a.Until)})}
}

// NewGuessingEvent reports that somebody seems to guess codes.
func NewGuessingEvent(a OTPAlarm) *Event {
	type data struct {
		Tries int `json:"tries"`
	}
	return &Event{Type: OTPGuessing, Channel: a.Channel, At: a.At, Data: eventData(data{a.Count})}
}
