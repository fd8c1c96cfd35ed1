package otp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
)

// limitsCrowd reports whether it matters to whom codes are sent.
func (i *Issuer) limitsCrowd() bool { return i.ContactsPerHour > 0 || i.AlikePerHour > 0 }

// withinCrowd refuses a contact that is one too many. It reports whether the channel had no chat with
// the contact yet.
func (i *Issuer) withinCrowd(ctx context.Context, from parley.Reader, channel parley.ChannelCode, contact parley.ContactID, now time.Time) (fresh bool, err error) {
	_, err = from.Chat(ctx, channel, contact)
	if fresh = errors.Is(err, parley.ErrNotFound); err != nil && !fresh {
		return false, err
	}
	crowd, err := from.Crowd(ctx, channel, contact, now.Add(-parley.OTPCrowdWindow), max(i.ContactsPerHour, i.AlikePerHour))
	if err != nil {
		return false, err
	}
	for _, q := range crowd.Limits(i.ContactsPerHour, i.AlikePerHour, fresh, now) {
		if q.Left == 0 {
			return fresh, crowded(q)
		}
	}
	return fresh, nil
}

// crowded is the error of a request for one contact too many.
func crowded(q parley.OTPQuota) *Limited {
	sentence := fmt.Sprintf("Codes were sent to %d people within an hour with whom this channel had no chat, the most that it may.", q.Quota)
	if q.Name == "otp-prefix" {
		sentence = fmt.Sprintf("Codes were sent to %d numbers within an hour that differ from this one in their last 4 digits only, the most that this channel may.", q.Quota)
	}
	return &Limited{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence + " Try again after the time in Retry-After."}}
}
