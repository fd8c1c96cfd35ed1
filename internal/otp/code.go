package otp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"parley"
)

// The characters of codes. Where there are letters, those characters are left out that are taken for
// others: 0 and o, 1 and l and i.
const (
	digits      = "0123456789"
	clearDigits = "23456789"
	letters     = "abcdefghjkmnpqrstuvwxyz"
)

// Order says what code to make, and for whom.
type Order struct {
	Channel  parley.ChannelCode
	Contact  parley.ContactID
	Name     string // of the application
	Length   int
	Digits   bool // at least one of Digits and Letters
	Letters  bool
	Capitals bool // the letters are capital
	Life     time.Duration
}

// alphabet returns the characters that the code is made of.
func (o Order) alphabet() string {
	var all string
	switch {
	case o.Digits && !o.Letters:
		all = digits
	case o.Digits:
		all = clearDigits + letters
	default:
		all = letters
	}
	if o.Capitals {
		return strings.ToUpper(all)
	}
	return all
}

// draw chooses a code of which every character is equally likely: a random byte counts only if it lies
// below the largest multiple of the alphabet's length.
func draw(from io.Reader, alphabet string, length int) (string, error) {
	bound := 256 / len(alphabet) * len(alphabet)
	code := make([]byte, 0, length)
	var random [16]byte
	for {
		if _, err := io.ReadFull(from, random[:]); err != nil {
			return "", fmt.Errorf("draw a code: %w", err)
		}
		for _, b := range random {
			if int(b) >= bound {
				continue
			}
			if code = append(code, alphabet[int(b)%len(alphabet)]); len(code) == length {
				return string(code), nil
			}
		}
	}
}

// hidden is what history shows in place of each character of a code.
const hidden = "•"

// message is the text that carries a code. The stars make it stand out; whoever gets the code must know
// what it opens, and that nobody else may have it.
func message(code, name string, life time.Duration) string {
	return fmt.Sprintf("*%s* is your %s verification code. It expires in %s. Do not share it with anyone.", code, name, lifetime(life))
}

// lifetime says how long a code is good in whole minutes, or in seconds under two minutes. It never
// promises too much.
func lifetime(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}

// Limited is the error of a request that comes too soon. It is a [parley.Error] that says so.
type Limited struct {
	Quota parley.OTPQuota // the limit that it came up against
	err   *parley.Error
}

func (e *Limited) Error() string { return e.err.Error() }

func (e *Limited) Unwrap() error { return e.err }

func limited(q parley.OTPQuota) *Limited {
	var sentence string
	switch q.OTPLimit {
	case parley.OTPPause:
		sentence = "Only one code in 20 seconds is sent to a contact."
	case parley.OTPRequests:
		sentence = "Only 5 codes in 10 minutes are sent to a contact."
	case parley.OTPContact:
		sentence = "Only 20 codes in 10 minutes are sent to a contact over all channels."
	case parley.OTPGuesses:
		sentence = "There were 20 wrong tries for this contact in 24 hours, so no code is sent to it for now."
	}
	return &Limited{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence + " Try again after the time in Retry-After."}}
}

// Issue is a code that was made and is to be stored and sent.
type Issue struct {
	Code    parley.OTPCode
	Content parley.Secret   // of the message that carries it; its text is kept with the code
	Quota   parley.OTPQuota // what is left of the limits once it is stored

	issuer *Issuer
}

// NewCode makes a code. Where a limit forbids that the error is [Limited]: then there is no code.
func (i *Issuer) NewCode(ctx context.Context, o Order) (*Issue, error) {
	now := i.now(o.Channel)
	// The limits count when the code is stored. To look before that keeps those who come too soon off
	// the transactions of others.
	if _, _, err := i.within(ctx, i.Store, o.Channel, o.Contact, now); err != nil {
		i.measures.requested("limited")
		return nil, err
	}
	if i.limitsCrowd() {
		if _, err := i.withinCrowd(ctx, i.Store, o.Channel, o.Contact, now); err != nil {
			i.measures.requested("limited")
			return nil, err
		}
	}
	code, err := draw(i.Rand, o.alphabet(), o.Length)
	if err != nil {
		return nil, err
	}
	c := parley.OTPCode{ID: parley.NewCodeID(), Channel: o.Channel, Contact: o.Contact, CreatedAt: now, ExpiresAt: now.Add(o.Life)}
	c.Hash = hashCode(i.peppers[0], c, code)
	c.Sealed = i.sealer.Seal([]byte(message(code, o.Name, o.Life)), string(c.ID))
	shown := message(strings.Repeat(hidden, o.Length), o.Name, o.Life)
	return &Issue{Code: c, Content: parley.Secret{Shown: shown, OTP: c.ID}, issuer: i}, nil
}

// Store stores the code in the place of the one before, in the transaction that accepts its message.
// Where a limit forbids that meanwhile the error is [Limited].
func (is *Issue) Store(ctx context.Context, tx parley.Tx) error {
	c := is.Code
	ledger, elsewhere, err := is.issuer.within(ctx, tx, c.Channel, c.Contact, c.CreatedAt)
	if err != nil {
		return err
	}
	if old := ledger.Code; old.ID != "" && old.Status == parley.OTPStatusPending && !c.CreatedAt.Before(old.ExpiresAt) {
		if err := tx.AddEvent(ctx, expiry(old.ID, old.Channel, old.Contact, c.CreatedAt)); err != nil {
			return err
		}
	}
	if is.issuer.limitsCrowd() {
		fresh, err := is.issuer.withinCrowd(ctx, tx, c.Channel, c.Contact, c.CreatedAt)
		if err != nil {
			return err
		}
		if err := tx.JoinCrowd(ctx, c.Channel, c.Contact, fresh, c.CreatedAt, c.CreatedAt.Add(-parley.OTPCrowdWindow)); err != nil {
			return err
		}
	}
	ledger.Replace(c)
	is.Quota = ledger.Left(c.CreatedAt, elsewhere)
	if err := tx.PutLedger(ctx, ledger); err != nil {
		return err
	}
	tx.OnCommit(func() { is.issuer.measures.requested("sent") })
	return nil
}

// within returns what is known of a contact's codes on a channel, and how long ago some were asked for
// on others, if the limits let another one be sent now.
func (i *Issuer) within(ctx context.Context, from parley.OTPReader, channel parley.ChannelCode, contact parley.ContactID, now time.Time) (parley.OTPLedger, []time.Duration, error) {
	ledgers, err := from.Ledgers(ctx, contact)
	if err != nil {
		return parley.OTPLedger{}, nil, err
	}
	own := parley.OTPLedger{Code: parley.OTPCode{Channel: channel, Contact: contact}}
	var elsewhere []time.Duration
	for _, l := range ledgers {
		if l.Code.Channel == channel {
			own = l
		} else { // by its own clock
			elsewhere = append(elsewhere, parley.Ages(l.Requests, i.now(l.Code.Channel))...)
		}
	}
	if q := own.Request(now, elsewhere); q.Left == 0 {
		return own, nil, limited(q)
	}
	return own, elsewhere, nil
}

// Tried is how a try to use a code ended.
type Tried struct {
	parley.OTPTry
	At time.Time
	// Barred is until when no new code is sent because of too many wrong tries; zero: one may be asked
	// for.
	Barred time.Time
}

// Validate lets somebody try a code. When it returns, the try is counted and, if it was right, the code
// used up, whatever happens to the process. With stores what the caller keeps of that in the same
// transaction; nil: nothing. It may be called more than once.
func (i *Issuer) Validate(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, code string, with func(parley.Tx, Tried) error) (Tried, error) {
	now := i.now(channel)
	var tried Tried
	err := i.Store.Tx(ctx, func(tx parley.Tx) error {
		ledger, err := tx.Ledger(ctx, channel, contact)
		if err != nil {
			return err
		}
		matches := i.matches(ledger.Code, code) // whatever there is to compare with
		try, changed := ledger.Try(matches, now)
		if changed {
			if err := i.settleCode(ctx, tx, ledger, now); err != nil {
				return err
			}
		}
		tried = Tried{OTPTry: try, At: now, Barred: barred(ledger, try, now)}
		if with == nil {
			return nil
		}
		return with(tx, tried)
	})
	if err != nil {
		return Tried{}, err
	}
	i.measures.tried(tried.Status)
	return tried, nil
}

// barred returns until when the wrong tries of a contact forbid a new code; zero: they do not.
func barred(l parley.OTPLedger, try parley.OTPTry, now time.Time) time.Time {
	if try.Status != parley.OTPStatusLocked {
		return time.Time{}
	}
	if q := parley.OTPGuesses.Of(parley.Ages(l.Wrong, now)); q.Left == 0 {
		return now.Add(q.Wait)
	}
	return time.Time{}
}

// settleCode stores what a try changed, and tells how the code ended, if it did.
func (i *Issuer) settleCode(ctx context.Context, tx parley.Tx, l parley.OTPLedger, now time.Time) error {
	if err := tx.UpdateLedger(ctx, l); err != nil {
		return err
	}
	c := l.Code
	var event *parley.Event
	switch c.Status {
	case parley.OTPStatusApproved:
		event = parley.NewOTPEvent(parley.OTPApproved, c.ID, c.Channel, c.Contact, "", now)
	case parley.OTPStatusLocked:
		event = parley.NewOTPEvent(parley.OTPFailed, c.ID, c.Channel, c.Contact, "locked", now)
	case parley.OTPStatusExpired:
		event = expiry(c.ID, c.Channel, c.Contact, now)
	default:
		return nil
	}
	tx.OnCommit(func() { i.measures.ended(c.Status, 1) })
	return tx.AddEvent(ctx, event)
}
