package api

import (
	"errors"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/gateway"
	"parley/internal/otp"
	"parley/internal/otp/rule"
)

// Names of limits in header fields. Those of one-time codes are in the root package.
const (
	limitRequests = "api"         // requests of a token
	limitFetches  = "media-fetch" // files fetched for a token: concurrently, and bytes per minute
	limitQueue    = "send"        // waiting messages of a channel
	limitStreams  = "streams"     // open event streams of a token
	limitUploads  = "uploads"     // files of a channel that wait for a message
)

func (r *request) noteQuota(q limit.Quota) {
	if q.TighterThan(r.quota) {
		r.quota = q
	}
}

func quotaFields(q limit.Quota) []field {
	policy, left := q.Header()
	return []field{{"RateLimit-Policy", policy}, {"RateLimit", left}}
}

// toQuota returns the limit that an error is about. Failed authentications show none, to give guessers no hint.
func toQuota(err error) (limit.Quota, bool) {
	if e, ok := errors.AsType[*limit.Error](err); ok {
		return e.Quota, true
	}
	if e, ok := errors.AsType[*otp.LimitError](err); ok {
		return codeQuota(e.Quota), true
	}
	return limit.Quota{}, false
}

// fullQueue adds the quota of the channel's queue to the error of a full queue. Its wait is an estimate.
func fullQueue(err error) error {
	e, ok := err.(*parley.Error)
	if !ok || e.Code != parley.QueueFull {
		return err
	}
	return &limit.Error{Quota: limit.Quota{Name: limitQueue, Most: gateway.MaxQueue, Wait: e.RetryAfter}, Err: e}
}

func codeQuota(q rule.Quota) limit.Quota {
	return limit.Quota{Name: q.Name, Most: int64(q.Quota), Window: q.Window, Left: int64(q.Left), Wait: q.Wait}
}
