package otp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

// The characters of codes. Codes with letters leave out characters that look alike: 0 and o, 1 and l and i.
const (
	digits      = "0123456789"
	clearDigits = "23456789"
	letters     = "abcdefghjkmnpqrstuvwxyz"
)

// CodeRequest says what code to make, and for which contact.
type CodeRequest struct {
	Channel   parley.Channel
	Contact   parley.ContactID
	Name      string // of the application
	Length    int
	Digits    bool // at least one of Digits and Letters
	Letters   bool
	Uppercase bool
	TTL       time.Duration

	// Channels are those that may carry the code, in order; the first one is Channel. Nil: no other may.
	Channels []parley.Channel
	First    int // which of them carries it first: those before cannot be used
	Request  string
	Token    parley.TokenID
}

func (r CodeRequest) alphabet() string {
	all := letters
	if r.Digits && r.Letters {
		all = clearDigits + letters
	} else if r.Digits {
		all = digits
	}
	if r.Uppercase {
		return strings.ToUpper(all)
	}
	return all
}

// randomCode draws a code in which every character is equally likely. It rejects random bytes from the largest multiple
// of the alphabet's length on.
func randomCode(source io.Reader, alphabet string, length int) string {
	bound := 256 / len(alphabet) * len(alphabet)
	code := make([]byte, 0, length)
	var random [16]byte
	for {
		io.ReadFull(source, random[:]) // that of the system never fails
		for _, b := range random {
			if int(b) >= bound {
				continue
			}
			if code = append(code, alphabet[int(b)%len(alphabet)]); len(code) == length {
				return string(code)
			}
		}
	}
}

// maskChar replaces each character of a code in history.
const maskChar = "•"

func codeText(code, name string, ttl time.Duration) string {
	return fmt.Sprintf("*%s* is your %s verification code. It expires in %s. Do not share it with anyone.", code, name, lifetime(ttl))
}

// lifetime writes whole minutes, or seconds under two minutes. It rounds down.
func lifetime(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}

// LimitError is the error of a request that exceeds a limit. It wraps a [parley.Error].
type LimitError struct {
	Quota rule.Quota // the exceeded limit
	err   *parley.Error
}

func (e *LimitError) Error() string { return e.err.Error() }

func (e *LimitError) Unwrap() error { return e.err }

func newLimitError(q rule.Quota, sentence string) *LimitError {
	return &LimitError{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait,
		Message: sentence + " Try again after the time in Retry-After."}}
}

var contactLimits = map[rule.Limit]string{
	rule.Pause:      "Only one code in 20 seconds is sent to a contact.",
	rule.Requests:   "Only 5 codes in 10 minutes are sent to a contact.",
	rule.PerContact: "Only 20 codes in 10 minutes are sent to a contact over all channels.",
	rule.Guesses:    "There were 20 wrong tries for this contact in 24 hours, so no code is sent to it for now.",
}

// NewCode is a new code, to be stored and sent.
type NewCode struct {
	Code    parley.OTPCode
	Content parley.Secret // of the message; its text is stored with the code
	Quota   rule.Quota    // what is left of the limits once it is stored
	// Priority is that of the message: codes to known contacts leave first.
	Priority parley.Priority

	issuer    *Issuer
	request   CodeRequest
	release   func()          // its reservation
	mustPause *rule.Strangers // Store found that codes to strangers must pause
}

// NewCode makes a code. The caller must Close it. If a limit forbids it, the error is [LimitError].
func (i *Issuer) NewCode(ctx context.Context, r CodeRequest) (*NewCode, error) {
	now := i.now(r.Channel.Code)
	priority, err := i.checkLimits(ctx, r, now)
	release := func() {}
	if err == nil && r.First == 0 {
		release, err = i.reserve(r, priority)
	}
	if err != nil {
		i.metrics.requests.WithLabelValues("limited").Inc()
		return nil, err
	}
	code := randomCode(rand.Reader, r.alphabet(), r.Length)
	c := parley.OTPCode{ID: parley.NewCodeID(), Channel: r.Channel.Code, Contact: r.Contact, CreatedAt: now, ExpiresAt: now.Add(r.TTL)}
	c.Hash = hashCode(i.digest, i.peppers[0], c, code)
	c.Encrypted = i.config.Keyring.Encrypt([]byte(code+parley.CodeSeparator+codeText(code, r.Name, r.TTL)), string(c.ID))
	shown := codeText(strings.Repeat(maskChar, r.Length), r.Name, r.TTL)
	return &NewCode{Code: c, Content: parley.Secret{Shown: shown, OTP: c.ID}, Priority: priority, issuer: i, request: r, release: release}, nil
}

// checkLimits checks the limits before a code is made, and returns the priority of its message. Store checks them again;
// this first check keeps rejected requests out of transactions.
func (i *Issuer) checkLimits(ctx context.Context, r CodeRequest, now time.Time) (parley.Priority, error) {
	if _, _, err := i.checkContact(ctx, i.config.Store, r.Channel.Code, r.Contact, now); err != nil {
		return 0, err
	}
	limits := i.limitsStrangers(r)
	if _, pace := i.config.Network(r.Channel.Network).Pace(r.Channel); pace == 0 && !limits {
		return parley.PriorityKnown, nil // without a pace, priorities make no difference
	}
	known, err := i.config.Store.KnowsContact(ctx, r.Channel.Code, r.Contact)
	if err != nil {
		return 0, err
	}
	if known {
		return parley.PriorityKnown, nil
	}
	if limits {
		s, err := i.checkStranger(ctx, i.config.Store, r, now)
		if err == errMustPause {
			if err = i.pause(ctx, r.Channel.Code, s, now); err == nil {
				err = pauseError(now)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return parley.PriorityStranger, nil
}

// Close releases the reservation, after the code was stored or rejected.
func (n *NewCode) Close(ctx context.Context) {
	n.release()
	if n.mustPause == nil {
		return
	}
	if err := n.issuer.pause(ctx, n.Code.Channel, *n.mustPause, n.Code.CreatedAt); err != nil {
		n.issuer.config.Log.Error("pause codes to strangers", "channel", n.Code.Channel, "error", err)
	}
}

// Store replaces the contact's previous code, in the transaction that accepts the message, after that: the reservation ends
// once the message is in the queue. Without a message another channel must carry the code first. If a limit forbids the code
// meanwhile, the error is [LimitError].
func (n *NewCode) Store(ctx context.Context, tx *store.Tx, messages ...parley.Message) error {
	c := n.Code
	ledger, elsewhere, err := n.issuer.checkContact(ctx, tx, c.Channel, c.Contact, c.CreatedAt)
	if err != nil {
		return err
	}
	if old := ledger.Code; old.ID != "" && old.Status == parley.OTPStatusPending && !c.CreatedAt.Before(old.ExpiresAt) {
		if err := publishCode(ctx, tx, parley.OTPExpired, old, "", c.CreatedAt); err != nil {
			return err
		}
	}
	if ledger.Code.Tried != nil {
		if err := tx.DeleteFallback(ctx, ledger.Code.ID); err != nil {
			return err
		}
	}
	if n.Priority == parley.PriorityStranger && n.issuer.limitsStrangers(n.request) {
		if err := n.countStranger(ctx, tx); err != nil {
			return err
		}
	}
	ledger.Replace(c)
	n.Quota = ledger.Left(c.CreatedAt, elsewhere)
	if err := tx.PutLedger(ctx, ledger); err != nil {
		return err
	}
	if len(n.request.Channels) > 0 {
		if err := tx.PutFallback(ctx, n.fallback(messages)); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		n.issuer.metrics.requests.WithLabelValues("sent").Inc()
		n.release() // the queue counts it from now on
	})
	return nil
}

// FallbackAfter is how long a channel may take to send a code before the next one carries it.
const FallbackAfter = 10 * time.Second

// fallback is how the code goes from channel to channel: it waits on the first one, or the first one that can be used must accept it.
func (n *NewCode) fallback(messages []parley.Message) parley.Fallback {
	c, r := n.Code, n.request
	f := parley.Fallback{ID: c.ID, Channel: c.Channel, ExpiresAt: c.ExpiresAt, Turns: r.First + 1, To: r.Contact, Request: r.Request,
		Token: r.Token, Priority: n.Priority, DueAt: c.CreatedAt}
	for _, channel := range r.Channels {
		f.Channels = append(f.Channels, parley.FallbackHop{ID: channel.ID, Code: channel.Code})
	}
	if len(messages) > 0 {
		f.Message = messages[0].ID
		if f.DueAt = c.CreatedAt.Add(FallbackAfter); len(f.Channels) == 1 {
			f.DueAt = time.Time{}
		}
	}
	return f
}

// MaskCode hides the code in a decrypted text, for history.
func MaskCode(decrypted string) string {
	code, text, _ := strings.Cut(decrypted, parley.CodeSeparator)
	return strings.Replace(text, code, strings.Repeat(maskChar, len(code)), 1) // the text begins with it
}

func (n *NewCode) countStranger(ctx context.Context, tx *store.Tx) error {
	s, err := n.issuer.checkStranger(ctx, tx, n.request, n.Code.CreatedAt)
	n.mustPause = nil
	if err == errMustPause { // Close pauses: this transaction is rolled back
		n.mustPause, err = &s, pauseError(n.Code.CreatedAt)
	}
	if err != nil {
		return err
	}
	return tx.AddStranger(ctx, n.Code, !s.Counted)
}

type ledgers interface {
	Ledgers(ctx context.Context, contact parley.ContactID) ([]rule.Ledger, error)
	Strangers(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, now time.Time, limit int) (rule.Strangers, error)
}

// checkContact checks the limits of a contact. It returns the contact's ledger on the channel, and the ages of requests on
// other channels.
func (i *Issuer) checkContact(
	ctx context.Context, from ledgers, channel parley.ChannelCode, contact parley.ContactID, now time.Time,
) (rule.Ledger, []time.Duration, error) {
	all, err := from.Ledgers(ctx, contact)
	if err != nil {
		return rule.Ledger{}, nil, err
	}
	own := rule.Ledger{Code: parley.OTPCode{Channel: channel, Contact: contact}}
	var elsewhere []time.Duration
	for _, l := range all {
		its := i.now(l.Code.Channel) // each has its own clock
		if l.Code.Channel == channel {
			its = now
		}
		if _, inTx := from.(*store.Tx); l.Correct(its) && !inTx { // in a transaction the caller stores it
			if err := i.correct(ctx, l.Code, its); err != nil {
				return rule.Ledger{}, nil, err
			}
		}
		if l.Code.Channel == channel {
			own = l
		} else {
			elsewhere = append(elsewhere, rule.Ages(l.Requests, its)...)
		}
	}
	if q := own.Request(now, elsewhere); q.Left == 0 {
		return own, nil, newLimitError(q, contactLimits[q.Limit])
	}
	return own, elsewhere, nil
}

// correct removes times in the future from a ledger.
func (i *Issuer) correct(ctx context.Context, of parley.OTPCode, now time.Time) error {
	return i.config.Store.Tx(ctx, func(tx *store.Tx) error {
		l, err := tx.Ledger(ctx, of.Channel, of.Contact)
		if err != nil || l.Code.ID == "" || !l.Correct(now) {
			return err
		}
		return tx.PutLedger(ctx, l)
	})
}

type TryResult struct {
	rule.Try
	At time.Time
	// Tried lists the channels that had their turn to carry the code; nil: its request named none.
	Tried []parley.ChannelCode
	// BlockedUntil is until when too many wrong tries forbid a new code; zero: they do not.
	BlockedUntil time.Time
}

// Validate tries a code. When it returns, the try is counted durably, and a right code is used. inTx runs in the same
// transaction; nil: nothing. It may be called more than once.
//
// If the database fails, the code may be used nevertheless. A caller with inTx can store the outcome there and find it later. For
// one without, Validate looks again; if the database still fails, the next right try is approved in place of this one.
func (i *Issuer) Validate(
	ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, code string, inTx func(*store.Tx, TryResult) error,
) (TryResult, error) {
	result, err := i.validate(ctx, channel, contact, code, inTx)
	if inTx == nil && parley.ToCode(err) == parley.Unavailable && result.Status == parley.OTPStatusApproved {
		result, err = i.validate(ctx, channel, contact, code, inTx)
	}
	if err != nil {
		return TryResult{}, err
	}
	i.metrics.tries[result.Status].Inc()
	return result, nil
}

// validate tries a code once. After an error, the result is what the caller does not get to know.
func (i *Issuer) validate(
	ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, code string, inTx func(*store.Tx, TryResult) error,
) (result TryResult, err error) {
	now := i.now(channel)
	var unsure parley.OTPCode // whose approval this try repeats
	err = i.tx(ctx, func(tx *store.Tx) error {
		result = TryResult{At: now}
		ledger, err := tx.Ledger(ctx, channel, contact)
		if err != nil {
			return err
		}
		c := ledger.Code
		matches := i.matches(c, code) // always, so that all tries take the same time
		if matches && c.Status == parley.OTPStatusApproved && (c.ID == unsure.ID || i.takeUnsure(c)) {
			unsure, result.Try = c, rule.Try{ID: c.ID, Status: c.Status}
		} else if err := i.try(ctx, tx, ledger, matches, &result); err != nil {
			return err
		}
		if result.ID != "" {
			result.Tried = c.Tried
		}
		if inTx != nil {
			return inTx(tx, result)
		}
		return nil
	})
	if inTx == nil && parley.ToCode(err) == parley.Unavailable && result.Status == parley.OTPStatusApproved {
		if unsure.ID == "" {
			unsure = parley.OTPCode{ID: result.ID, EndedAt: now}
		}
		i.addUnsure(unsure)
	}
	return result, err
}

func (i *Issuer) try(ctx context.Context, tx *store.Tx, ledger rule.Ledger, matches bool, result *TryResult) (err error) {
	now := result.At
	corrected := ledger.Correct(now) && ledger.Code.ID != ""
	try, changed := ledger.Try(matches, now)
	if changed {
		i.takeUnsure(ledger.Code) // it was open, so no earlier try used it
	}
	if corrected {
		err = tx.PutLedger(ctx, ledger)
	}
	if err == nil && changed {
		err = i.storeTry(ctx, tx, ledger, now)
	}
	if err == nil && changed && (try.Status == parley.OTPStatusInvalid || try.Status == parley.OTPStatusLocked) {
		err = i.countWrongTry(ctx, tx, ledger.Code.Channel, now)
	}
	result.Try, result.BlockedUntil = try, blockedUntil(ledger, try, now)
	return err
}

// unsureLife is for how long a try can be repeated whose caller got an error: longer than a code lives.
const unsureLife = time.Hour

// addUnsure stores that the caller of an approval got an error.
func (i *Issuer) addUnsure(c parley.OTPCode) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, at := range i.unsure {
		if c.EndedAt.Sub(at) > unsureLife {
			delete(i.unsure, id)
		}
	}
	i.unsure[c.ID] = c.EndedAt
}

// takeUnsure reports whether the caller of this approval got an error, and forgets that. An earlier one did not happen.
func (i *Issuer) takeUnsure(c parley.OTPCode) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, found := i.unsure[c.ID]
	delete(i.unsure, c.ID)
	return found && at.Equal(c.EndedAt)
}

func blockedUntil(l rule.Ledger, try rule.Try, now time.Time) time.Time {
	if try.Status == parley.OTPStatusLocked {
		if q := rule.Guesses.Of(rule.Ages(l.Wrong, now)); q.Left == 0 {
			return now.Add(q.Wait)
		}
	}
	return time.Time{}
}

func (i *Issuer) storeTry(ctx context.Context, tx *store.Tx, l rule.Ledger, now time.Time) error {
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
	tx.OnCommit(func() { i.metrics.finishes[c.Status].Inc() })
	return publishCode(ctx, tx, kind, c, reason, now)
}

func (i *Issuer) countWrongTry(ctx context.Context, tx *store.Tx, channel parley.ChannelCode, now time.Time) error {
	tries, err := tx.CountWrongTry(ctx, channel, now)
	if err != nil || tries <= rule.GuessLimit {
		return err
	}
	alarm := parley.OTPAlarm{Channel: channel, Type: parley.OTPGuessing, At: now, Until: now.Add(rule.GuessWindow), Count: tries}
	raised, err := tx.RaiseOTPAlarm(ctx, alarm)
	if err != nil || !raised {
		return err
	}
	tx.OnCommit(func() { i.metrics.alarms.WithLabelValues(string(alarm.Type)).Inc() })
	return tx.AddEvent(ctx, parley.NewGuessingEvent(alarm))
}
