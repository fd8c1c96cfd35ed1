package otp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
)

// The default limits of a channel on codes to strangers, in an hour. The sandbox has none unless they are set.
const (
	defaultStrangers = 60
	defaultAlike     = 10
)

// strangerLimits returns how many strangers, and how many numbers that share a prefix, a channel may send
// codes to in an hour; zero: any number.
func (i *Issuer) strangerLimits(network parley.NetworkName) (strangers, alike int) {
	limit := func(set, byDefault int) int {
		switch {
		case set < 0, set == 0 && network == parley.Sandbox:
			return 0
		case set == 0:
			return byDefault
		}
		return set
	}
	return limit(i.ContactsPerHour, defaultStrangers), limit(i.PrefixPerHour, defaultAlike)
}

// limitsStrangers reports whether codes to strangers are limited.
func (i *Issuer) limitsStrangers(o CodeRequest) bool {
	strangers, alike := i.strangerLimits(o.Channel.Network)
	return strangers > 0 || alike > 0
}

// errMustPause says that too few codes to strangers were approved. Whoever gets it calls pause.
var errMustPause = errors.New("codes to strangers must pause")

// withinStrangers refuses a code to a stranger that is one too many, and while such codes pause. Where they
// must begin to, the error is errMustPause.
func (i *Issuer) withinStrangers(ctx context.Context, from ledgers, o CodeRequest, now time.Time) (parley.OTPStrangers, error) {
	strangers, alike := i.strangerLimits(o.Channel.Network)
	s, err := from.Strangers(ctx, o.Channel.Code, o.Contact, now, max(strangers, alike))
	if err == nil && s.MustPause() {
		err = errMustPause
	}
	if err != nil {
		return s, err
	}
	var tight parley.OTPQuota
	for _, q := range s.Limits(strangers, alike, now) {
		if q.Left == 0 && q.Wait > tight.Wait {
			tight = q
		}
	}
	if tight.Name != "" {
		return s, limitedStranger(tight, now)
	}
	return s, nil
}

// paused is the error of the request that codes to strangers begin to pause with.
func paused(now time.Time) *LimitError {
	return limitedStranger(parley.PauseQuota(parley.OTPPauseLength), now)
}

// pause has codes to strangers pause.
func (i *Issuer) pause(ctx context.Context, channel parley.ChannelCode, s parley.OTPStrangers, now time.Time) error {
	alarm := parley.OTPAlarm{Channel: channel, Type: parley.OTPPaused, At: now, Until: now.Add(parley.OTPPauseLength), Count: s.Codes}
	return i.Store.Tx(ctx, func(tx *store.Tx) error {
		raised, err := tx.RaiseOTPAlarm(ctx, alarm)
		if err != nil || !raised { // others were refused at the same time
			return err
		}
		tx.OnCommit(func() { i.measures.alarm(alarm.Type) })
		return tx.AddEvent(ctx, parley.NewPauseEvent(alarm, s.Approved))
	})
}

// limitedStranger is the error of a request for a code to a stranger.
func limitedStranger(q parley.OTPQuota, now time.Time) *LimitError {
	var sentence string
	switch q.Name {
	case "otp-contacts":
		sentence = fmt.Sprintf("Codes were sent to %d new contacts within an hour, the most that this channel may.", q.Quota)
	case "otp-prefix":
		sentence = fmt.Sprintf("Codes were sent to %d numbers within an hour that share all but their last 4 digits with this one, "+
			"the most that this channel may.", q.Quota)
	default:
		sentence = fmt.Sprintf("Codes to new contacts pause until %s, because too few of the last ones were approved.",
			parley.Stamp(now.Add(q.Wait)))
	}
	return tooMany(q, sentence)
}

// reserve counts a code as waiting until the queue does, and refuses it where the codes that leave before it
// take longer than it lives.
func (i *Issuer) reserve(o CodeRequest, priority parley.Priority) (release func(), err error) {
	_, pace := o.Channel.Pace() // the most, where it is drawn by chance
	if pace == 0 || i.QueuedAhead == nil {
		return func() {}, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	ahead := i.QueuedAhead(o.Channel.Code, priority)
	for p := priority; p < parley.Priorities; p++ {
		ahead += i.reserved[reservation{o.Channel.Code, p}]
	}
	if wait := time.Duration(ahead) * pace; wait > o.TTL {
		return nil, limitedQueue(o, ahead, pace, wait-o.TTL)
	}
	key := reservation{o.Channel.Code, priority}
	i.reserved[key]++
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.reserved[key]--; i.reserved[key] == 0 {
			delete(i.reserved, key)
		}
	}), nil
}

// reservation is under what codes are counted that were accepted and are not queued yet.
type reservation struct {
	channel  parley.ChannelCode
	priority parley.Priority
}

// limitedQueue is the error of a request whose code would expire before it left.
func limitedQueue(o CodeRequest, ahead int, pace, wait time.Duration) *LimitError {
	q := parley.OTPQuota{OTPLimit: parley.OTPLimit{Name: "otp-queue", Quota: int(o.TTL / pace), Window: o.TTL}, Wait: wait}
	return tooMany(q, fmt.Sprintf("%d codes leave before this one, which takes up to %s at the channel's pace: longer than the code is valid.",
		ahead, time.Duration(ahead)*pace))
}
