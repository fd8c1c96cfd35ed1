package otp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// The characters of codes. Where there are letters, those characters are left out that are taken for
// others: 0 and o, 1 and l and i.
const (
	digits      = "0123456789"
	clearDigits = "23456789"
	letters     = "abcdefghjkmnpqrstuvwxyz"
)

// CodeRequest says what code to make, and for whom.
type CodeRequest struct {
	Channel   parley.Channel
	Contact   parley.ContactID
	Name      string // of the application
	Length    int
	Digits    bool // at least one of Digits and Letters
	Letters   bool
	Uppercase bool // the letters are capital
	TTL       time.Duration
}

// alphabet returns the characters that the code is made of.
func (o CodeRequest) alphabet() string {
	var all string
	switch {
	case o.Digits && !o.Letters:
		all = digits
	case o.Digits:
		all = clearDigits + letters
	default:
		all = letters
	}
	if o.Uppercase {
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

// LimitError is the error of a request that comes too soon. It is a [parley.Error] that says so.
type LimitError struct {
	Quota parley.OTPQuota // the limit that it came up against
	err   *parley.Error
}

func (e *LimitError) Error() string { return e.err.Error() }

func (e *LimitError) Unwrap() error { return e.err }

func limited(q parley.OTPQuota) *LimitError {
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
	return tooMany(q, sentence)
}

func tooMany(q parley.OTPQuota, sentence string) *LimitError {
	return &LimitError{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence + " Try again after the time in Retry-After."}}
}

// NewCode is a code that was made and is to be stored and sent.
type NewCode struct {
	Code    parley.OTPCode
	Content parley.Secret   // of the message that carries it; its text is kept with the code
	Quota   parley.OTPQuota // what is left of the limits once it is stored
	// Priority is that of the message: codes to known contacts leave first.
	Priority parley.Priority

	issuer    *Issuer
	order     CodeRequest
	release   func()               // its reservation
	mustPause *parley.OTPStrangers // when it was to be stored, codes to strangers had to pause
}

// NewCode makes a code, which must be closed in the end. Where a limit forbids it the error is [LimitError]:
// then there is no code.
func (i *Issuer) NewCode(ctx context.Context, o CodeRequest) (*NewCode, error) {
	now := i.now(o.Channel.Code)
	priority, err := i.allow(ctx, o, now)
	var release func()
	if err == nil {
		release, err = i.reserve(o, priority)
	}
	if err != nil {
		i.measures.requested("limited")
		return nil, err
	}
	code, err := draw(i.Rand, o.alphabet(), o.Length)
	if err != nil {
		release()
		return nil, err
	}
	c := parley.OTPCode{ID: parley.NewCodeID(), Channel: o.Channel.Code, Contact: o.Contact, CreatedAt: now, ExpiresAt: now.Add(o.TTL)}
	c.Hash = hashCode(i.peppers[0], c, code)
	c.Encrypted = i.keyring.Encrypt([]byte(message(code, o.Name, o.TTL)), string(c.ID))
	shown := message(strings.Repeat(hidden, o.Length), o.Name, o.TTL)
	return &NewCode{Code: c, Content: parley.Secret{Shown: shown, OTP: c.ID}, Priority: priority, issuer: i, order: o, release: release}, nil
}

// allow checks the limits before a code is made, and returns the priority of its message. They are checked
// again when the code is stored; to look before that keeps those who come too soon off the transactions of
// others.
func (i *Issuer) allow(ctx context.Context, o CodeRequest, now time.Time) (parley.Priority, error) {
	if _, _, err := i.within(ctx, i.Store, o.Channel.Code, o.Contact, now); err != nil {
		return 0, err
	}
	limits := i.limitsStrangers(o)
	if _, pace := o.Channel.Pace(); pace == 0 && !limits {
		return parley.PriorityKnown, nil // everybody is alike where nobody waits
	}
	known, err := i.Store.KnowsContact(ctx, o.Channel.Code, o.Contact)
	if err != nil {
		return 0, err
	}
	if known {
		return parley.PriorityKnown, nil
	}
	if limits {
		s, err := i.withinStrangers(ctx, i.Store, o, now)
		if err == errMustPause {
			if err = i.pause(ctx, o.Channel.Code, s, now); err == nil {
				err = paused(now)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return parley.PriorityStranger, nil
}

// Close ends what the issue holds, after it was stored or could not be.
func (is *NewCode) Close(ctx context.Context) {
	is.release()
	if is.mustPause == nil {
		return
	}
	if err := is.issuer.pause(ctx, is.Code.Channel, *is.mustPause, is.Code.CreatedAt); err != nil {
		is.issuer.Log.Error("pause codes to strangers", "channel", is.Code.Channel, "error", err)
	}
}

// Store stores the code in the place of the one before, in the transaction that accepts its message.
// Where a limit forbids that meanwhile the error is [LimitError].
func (is *NewCode) Store(ctx context.Context, tx *store.Tx) error {
	c := is.Code
	ledger, elsewhere, err := is.issuer.within(ctx, tx, c.Channel, c.Contact, c.CreatedAt)
	if err != nil {
		return err
	}
	if old := ledger.Code; old.ID != "" && old.Status == parley.OTPStatusPending && !c.CreatedAt.Before(old.ExpiresAt) {
		if _, err := publish(ctx, tx, parley.OTPExpired, old.ID, old.Channel, old.Contact, "", c.CreatedAt); err != nil {
			return err
		}
	}
	if is.Priority == parley.PriorityStranger && is.issuer.limitsStrangers(is.order) {
		if err := is.storeStranger(ctx, tx); err != nil {
			return err
		}
	}
	ledger.Replace(c)
	is.Quota = ledger.Left(c.CreatedAt, elsewhere)
	if err := tx.PutLedger(ctx, ledger); err != nil {
		return err
	}
	tx.OnCommit(func() {
		is.issuer.measures.requested("sent")
		is.release() // the queue has it next
	})
	return nil
}

// storeStranger counts a code to a stranger.
func (is *NewCode) storeStranger(ctx context.Context, tx *store.Tx) error {
	s, err := is.issuer.withinStrangers(ctx, tx, is.order, is.Code.CreatedAt)
	is.mustPause = nil
	if err == errMustPause { // Close does it: this transaction is not kept
		is.mustPause, err = &s, paused(is.Code.CreatedAt)
	}
	if err != nil {
		return err
	}
	return tx.AddStranger(ctx, is.Code, !s.Counted)
}

// ledgers is where what is known of codes is read: the store, or a transaction.
type ledgers interface {
	Ledgers(ctx context.Context, contact parley.ContactID) ([]parley.OTPLedger, error)
	Strangers(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, now time.Time, limit int) (parley.OTPStrangers, error)
}

// within returns what is known of a contact's codes on a channel, and how long ago some were asked for
// on others, if the limits let another one be sent now.
func (i *Issuer) within(ctx context.Context, from ledgers, channel parley.ChannelCode, contact parley.ContactID, now time.Time) (parley.OTPLedger, []time.Duration, error) {
	all, err := from.Ledgers(ctx, contact)
	if err != nil {
		return parley.OTPLedger{}, nil, err
	}
	own := parley.OTPLedger{Code: parley.OTPCode{Channel: channel, Contact: contact}}
	var elsewhere []time.Duration
	for _, l := range all {
		its := i.now(l.Code.Channel) // each has its own clock
		if l.Code.Channel == channel {
			its = now
		}
		if _, inside := from.(*store.Tx); l.Correct(its) && !inside { // inside a transaction the caller stores it
			if err := i.correct(ctx, l.Code, its); err != nil {
				return parley.OTPLedger{}, nil, err
			}
		}
		if l.Code.Channel == channel {
			own = l
		} else {
			elsewhere = append(elsewhere, parley.Ages(l.Requests, its)...)
		}
	}
	if q := own.Request(now, elsewhere); q.Left == 0 {
		return own, nil, limited(q)
	}
	return own, elsewhere, nil
}

// correct stores a ledger without times that lie in the future.
func (i *Issuer) correct(ctx context.Context, of parley.OTPCode, now time.Time) error {
	return i.Store.Tx(ctx, func(tx *store.Tx) error {
		l, err := tx.Ledger(ctx, of.Channel, of.Contact)
		if err != nil || l.Code.ID == "" || !l.Correct(now) {
			return err
		}
		return tx.PutLedger(ctx, l)
	})
}

// TryResult is how a try to use a code ended.
type TryResult struct {
	parley.OTPTry
	At time.Time
	// BlockedUntil is until when no new code is sent because of too many wrong tries; zero: one may be asked
	// for.
	BlockedUntil time.Time
}

// Validate lets somebody try a code. When it returns, the try is counted and, if it was right, the code
// used up, whatever happens to the process. With stores what the caller keeps of that in the same
// transaction; nil: nothing. It may be called more than once.
func (i *Issuer) Validate(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, code string, with func(*store.Tx, TryResult) error) (TryResult, error) {
	now := i.now(channel)
	var tried TryResult
	err := i.Store.Tx(ctx, func(tx *store.Tx) error {
		ledger, err := tx.Ledger(ctx, channel, contact)
		if err != nil {
			return err
		}
		matches := i.matches(ledger.Code, code) // whatever there is to compare with
		corrected := ledger.Correct(now) && ledger.Code.ID != ""
		try, changed := ledger.Try(matches, now)
		if corrected {
			if err := tx.PutLedger(ctx, ledger); err != nil {
				return err
			}
		}
		if changed {
			if err := i.settleCode(ctx, tx, ledger, now); err != nil {
				return err
			}
		}
		if changed && (try.Status == parley.OTPStatusInvalid || try.Status == parley.OTPStatusLocked) {
			if err := i.countWrongTry(ctx, tx, channel, now); err != nil {
				return err
			}
		}
		tried = TryResult{OTPTry: try, At: now, BlockedUntil: barred(ledger, try, now)}
		if with == nil {
			return nil
		}
		return with(tx, tried)
	})
	if err != nil {
		return TryResult{}, err
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
func (i *Issuer) settleCode(ctx context.Context, tx *store.Tx, l parley.OTPLedger, now time.Time) error {
	if err := tx.UpdateLedger(ctx, l); err != nil {
		return err
	}
	c := l.Code
	kind, reason := parley.OTPApproved, ""
	switch c.Status {
	case parley.OTPStatusApproved:
		if err := tx.ApproveContact(ctx, c); err != nil {
			return err
		}
	case parley.OTPStatusLocked:
		kind, reason = parley.OTPFailed, "locked"
	case parley.OTPStatusExpired:
		kind = parley.OTPExpired
	default:
		return nil
	}
	tx.OnCommit(func() { i.measures.ended(c.Status, 1) })
	_, err := publish(ctx, tx, kind, c.ID, c.Channel, c.Contact, reason, now)
	return err
}

// countWrongTry counts a wrong try, and raises the alarm where there were many over all contacts.
func (i *Issuer) countWrongTry(ctx context.Context, tx *store.Tx, channel parley.ChannelCode, now time.Time) error {
	tries, err := tx.CountWrongTry(ctx, channel, now)
	if err != nil || tries <= parley.OTPGuessLimit {
		return err
	}
	alarm := parley.OTPAlarm{Channel: channel, Type: parley.OTPGuessing, At: now, Until: now.Add(parley.OTPGuessWindow), Count: tries}
	raised, err := tx.RaiseOTPAlarm(ctx, alarm)
	if err != nil || !raised {
		return err
	}
	tx.OnCommit(func() { i.measures.alarm(alarm.Type) })
	return tx.AddEvent(ctx, parley.NewGuessingEvent(alarm))
}
