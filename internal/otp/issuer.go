// Package otp makes one-time codes and login links and decides who used one rightly. It keeps nothing
// of a code but a keyed hash and an encrypted text, and knows neither HTTP nor a chat network.
package otp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

// Config says what an issuer works with. The fields of the first block are required.
type Config struct {
	Store   *store.DB
	Keyring *encrypt.Keyring
	Now     func(parley.ChannelCode) time.Time // the channel's clock
	Log     *slog.Logger

	// ClockTrusted reports whether the clock may be trusted with what is old; nil: always.
	ClockTrusted func() bool
	// Metrics takes figures; nil: nobody wants them.
	Metrics prometheus.Registerer
	// Rand is where codes come from; nil: the system's source of randomness.
	Rand io.Reader
	// Retention is how long codes and links are kept after their time. Zero: a day. Less makes no sense:
	// the wrong tries of a day count.
	Retention time.Duration
	// ContactsPerHour is to how many strangers a channel may send codes in an hour, PrefixPerHour to how many
	// strangers whose numbers share all but their last 4 digits. Zero: 60 and 10, and on the sandbox any
	// number; below zero: any number.
	ContactsPerHour, PrefixPerHour int
	// LookUpNumber asks a channel's network for its spelling of a contact's number, and stores it where it is another one. Nil: no
	// network has spellings of its own.
	LookUpNumber func(context.Context, parley.ChannelCode, parley.ContactID) error
	// QueuedAhead returns how many messages of a channel leave before a new one of a priority; nil: none.
	QueuedAhead func(parley.ChannelCode, parley.Priority) int
}

// Issuer makes codes and links and checks them. Its methods may be called from several goroutines.
type Issuer struct {
	Config
	keyring  *encrypt.Keyring
	peppers  [][]byte         // for the hashes of codes: the first for new ones, all for checking
	digest   func() hash.Hash // what codes are compared by; tests count its work
	measures measures

	mu       sync.Mutex
	reserved map[reservation]int
}

// New returns an issuer.
func New(c Config) *Issuer {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.ClockTrusted == nil {
		c.ClockTrusted = func() bool { return true }
	}
	c.Retention = max(c.Retention, parley.OTPGuesses.Window)
	return &Issuer{Config: c, keyring: c.Keyring, peppers: c.Keyring.Derive("one-time codes"), digest: sha256.New,
		measures: newMeasures(c.Metrics), reserved: map[reservation]int{}}
}

// now is the time on a channel's clock, in the precision that is stored.
func (i *Issuer) now(channel parley.ChannelCode) time.Time {
	return i.Now(channel).UTC().Truncate(time.Millisecond)
}

const (
	// watchEvery is how soon it is noticed that a code or a link expired. Looking costs next to
	// nothing, and a sandbox channel's clock may be moved at any time.
	watchEvery = time.Second
	// forgetEvery is how often what ended long ago is removed: first a second after the start, when the
	// gateway knows the clocks of its channels.
	forgetEvery = time.Minute
	// houseBatch bounds one transaction, because everybody's writes wait for it.
	houseBatch = 500
)

// Run tells of codes and links that expire, and forgets what ended long ago, until ctx ends.
func (i *Issuer) Run(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	expired := map[parley.ChannelCode]time.Time{}
	for ticks := 0; ; ticks++ {
		if err := i.keepHouse(ctx, expired, ticks%int(forgetEvery/watchEvery) == 1); err != nil && ctx.Err() == nil {
			i.Log.Error("keep house of one-time codes", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// keepHouse looks after all channels. It notes up to when their codes have expired.
func (i *Issuer) keepHouse(ctx context.Context, expired map[parley.ChannelCode]time.Time, forget bool) error {
	channels, err := i.Store.Channels(ctx)
	if err != nil {
		return fmt.Errorf("list channels: %w", err)
	}
	for _, c := range channels {
		now := i.now(c.Code)
		if last, seen := expired[c.Code]; !seen || now.Before(last) { // the clock may have been ahead before
			if err := i.Store.Tx(ctx, func(tx *store.Tx) error { return tx.CorrectOTPTimes(ctx, c.Code, now) }); err != nil {
				return fmt.Errorf("correct times of %s: %w", c.Code, err)
			}
		}
		if err := i.expire(ctx, c.Code, expired[c.Code], now); err != nil {
			return fmt.Errorf("expire codes of %s: %w", c.Code, err)
		}
		expired[c.Code] = now // also where the clock was set back
		if !forget || !i.ClockTrusted() {
			continue
		}
		if err := i.forget(ctx, c.Code, now.Add(-i.Retention)); err != nil {
			return fmt.Errorf("forget codes of %s: %w", c.Code, err)
		}
	}
	return nil
}

// expire ends the codes and links of a channel that are past their time, and tells of them. The codes
// are those whose time came after one that was looked at before.
func (i *Issuer) expire(ctx context.Context, channel parley.ChannelCode, after, now time.Time) error {
	for {
		if due, err := i.Store.OTPsDue(ctx, channel, after, now); err != nil || !due {
			return err
		}
		var ended int
		err := i.Store.Tx(ctx, func(tx *store.Tx) error {
			codes, err := tx.ExpireCodes(ctx, channel, after, now, houseBatch)
			if err != nil {
				return err
			}
			links, err := tx.ExpireLinks(ctx, channel, now, houseBatch)
			if err != nil {
				return err
			}
			ended = len(codes)
			for _, c := range codes {
				if _, err := publish(ctx, tx, parley.OTPExpired, c.ID, channel, c.Contact, "", now); err != nil {
					return err
				}
			}
			for _, l := range links {
				if _, err := publish(ctx, tx, parley.OTPExpired, l.ID, channel, l.Contact, "", now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		i.measures.ended(parley.OTPStatusExpired, ended)
	}
}

// publish adds an event of a code or a link. It has the network's spelling of the contact.
func publish(ctx context.Context, tx *store.Tx, kind parley.EventType, id parley.OTPID, channel parley.ChannelCode, contact parley.ContactID,
	reason string, at time.Time) (*parley.Event, error) {
	spellings, err := tx.Spellings(ctx, channel, contact)
	if err != nil {
		return nil, err
	}
	event := parley.NewOTPEvent(kind, id, channel, spellings[0], reason, at)
	return event, tx.AddEvent(ctx, event)
}

func (i *Issuer) forget(ctx context.Context, channel parley.ChannelCode, before time.Time) error {
	for {
		var n int
		err := i.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.PurgeOTPs(ctx, channel, before, houseBatch)
			return err
		})
		if err != nil || n < houseBatch {
			return err
		}
	}
}
