package api

import (
	"errors"

	"parley"
	"parley/internal/api/limit"
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

// within has the answer tell of a quota that the request counted towards, unless it came closer to
// another.
func (r *request) within(q limit.Quota) {
	if q.TighterThan(r.quota) {
		r.quota = q
	}
}

// quotaFields are the header fields of a quota.
func quotaFields(q limit.Quota) []field {
	policy, left := q.Header()
	return []field{{"RateLimit-Policy", policy}, {"RateLimit", left}}
}

// exceeded finds the limit that an error is about. Those of callers who are not known are about none: who guesses
// at tokens need not know how often.
func exceeded(err error) (limit.Quota, bool) {
	if e, ok := errors.AsType[*limit.Error](err); ok {
		return e.Quota, true
	}
	if e, ok := errors.AsType[*otp.LimitError](err); ok {
		return codeQuota(e.Quota), true
	}
	return limit.Quota{}, false
}

// fullQueue has the answer say that it was the channel's queue that took no more, if it was. How soon
// there is room is the network's to say, so that its wait is a guess.
func fullQueue(err error) error {
	e, ok := err.(*parley.Error) // as the gateway makes it; nothing else that it returns has this code
	if !ok || e.Code != parley.TooMany {
		return err
	}
	return &limit.Error{Quota: limit.Quota{Name: limitQueue, Most: gateway.MaxQueue, Wait: e.RetryAfter}, Err: e}
}

// codeQuota is what is left of a limit of one-time codes.
func codeQuota(q parley.OTPQuota) limit.Quota {
	return limit.Quota{Name: q.Name, Most: int64(q.Quota), Window: q.Window, Left: int64(q.Left), Wait: q.Wait}
}
