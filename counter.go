package parley

import (
	"strconv"
	"time"
)

// Counter names something that is counted, by the minute. The names are stored and must not change.
type Counter string

const (
	CountSent           Counter = "sent"
	CountDelivered      Counter = "delivered"
	CountRead           Counter = "read"
	CountFailed         Counter = "failed"
	CountReceived       Counter = "received"
	CountCodes          Counter = "codes" // one-time codes that were requested
	CountCodesDelivered Counter = "codes_delivered"
	CountLinks          Counter = "links"    // login links that were requested
	CountApproved       Counter = "approved" // codes and links
	CountWebhookDone    Counter = "webhook_delivered"
	CountWebhookFailed  Counter = "webhook_failed"
	// CountAttemptFailed counts failed attempts to deliver to a webhook. The successful ones are CountWebhookDone.
	CountAttemptFailed Counter = "webhook_attempt_failed"
	// How long messages and attempts took, counted in buckets: see [Counter.Bucket].
	CountToSent      Counter = "to_sent"
	CountToDelivered Counter = "to_delivered"
	CountWebhookTook Counter = "webhook_took"
)

// CountFailedFor counts the failed messages with one reason.
func CountFailedFor(reason FailureCode) Counter { return CountFailed + "_" + Counter(reason) }

// CounterQuery selects counters in steps of time.
type CounterQuery struct {
	Channel ChannelCode   // empty: all together
	Webhook WebhookID     // empty: all together
	From    time.Time     // a multiple of Step
	Step    time.Duration // in minutes, or in hours
}

// TimeBounds are the upper bounds of the buckets that times are counted in. What took longer is in a last one.
var TimeBounds = []time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour,
}

// Bucket names the bucket of a time: "to_sent_250" counts what took over 100 and at most 250 milliseconds.
func (c Counter) Bucket(took time.Duration) Counter {
	for _, bound := range TimeBounds {
		if took <= bound {
			return c + "_" + Counter(strconv.FormatInt(bound.Milliseconds(), 10))
		}
	}
	return c + "_more"
}

// ChannelActivity is what happened on a channel of late.
type ChannelActivity struct {
	Sent, Failed            int64     // since a time
	ReceivedAt, ConfirmedAt time.Time // when it last got a message, and last had one confirmed; zero: never
}
