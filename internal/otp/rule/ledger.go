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
