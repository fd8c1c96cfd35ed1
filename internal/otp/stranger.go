package otp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

// The default limits of codes to strangers in an hour. A simulated network has none by default.
const (
	defaultStrangers  = 60
	defaultSamePrefix = 10
)

// strangerLimits returns the limits in an hour: of strangers, and of numbers that share a prefix; zero: no limit.
func (i *Issuer) strangerLimits(network parley.NetworkName) (strangers, samePrefix int) {
	limit := func(set, byDefault int) int {
		switch {
		case set < 0, set == 0 && i.config.Network(network).Simulated:
			return 0
		case set == 0:
			return byDefault
		}
		return set
	}
	return limit(i.config.ContactsPerHour, defaultStrangers), limit(i.config.PrefixPerHour, defaultSamePrefix)
}

func (i *Issuer) limitsStrangers(r CodeRequest) bool {
	strangers, samePrefix := i.strangerLimits(r.Channel.Network)
	return strangers > 0 || samePrefix > 0
}

// errMustPause says that too few codes to strangers were approved. The caller must call pause.
var errMustPause = errors.New("codes to strangers must pause")

// checkStranger rejects a code to a stranger beyond the limits, and while such codes pause. If a pause must begin, the error
// is errMustPause.
func (i *Issuer) checkStranger(ctx context.Context, from ledgers, r CodeRequest, now time.Time) (rule.Strangers, error) {
	strangers, samePrefix := i.strangerLimits(r.Channel.Network)
	s, err := from.Strangers(ctx, r.Channel.Code, r.Contact, now, max(strangers, samePrefix))
	if err == nil && s.MustPause() {
		err = errMustPause
	}
	if err != nil {
		return s, err
	}
	var exceeded rule.Quota
	for _, q := range s.Limits(strangers, samePrefix, now) {
		if q.Left == 0 && q.Wait > exceeded.Wait {
			exceeded = q
		}
	}
	if exceeded.Name != "" {
		return s, strangerLimitError(exceeded, now)
	}
	return s, nil
}

// pauseError is the error of the request with which the pause begins.
func pauseError(now time.Time) *LimitError {
	return strangerLimitError(rule.PauseQuota(rule.PauseLength), now)
}

func (i *Issuer) pause(ctx context.Context, channel parley.ChannelCode, s rule.Strangers, now time.Time) error {
	alarm := parley.OTPAlarm{Channel: channel, Type: parley.OTPPaused, At: now, Until: now.Add(rule.PauseLength), Count: s.Codes}
	return i.config.Store.Tx(ctx, func(tx *store.Tx) error {
		raised, err := tx.RaiseOTPAlarm(ctx, alarm)
		if err != nil || !raised { // a concurrent request raised it
			return err
		}
		tx.OnCommit(func() { i.metrics.alarms.WithLabelValues(string(alarm.Type)).Inc() })
		return tx.AddEvent(ctx, parley.NewPauseEvent(alarm, s.Approved))
	})
}

func strangerLimitError(q rule.Quota, now time.Time) *LimitError {
	var sentence string
	switch q.Name {
	case "otp-contacts":
		sentence = fmt.Sprintf("The limit of codes to %d new contacts in an hour is reached.", q.Quota)
	case "otp-prefix":
		sentence = fmt.Sprintf("The limit of codes to %d new contacts in an hour whose numbers share all but their last 4 digits "+
			"is reached.", q.Quota)
	default:
		sentence = fmt.Sprintf("Codes to new contacts pause until %s, because too few of the last ones were approved.",
			parley.Stamp(now.Add(q.Wait)))
	}
	return newLimitError(q, sentence)
}

// reserve counts a code until it is queued. It rejects one that would expire before the codes ahead of it have left.
func (i *Issuer) reserve(r CodeRequest, priority parley.Priority) (release func(), err error) {
	_, pace := i.config.Network(r.Channel.Network).Pace(r.Channel) // the maximum
	if pace == 0 || i.config.QueuedAhead == nil {
		return func() {}, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	ahead := i.config.QueuedAhead(r.Channel.Code, priority)
	for p := priority; p < parley.Priorities; p++ {
		ahead += i.reserved[reservation{r.Channel.Code, p}]
	}
	if wait := time.Duration(ahead) * pace; wait > r.TTL {
		return nil, queueLimitError(r, ahead, pace, wait-r.TTL)
	}
	key := reservation{r.Channel.Code, priority}
	i.reserved[key]++
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.reserved[key]--; i.reserved[key] == 0 {
			delete(i.reserved, key)
		}
	}), nil
}

type reservation struct {
	channel  parley.ChannelCode
	priority parley.Priority
}

func queueLimitError(r CodeRequest, ahead int, pace, wait time.Duration) *LimitError {
	q := rule.Quota{Limit: rule.Limit{Name: "otp-queue", Quota: int(r.TTL / pace), Window: r.TTL}, Wait: wait}
	return newLimitError(q, fmt.Sprintf("%d codes leave before this one, which takes up to %s at the channel's pace: "+
		"longer than the code is valid.", ahead, time.Duration(ahead)*pace))
}
