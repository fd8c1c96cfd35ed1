package api

import (
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/otp"
)

// The names of limits, as header fields call them. Those of one-time codes have theirs from the root.
const (
	limitRequests = "api"         // requests of a token
	limitFetches  = "media-fetch" // files that are fetched for a token: at once, and bytes in a minute
	limitQueue    = "send"        // messages that a channel has waiting
	limitStreams  = "streams"     // of events that a token has open
)

// What is counted, where it is not requests.
const (
	unitBytes  = "content-bytes"
	unitAtOnce = "concurrent-requests"
)

// quota is what is left of a limit. It never says whose: a number has no place in a header.
type quota struct {
	name    string // empty: there is no limit
	unit    string // empty: requests
	most    int64
	window  time.Duration // zero: it does not go by time
	left    int64
	wait    time.Duration // until there is more; where the quota refuses, until it would not
	refuses bool          // the request that it was asked for
}

// fields are the header fields that tell of the quota, in the syntax of structured fields (RFC 9651).
// Times are rounded up: nobody is told to come back too early.
func (q quota) fields() []field {
	policy := fmt.Sprintf("%q;q=%d", q.name, q.most)
	if q.window > 0 {
		policy += fmt.Sprintf(";w=%d", wholeSeconds(q.window))
	}
	if q.unit != "" {
		policy += fmt.Sprintf(";qu=%q", q.unit)
	}
	return []field{
		{"RateLimit-Policy", policy},
		{"RateLimit", fmt.Sprintf("%q;r=%d;t=%d", q.name, q.left, wholeSeconds(q.wait))},
	}
}

// tighterThan reports whether less is left of the quota than of another.
func (q quota) tighterThan(other quota) bool {
	switch {
	case other.name == "":
		return true
	case q.left == 0 && other.left == 0:
		return q.wait > other.wait
	}
	return float64(q.left)/float64(q.most) < float64(other.left)/float64(other.most)
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// within has the answer tell of a quota that the request counted towards, unless it came closer to
// another.
func (r *request) within(q quota) {
	if q.tighterThan(r.quota) {
		r.quota = q
	}
}

// overLimit is the error of a request that is over a limit, which its answer names.
type overLimit struct {
	quota
	error // a [parley.Error]
}

func (e *overLimit) Unwrap() error { return e.error }

func over(q quota, sentence string) error {
	return &overLimit{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.wait, Message: sentence}}
}

// exceeded finds the limit that an error is about. Those of callers who are not known are about none:
// whoever guesses at tokens need not know how often.
func exceeded(err error) (quota, bool) {
	if e, ok := errors.AsType[*overLimit](err); ok {
		return e.quota, true
	}
	if e, ok := errors.AsType[*otp.Limited](err); ok {
		return codeQuota(e.Quota), true
	}
	return quota{}, false
}

// fullQueue has the answer say that it was the channel's queue that took no more, if it was. How soon
// there is room is the network's to say, so that its wait is a guess.
func fullQueue(err error) error {
	e, ok := err.(*parley.Error) // as the gateway makes it; nothing else that it returns has this code
	if !ok || e.Code != parley.TooMany {
		return err
	}
	return &overLimit{quota{name: limitQueue, most: gateway.MaxQueue, wait: e.RetryAfter}, e}
}

// codeQuota is what is left of a limit of one-time codes.
func codeQuota(q parley.OTPQuota) quota {
	return quota{name: q.Name, most: int64(q.Quota), window: q.Window, left: int64(q.Left), wait: q.Wait}
}
