package tally

import (
	"context"
	"time"

	"parley"
)

// Report is what happened in the last day.
type Report struct {
	Counting bool      // the log of the last day is still being read: the figures will grow
	From     time.Time // what happened before is not counted
	Counts   Counts
	Codes    Codes
	// ToSent is from the acceptance of a message to the network's confirmation, of all messages; ToDelivered
	// to its arrival on the phone, of samples. Nil: there were none.
	ToSent, ToDelivered *Times
	SentFrom            time.Time // from when on ToSent is measured: a day ago, or the start
	Webhooks            Webhooks
	Minutes             []Minute // the last hour, oldest first
}

// Times are how long something took, in milliseconds.
type Times struct{ P50, P95 int64 }

// Webhooks is what became of the deliveries that were made. Those that wait may be older than a day.
type Webhooks struct{ Delivered, Failed, Waiting int64 }

// Minute is what happened in one.
type Minute struct {
	At time.Time
	Counts
}

const hour = 60 // minutes

// Report reads on, if not much is new, and tells what there is.
func (t *Tally) Report(ctx context.Context) (Report, error) {
	if err := t.Freshen(ctx); err != nil {
		return Report{}, err
	}
	now := time.Now()
	webhooks, err := t.reportWebhooks(ctx, now)
	if err != nil {
		return Report{}, err
	}
	t.one.Lock()
	toSent, sentFrom := t.sent.times(t.Metrics)
	t.one.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Report{Counting: t.counting, From: t.from, ToSent: toSent, SentFrom: sentFrom, ToDelivered: t.delivered.times(), Webhooks: webhooks}
	this := minuteOf(now)
	t.all.each(this, func(m minute) {
		c := m.counts()
		r.Counts.Sent += c.Sent
		r.Counts.Delivered += c.Delivered
		r.Counts.Read += c.Read
		r.Counts.Failed += c.Failed
		r.Counts.Received += c.Received
		r.Codes.Requested += int64(m.requested)
		r.Codes.Links += int64(m.links)
		r.Codes.Delivered += int64(m.reached)
		r.Codes.Approved += int64(m.approved)
	})
	for number := this - hour + 1; number <= this; number++ {
		r.Minutes = append(r.Minutes, Minute{time.Unix(60*number, 0).UTC(), t.all.get(number).counts()})
	}
	return r, nil
}

// Freshen reads what is new, but not so much that whoever asks would wait long.
func (t *Tally) Freshen(ctx context.Context) error {
	for range stepsNow {
		if done, err := t.step(ctx); done || err != nil {
			return err
		}
	}
	return nil
}

func (t *Tally) reportWebhooks(ctx context.Context, now time.Time) (Webhooks, error) {
	t.one.Lock()
	counted := t.minutes
	t.one.Unlock()
	made, err := t.deliveries(ctx, max(counted, minuteOf(now.Add(-Day))), time.Time{})
	if err != nil {
		return Webhooks{}, err
	}
	t.mu.Lock()
	t.webhooks.each(minuteOf(now), func(n uint32) { made += int64(n) })
	t.mu.Unlock()
	var w Webhooks
	failed := parley.DeliveryFailed
	if _, w.Failed, err = t.Store.Deliveries(ctx, parley.DeliveryQuery{State: &failed, Since: now.Add(-Day)}, parley.Page{}); err != nil {
		return Webhooks{}, err
	}
	if w.Waiting, err = t.Store.CountWaiting(ctx, ""); err != nil {
		return Webhooks{}, err
	}
	waiting, err := t.Store.CountWaitingSince(ctx, now.Add(-Day))
	w.Delivered = max(0, made-w.Failed-waiting)
	return w, err
}

// Channel is what is known of one channel.
type Channel struct {
	Sent, Failed       int64     // in the last day, to a quarter of an hour
	Inbound, Confirmed time.Time // the last of each in what was counted; zero: there was none
}

// Channel tells what is known of a channel by now.
func (t *Tally) Channel(code parley.ChannelCode) Channel {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, known := t.channels[code]
	if !known {
		return Channel{}
	}
	one := Channel{Inbound: c.inbound, Confirmed: c.moved}
	c.quarters.each(quarterOf(time.Now()), func(q quarter) {
		one.Sent += int64(q.sent)
		one.Failed += int64(q.failed)
	})
	return one
}

// Forget drops what is known of a channel that is gone.
func (t *Tally) Forget(code parley.ChannelCode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.channels, code)
}
