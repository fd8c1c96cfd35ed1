// Package otp makes one-time codes and login links and validates them. It knows neither HTTP nor a chat network.
//
// Invariants:
//   - A code is stored only as a keyed hash and as an encrypted text. The key is not in the database.
//   - A try is counted durably before its result is known to the caller. A right code works once.
//   - A comparison takes the same time for right, wrong and missing codes.
//   - Limits are checked in the transaction that stores the code, so that concurrent requests cannot exceed them.
//   - History and events show codes only masked.
package otp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/network"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

// Config configures an issuer. The fields of the first block are required.
type Config struct {
	Store   *store.DB
	Keyring *encrypt.Keyring
	Now     func(parley.ChannelCode) time.Time // the channel's clock; "": this machine's
	Network func(parley.NetworkName) network.Info
	Log     *slog.Logger

	// ClockTrusted reports whether the clock may be used to purge by age; nil: always.
	ClockTrusted func() bool
	Metrics      prometheus.Registerer // nil: no metrics
	// Retention is how long codes and links are stored after they expired; at least a day, because the wrong tries of a day
	// count.
	Retention time.Duration
	// ContactsPerHour is to how many strangers a channel may send codes in an hour. PrefixPerHour is the same for numbers
	// that share all but their last 4 digits. Zero: 60 and 10, no limit on a simulated network; below zero: no limit.
	ContactsPerHour, PrefixPerHour int
	// MaxAhead is how far a channel's clock is ahead of the machine's at most; nil: no clock is.
	MaxAhead func() time.Duration
	// Owns reports whether this process serves a channel; nil: all.
	Owns func(parley.ChannelCode) bool
	// LookUpNumber asks a channel's network for its spelling of a contact's number, and stores it; nil: there is only one
	// spelling.
	LookUpNumber func(context.Context, parley.ChannelCode, parley.ContactID) error
	// QueuedAhead returns how many messages of a channel leave before a new one of a priority; nil: none.
	QueuedAhead func(parley.ChannelCode, parley.Priority) int
}

// Issuer makes and validates codes and links. Its methods may be called from several goroutines.
type Issuer struct {
	config  Config
	peppers [][]byte         // keys of the hashes: the first for new codes, all for validating
	digest  func() hash.Hash // for comparing codes; tests count its work
	metrics metrics
	tx      func(context.Context, func(*store.Tx) error) error // the store's; tests make it fail

	checked time.Time // when maintain last looked for what is due; only it uses this

	mu       sync.Mutex
	reserved map[reservation]int
	unsure   map[parley.OTPID]time.Time // when codes may have been used by tries whose callers got an error
}

func New(c Config) *Issuer {
	if c.ClockTrusted == nil {
		c.ClockTrusted = func() bool { return true }
	}
	if c.MaxAhead == nil {
		c.MaxAhead = func() time.Duration { return 0 }
	}
	c.Retention = max(c.Retention, rule.Guesses.Window)
	return &Issuer{config: c, peppers: c.Keyring.Derive("one-time codes"), digest: sha256.New,
		metrics: newMetrics(c.Metrics), tx: c.Store.Tx, reserved: map[reservation]int{}, unsure: map[parley.OTPID]time.Time{}}
}

// Retention is how long codes and links are stored after they expired.
func (i *Issuer) Retention() time.Duration { return i.config.Retention }

// now is the time on a channel's clock, in the precision of the store.
func (i *Issuer) now(channel parley.ChannelCode) time.Time {
	return i.config.Now(channel).UTC().Truncate(time.Millisecond)
}

const (
	// expireEvery is short: a check is cheap, and a sandbox channel's clock may be advanced at any time.
	expireEvery = time.Second
	// purgeEvery first runs a second after the start, when the gateway knows the clocks of its channels.
	purgeEvery = time.Minute
	// purgeBatch bounds one transaction, because other writers wait for it.
	purgeBatch = 500
)

// Run expires codes and links, and purges old ones, until ctx ends.
func (i *Issuer) Run(ctx context.Context) error {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	for ticks := 0; ; ticks++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if err := i.maintain(ctx, ticks%int(purgeEvery/expireEvery) == 0); err != nil && ctx.Err() == nil {
			i.config.Log.Error("expire and purge one-time codes", "error", err)
		}
	}
}

// maintain expires what is due on all channels: one query, whatever their number. rarely also looks for what is old, and for times
// in the future: the clock may have been ahead, of this machine or of another node.
func (i *Issuer) maintain(ctx context.Context, rarely bool) error {
	now := i.now("")
	latest := now.Add(i.config.MaxAhead())
	if rarely || now.Before(i.checked) {
		codes, err := i.config.Store.FutureOTPs(ctx, now)
		err = errors.Join(err, i.eachOwned(codes, func(code parley.ChannelCode) error {
			return i.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.CorrectOTPTimes(ctx, code, i.now(code)) })
		}))
		if err != nil {
			return fmt.Errorf("correct times: %w", err)
		}
	}
	i.checked = now
	due, err := i.config.Store.DueOTPs(ctx, latest)
	err = errors.Join(err, i.eachOwned(slices.Collect(maps.Keys(due)), func(code parley.ChannelCode) error {
		return i.expire(ctx, code, due[code], i.now(code))
	}))
	if err != nil || !rarely || !i.config.ClockTrusted() {
		return err
	}
	old, err := i.config.Store.OldOTPs(ctx, latest.Add(-i.config.Retention))
	return errors.Join(err, i.eachOwned(old, func(code parley.ChannelCode) error {
		return i.purge(ctx, code, i.now(code).Add(-i.config.Retention))
	}))
}

// eachOwned calls do for those of some channels that this process serves.
func (i *Issuer) eachOwned(codes []parley.ChannelCode, do func(parley.ChannelCode) error) error {
	for _, code := range codes {
		if i.config.Owns != nil && !i.config.Owns(code) {
			continue
		}
		if err := do(code); err != nil {
			return fmt.Errorf("channel %s: %w", code, err)
		}
	}
	return nil
}

// expire expires codes and links of a channel, and publishes that. The first is due at a time.
func (i *Issuer) expire(ctx context.Context, channel parley.ChannelCode, first, now time.Time) error {
	for more := !now.Before(first); more; {
		var expired int
		err := i.config.Store.Tx(ctx, func(tx *store.Tx) error {
			codes, err := tx.ExpireCodes(ctx, channel, first.Add(-time.Millisecond), now, purgeBatch)
			if err != nil {
				return err
			}
			links, err := tx.ExpireLinks(ctx, channel, now, purgeBatch)
			if err != nil {
				return err
			}
			expired, more = len(codes), max(len(codes), len(links)) == purgeBatch
			return publishExpired(ctx, tx, channel, codes, links, now)
		})
		if err != nil {
			return err
		}
		i.metrics.finishes[parley.OTPStatusExpired].Add(float64(expired))
	}
	return nil
}

// publishExpired adds the events of codes and links that expired.
func publishExpired(
	ctx context.Context, tx *store.Tx, channel parley.ChannelCode, codes []parley.OTPCode, links []parley.OTPLink, now time.Time,
) error {
	for _, l := range links {
		codes = append(codes, parley.OTPCode{ID: l.ID, Contact: l.Contact})
	}
	contacts := make([]parley.ContactID, len(codes))
	for n, c := range codes {
		contacts[n] = c.Contact
	}
	spellings, err := tx.NetworkSpellings(ctx, channel, contacts)
	if err != nil {
		return err
	}
	for _, c := range codes {
		contact := cmp.Or(spellings[c.Contact], c.Contact)
		if err := tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPExpired, c.ID, channel, contact, "", now, c.Tried...)); err != nil {
			return err
		}
	}
	return nil
}

// publish adds an event of a code or a link, with the network's spelling of the contact.
func publish(
	ctx context.Context, tx *store.Tx, kind parley.EventType, id parley.OTPID, channel parley.ChannelCode, contact parley.ContactID,
	reason string, at time.Time, tried ...parley.ChannelCode,
) (*parley.Event, error) {
	spellings, err := tx.Spellings(ctx, channel, contact)
	if err != nil {
		return nil, err
	}
	event := parley.NewOTPEvent(kind, id, channel, spellings[0], reason, at, tried...)
	return event, tx.AddEvent(ctx, event)
}

func publishCode(ctx context.Context, tx *store.Tx, kind parley.EventType, c parley.OTPCode, reason string, at time.Time) error {
	_, err := publish(ctx, tx, kind, c.ID, c.Channel, c.Contact, reason, at, c.Tried...)
	return err
}

func (i *Issuer) purge(ctx context.Context, channel parley.ChannelCode, before time.Time) error {
	for {
		var n int
		err := i.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.PurgeOTPs(ctx, channel, before, purgeBatch)
			return err
		})
		if err != nil || n < purgeBatch {
			return err
		}
	}
}

// metrics have no labels for channels or contacts.
type metrics struct {
	requests *prometheus.CounterVec
	tries    []prometheus.Counter // by status
	finishes []prometheus.Counter // by status
	alarms   *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer) metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return promauto.With(to).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := metrics{
		requests: counter("parley_otp_requests_total", "Requests for one-time codes, by outcome: sent or limited.", "outcome"),
		alarms: counter("parley_otp_alarms_total",
			"Detected attacks on one-time codes, by event: otp.paused or otp.guessing.", "event"),
	}
	tries := counter("parley_otp_tries_total", "Tries to use a one-time code, by result.", "status")
	ends := counter("parley_otp_ended_total", "One-time codes that finished, by status.", "status")
	for _, t := range []parley.EventType{parley.OTPPaused, parley.OTPGuessing} {
		m.alarms.WithLabelValues(string(t))
	}
	for _, s := range parley.OTPStatuses {
		m.tries = append(m.tries, tries.WithLabelValues(s.String()))
		m.finishes = append(m.finishes, ends.WithLabelValues(s.String()))
	}
	return m
}

// keyedHash hashes parts for a purpose. h is an HMAC and may be used again.
func keyedHash(h hash.Hash, purpose string, parts ...string) []byte {
	h.Reset()
	h.Write([]byte(purpose))
	for _, part := range parts {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part))) // so that different parts never give the same bytes
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// normalize removes blanks around a code and makes its letters uppercase. Only a to z have two forms: other letters that
// look alike stay different.
func normalize(code string) string { return uppercase(strings.TrimSpace(code)) }

// hashCode hashes a code for its row. A million codes are tried quickly, so the key must not be in the database.
func hashCode(digest func() hash.Hash, pepper []byte, of parley.OTPCode, code string) []byte {
	return keyedHash(hmac.New(digest, pepper), "otp1", string(of.ID), string(of.Channel), string(of.Contact), normalize(code))
}

// noCodeID replaces the id if there is no code to compare with. It has the same length, so the comparison is the same work.
const noCodeID = parley.OTPID("otc_000000000000000000000000")

// matches reports whether a code is the one that was sent. It takes the same time in all cases.
func (i *Issuer) matches(of parley.OTPCode, code string) bool {
	if of.ID == "" {
		of.ID, of.Hash = noCodeID, make([]byte, sha256.Size) // no hash is all zeros
	}
	same := 0
	for _, pepper := range i.peppers {
		same |= subtle.ConstantTimeCompare(hashCode(i.digest, pepper, of, code), of.Hash)
	}
	return same == 1
}

// linkHash hashes the code of a login link. The link is found by it. h is an HMAC with the pepper.
func linkHash(h hash.Hash, channel parley.ChannelCode, code string) []byte {
	return keyedHash(h, "link1", string(channel), code)
}

// ticket lets a browser without a token tap one link on the page of a simulated phone.
func ticket(pepper []byte, id parley.OTPID) string {
	hash := keyedHash(hmac.New(sha256.New, pepper), "ticket1", string(id))
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(hash)
}

// LinkOfTicket returns the link of a valid ticket. The link may be expired or purged.
func (i *Issuer) LinkOfTicket(given string) (parley.OTPID, bool) {
	const idLength = len("otl_") + 24
	if len(given) < idLength {
		return "", false
	}
	id := parley.OTPID(given[:idLength])
	for _, pepper := range i.peppers {
		if hmac.Equal([]byte(ticket(pepper, id)), []byte(given)) {
			return id, true
		}
	}
	return "", false
}
