package parley

import (
	"cmp"
	"slices"
	"time"
)

// MaxOTPTries is how many wrong tries lock a code or end a link: with six digits a guesser then hits
// once in 200,000 codes.
const MaxOTPTries = 5

// OTPLimit is a limit that counts what happened to a contact within a time.
type OTPLimit struct {
	Name   string // as header fields call it
	Quota  int
	Window time.Duration
}

// The limits of one-time codes. All but one count for a contact on a channel.
var (
	OTPPause    = OTPLimit{"otp-send", 1, 20 * time.Second}     // a request, and then a pause
	OTPRequests = OTPLimit{"otp-send", 5, 10 * time.Minute}     // requests
	OTPContact  = OTPLimit{"otp-contact", 20, 10 * time.Minute} // requests, over all channels
	OTPGuesses  = OTPLimit{"otp-check", 20, 24 * time.Hour}     // wrong tries, over all codes: a new code does not refill them
)

// OTPQuota is what is left of a limit.
type OTPQuota struct {
	OTPLimit
	Left int
	// Wait is how long until something may happen again, where nothing is left; else until more is left.
	Wait time.Duration
}

// Of returns what is left of the limit after things that happened so long ago. Times in the future count as now: see
// [OTPLedger.Correct].
func (l OTPLimit) Of(ages []time.Duration) OTPQuota {
	var counted []time.Duration
	for _, age := range ages {
		if age = max(age, 0); age < l.Window {
			counted = append(counted, age)
		}
	}
	slices.SortFunc(counted, func(a, b time.Duration) int { return cmp.Compare(b, a) }) // the oldest first
	q := OTPQuota{OTPLimit: l, Left: max(0, l.Quota-len(counted))}
	if n := len(counted); n > 0 {
		q.Wait = l.Window - counted[max(0, n-l.Quota)]
	}
	return q
}

// tightest returns the quota that forbids for the longest; if none forbids, the last.
func tightest(quotas ...OTPQuota) OTPQuota {
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
func (l *OTPLedger) Correct(now time.Time) bool {
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
func (l *OTPLedger) Request(now time.Time, elsewhere []time.Duration) OTPQuota {
	asked := Ages(l.Requests, now)
	return tightest(
		OTPGuesses.Of(Ages(l.Wrong, now)),
		OTPContact.Of(append(elsewhere, asked...)),
		OTPPause.Of(asked),
		OTPRequests.Of(asked))
}

// Left returns what is left of the requests for codes.
func (l *OTPLedger) Left(now time.Time, elsewhere []time.Duration) OTPQuota {
	asked := Ages(l.Requests, now)
	return tightest(OTPContact.Of(append(elsewhere, asked...)), OTPRequests.Of(asked))
}

// Replace replaces the code by a new one and counts the request.
func (l *OTPLedger) Replace(c OTPCode) {
	l.Code = c
	l.Requests = append(within(l.Requests, c.CreatedAt, OTPRequests.Window), c.CreatedAt)
	l.Wrong = within(l.Wrong, c.CreatedAt, OTPGuesses.Window)
}

// OTPTry is how a try to use a code ended.
type OTPTry struct {
	ID     OTPID // of the code; empty: none is open
	Status OTPStatus
	Left   int // how many tries are left
}

// Try lets somebody try a code that matches, or does not. It reports how that ended and whether the
// ledger changed; if the code is open no more, this try ended it.
func (l *OTPLedger) Try(matches bool, now time.Time) (try OTPTry, changed bool) {
	c := &l.Code
	if c.Status != OTPStatusPending || c.ID == "" {
		return l.tryEnded(now), false
	}
	l.Wrong = within(l.Wrong, now, OTPGuesses.Window)
	switch {
	case !now.Before(c.ExpiresAt):
		c.end(OTPStatusExpired, c.ExpiresAt)
	case matches:
		c.end(OTPStatusApproved, now)
		l.Wrong = nil
	default:
		c.Tries++
		l.Wrong = append(l.Wrong, now)
		left := min(MaxOTPTries-c.Tries, OTPGuesses.Quota-len(l.Wrong))
		if left > 0 {
			return OTPTry{ID: c.ID, Status: OTPStatusInvalid, Left: left}, true
		}
		c.end(OTPStatusLocked, now)
	}
	return OTPTry{ID: c.ID, Status: c.Status}, true
}

// tryEnded says how a try ends where no code is open.
func (l *OTPLedger) tryEnded(now time.Time) OTPTry {
	c := l.Code
	if c.ID != "" && OTPGuesses.Of(Ages(l.Wrong, now)).Left == 0 {
		return OTPTry{ID: c.ID, Status: OTPStatusLocked}
	}
	switch c.Status {
	case OTPStatusExpired, OTPStatusLocked:
		return OTPTry{ID: c.ID, Status: c.Status}
	}
	return OTPTry{Status: OTPStatusInvalid}
}

// end moves an open code to its outcome. Its text is not needed any more.
func (c *OTPCode) end(status OTPStatus, at time.Time) {
	c.Status, c.EndedAt, c.Encrypted = status, at, nil
}

// within returns those times that are less than a while ago.
func within(times []time.Time, now time.Time, while time.Duration) []time.Time {
	return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return now.Sub(at) >= while })
}
