// Package rule has the limits on one-time codes: how often one is requested, tried and sent to strangers.
package rule

import (
	"cmp"
	"slices"
	"time"

	"parley"
)

// Ledger is what is known of the codes of one contact on one channel. Its rules are in its methods.
type Ledger struct {
	// Code is the newest code, whatever became of it. Without an id there was none, or it is forgotten,
	// and only the channel and the contact are set.
	Code     parley.OTPCode
	Wrong    []time.Time // wrong tries, over all codes, oldest first: those that still count
	Requests []time.Time // when codes were asked for, oldest first: those that still count
}

// Limit is a limit that counts what happened to a contact within a time.
type Limit struct {
	Name   string // as header fields call it
	Quota  int
	Window time.Duration
}

// The limits of one-time codes. All but one count for a contact on a channel.
var (
	Pause      = Limit{"otp-send", 1, 20 * time.Second}     // a request, and then a pause
	Requests   = Limit{"otp-send", 5, 10 * time.Minute}     // requests
	PerContact = Limit{"otp-contact", 20, 10 * time.Minute} // requests, over all channels
	Guesses    = Limit{"otp-check", 20, 24 * time.Hour}     // wrong tries, over all codes: a new code does not refill them
)

// Quota is what is left of a limit.
type Quota struct {
	Limit
	Left int
	// Wait is how long until something may happen again, where nothing is left; else until more is left.
	Wait time.Duration
}

// Of returns what is left of the limit after things that happened so long ago. Times in the future count as now: see
// [Ledger.Correct].
func (l Limit) Of(ages []time.Duration) Quota {
	var counted []time.Duration
	for _, age := range ages {
		if age = max(age, 0); age < l.Window {
			counted = append(counted, age)
		}
	}
	slices.SortFunc(counted, func(a, b time.Duration) int { return cmp.Compare(b, a) }) // the oldest first
	q := Quota{Limit: l, Left: max(0, l.Quota-len(counted))}
	if n := len(counted); n > 0 {
		q.Wait = l.Window - counted[max(0, n-l.Quota)]
	}
	return q
}

// tightest returns the quota that forbids for the longest; if none forbids, the last.
func tightest(quotas ...Quota) Quota {
	tight := quotas[len(quotas)-1]
	for _, q := range quotas {
		if q.Left == 0 && (tight.Left > 0 || q.Wait > tight.Wait) {
			tight = q
		}
	}
	return tight
}

func Ages(times []time.Time, now time.Time) []time.Duration {
	ages := make([]time.Duration, len(times))
	for i, at := range times {
		ages[i] = now.Sub(at)
	}
	return ages
}

// Correct replaces times in the future by the current one, and reports whether there were any. Otherwise a clock that was
// ahead for a moment would lock the contact out. Store the ledger afterwards, or the waits end later than announced.
func (l *Ledger) Correct(now time.Time) bool {
	isAhead := func(at time.Time) bool { return at.After(now) }
	changed := false
	for _, times := range []*[]time.Time{&l.Wrong, &l.Requests} {
		if !slices.ContainsFunc(*times, isAhead) {
			continue
		}
		*times, changed = slices.Clone(*times), true // others may hold the ledger too
		for i, at := range *times {
			if isAhead(at) {
				(*times)[i] = now
			}
		}
	}
	c := &l.Code
	if isAhead(c.CreatedAt) {
		c.ExpiresAt = now.Add(c.ExpiresAt.Sub(c.CreatedAt))
		c.CreatedAt, changed = now, true
	}
	if isAhead(c.EndedAt) {
		c.EndedAt, changed = now, true
	}
	return changed
}

// Request returns what is left of the limits for a code to be asked for now; with nothing left it must
// be refused. Elsewhere says how long ago codes for the contact were asked for on other channels.
func (l *Ledger) Request(now time.Time, elsewhere []time.Duration) Quota {
	asked := Ages(l.Requests, now)
	return tightest(
		Guesses.Of(Ages(l.Wrong, now)),
		PerContact.Of(append(elsewhere, asked...)),
		Pause.Of(asked),
		Requests.Of(asked))
}

// Left returns what is left of the requests for codes.
func (l *Ledger) Left(now time.Time, elsewhere []time.Duration) Quota {
	asked := Ages(l.Requests, now)
	return tightest(PerContact.Of(append(elsewhere, asked...)), Requests.Of(asked))
}

// Replace replaces the code by a new one and counts the request.
func (l *Ledger) Replace(c parley.OTPCode) {
	l.Code = c
	l.Requests = append(within(l.Requests, c.CreatedAt, Requests.Window), c.CreatedAt)
	l.Wrong = within(l.Wrong, c.CreatedAt, Guesses.Window)
}

// Try is how a try to use a code ended.
type Try struct {
	ID     parley.OTPID // of the code; empty: none is open
	Status parley.OTPStatus
	Left   int // how many tries are left
}

// Try lets somebody try a code that matches, or does not. It reports how that ended and whether the
// ledger changed; if the code is open no more, this try ended it.
func (l *Ledger) Try(matches bool, now time.Time) (try Try, changed bool) {
	c := &l.Code
	if c.Status != parley.OTPStatusPending || c.ID == "" {
		return l.tryEnded(now), false
	}
	l.Wrong = within(l.Wrong, now, Guesses.Window)
	switch {
	case !now.Before(c.ExpiresAt):
		end(c, parley.OTPStatusExpired, c.ExpiresAt)
	case matches:
		end(c, parley.OTPStatusApproved, now)
		l.Wrong = nil
	default:
		c.Tries++
		l.Wrong = append(l.Wrong, now)
		left := min(parley.MaxOTPTries-c.Tries, Guesses.Quota-len(l.Wrong))
		if left > 0 {
			return Try{ID: c.ID, Status: parley.OTPStatusInvalid, Left: left}, true
		}
		end(c, parley.OTPStatusLocked, now)
	}
	return Try{ID: c.ID, Status: c.Status}, true
}

// tryEnded says how a try ends where no code is open.
func (l *Ledger) tryEnded(now time.Time) Try {
	c := l.Code
	if c.ID != "" && Guesses.Of(Ages(l.Wrong, now)).Left == 0 {
		return Try{ID: c.ID, Status: parley.OTPStatusLocked}
	}
	switch c.Status {
	case parley.OTPStatusExpired, parley.OTPStatusLocked:
		return Try{ID: c.ID, Status: c.Status}
	}
	return Try{Status: parley.OTPStatusInvalid}
}

// end moves an open code to its outcome. Its text is not needed any more.
func end(c *parley.OTPCode, status parley.OTPStatus, at time.Time) {
	c.Status, c.EndedAt, c.Encrypted = status, at, nil
}

// within returns those times that are less than a while ago.
func within(times []time.Time, now time.Time, while time.Duration) []time.Time {
	return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return now.Sub(at) >= while })
}

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
