package parley

import (
	"context"
	"time"
)

// OTPCrowdWindow is how far back a crowd goes.
const OTPCrowdWindow = time.Hour

// OTPCrowd is to whom a channel sent codes within the last hour, as far as it matters to one contact.
// Somebody who has codes sent to numbers that nobody here knows, one after the other, does not want
// to verify anybody.
type OTPCrowd struct {
	Among bool        // the contact is in it: nobody new joins
	Fresh []time.Time // when people joined with whom the channel had no chat, newest first
	Alike []time.Time // when numbers joined that differ from the contact's in their last 4 digits only, newest first
}

// OTPCrowdReader reads crowds.
type OTPCrowdReader interface {
	// Crowd reads a channel's crowd since a time: of both kinds the newest, up to limit.
	Crowd(ctx context.Context, channel ChannelCode, contact ContactID, since time.Time, limit int) (OTPCrowd, error)
}

// OTPCrowdWriter writes crowds.
type OTPCrowdWriter interface {
	// JoinCrowd notes that a channel sends a code to a contact, unless it did since a time already. It
	// forgets who joined before that time.
	JoinCrowd(ctx context.Context, channel ChannelCode, contact ContactID, fresh bool, at, since time.Time) error
}

// Limits returns the limits on a crowd as they stand: on people whom the channel never wrote with, and
// on numbers alike. Zero is no limit, and not among them.
func (c OTPCrowd) Limits(fresh, alike int, isFresh bool, now time.Time) []OTPQuota {
	if c.Among {
		return nil
	}
	var quotas []OTPQuota
	if fresh > 0 && isFresh {
		quotas = append(quotas, OTPLimit{"otp-contacts", fresh, OTPCrowdWindow}.Of(Ages(c.Fresh, now)))
	}
	if alike > 0 {
		quotas = append(quotas, OTPLimit{"otp-prefix", alike, OTPCrowdWindow}.Of(Ages(c.Alike, now)))
	}
	return quotas
}
