package rule

import (
	"time"
)

// A contact is known to a channel if it has written to it, approved a code, or received something other than
// a code. All others are strangers: somebody who requests codes for one made-up number after the other
// requests them for strangers. These limits hold for a channel.
const (
	StrangerWindow = time.Hour // in which strangers, and numbers that share a prefix, are counted

	// Where so many codes went to strangers within the window and fewer than a tenth were approved, codes to
	// strangers pause.
	ApprovalWindow = 30 * time.Minute
	ApprovalCodes  = 50
	PauseLength    = 15 * time.Minute

	// More wrong tries than this within the window, over all contacts, raise an alarm. Nobody is locked out:
	// that would be the attack.
	GuessWindow = time.Hour
	GuessLimit  = 500
)

// Strangers is what counts towards the limits on codes to strangers, for one contact of a channel.
type Strangers struct {
	Counted bool        // the contact was counted within the window, and may ask again
	Since   []time.Time // when strangers were counted, newest first
	Alike   []time.Time // when numbers were that share all but their last 4 digits with the contact's, newest first

	Codes, Approved int       // codes to strangers within the window of approvals, or since the last pause if that is later
	PausedUntil     time.Time // zero: they never paused
}

// Limits returns the limits on strangers as they are now. Zero is no limit, and not among them.
func (s Strangers) Limits(strangers, alike int, now time.Time) []Quota {
	var quotas []Quota
	if wait := s.PausedUntil.Sub(now); wait > 0 {
		quotas = append(quotas, PauseQuota(wait))
	}
	if s.Counted {
		return quotas
	}
	if strangers > 0 {
		quotas = append(quotas, Limit{"otp-contacts", strangers, StrangerWindow}.Of(Ages(s.Since, now)))
	}
	if alike > 0 {
		quotas = append(quotas, Limit{"otp-prefix", alike, StrangerWindow}.Of(Ages(s.Alike, now)))
	}
	return quotas
}

func (s Strangers) MustPause() bool { return s.Codes >= ApprovalCodes && 10*s.Approved < s.Codes }

// PauseQuota is the limit of a pause that goes on for a time.
func PauseQuota(wait time.Duration) Quota {
	return Quota{Limit: Limit{"otp-paused", ApprovalCodes, ApprovalWindow}, Wait: wait}
}
