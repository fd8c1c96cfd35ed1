package tally

import (
	"context"
	"slices"
	"time"

	"parley"
)

// Counts are how many messages reached a status, and how many came.
type Counts struct {
	Sent, Delivered, Read, Failed, Received int64
}

// Codes are how many one-time codes and login links were asked for, how many of the codes reached a
// phone, and how many of both were approved. What is requested includes the links, which reach nobody by
// themselves.
type Codes struct {
	Requested, Links, Delivered, Approved int64
}

// minute is what happened in one.
type minute struct {
	sent, delivered, read, failed, received uint32
	requested, links, reached, approved     uint32
}

func (m minute) counts() Counts {
	return Counts{int64(m.sent), int64(m.delivered), int64(m.read), int64(m.failed), int64(m.received)}
}

// channel is what is known of one. Quarters of an hour do for a day.
type channel struct {
	quarters       ring[quarter]
	inbound, moved time.Time // when something last came, and when the network last confirmed something
}

type quarter struct{ sent, failed uint32 }

const dayQuarters = 24 * 4

func quarterOf(at time.Time) int64 { return at.Unix() / (15 * 60) }

const (
	sampled  = 16      // messages of each step whose time to the phone is looked up
	maxCodes = 200_000 // on their way at once; of more it is not known whether they arrive
	// nearby is how far apart the Seqs of messages may be that are looked at together for codes.
	nearby = 64
)

// known is what was looked up because the log does not tell it.
type known struct {
	facts   map[int64]parley.MessageFacts
	secrets map[int64]time.Time // messages with codes, and when they were made
}

// lookUp finds out what the log does not tell. Read may be said of our own messages and of those that
// came, which only the message knows. Which messages carry codes is known of those that were sent since
// the start, and looked up of those before.
func (t *Tally) lookUp(ctx context.Context, traces []parley.Trace) (known, error) {
	t.mu.Lock()
	counting := t.counting
	t.mu.Unlock()
	k := known{map[int64]parley.MessageFacts{}, map[int64]time.Time{}}
	var seqs, sent []int64
	delivered := 0
	for _, e := range traces {
		switch {
		case e.Type != parley.MessageStatus:
		case e.Status == parley.Read:
			seqs = append(seqs, e.Message)
		case e.Status == parley.Delivered:
			if delivered++; delivered <= sampled {
				seqs = append(seqs, e.Message)
			}
		case counting && (e.Status == parley.Sent || e.Status == parley.FailedForGood):
			sent = append(sent, e.Message)
		}
	}
	facts, err := t.Store.Facts(ctx, seqs)
	if err != nil {
		return k, err
	}
	for _, f := range facts {
		k.facts[f.Seq] = f
	}
	slices.Sort(sent)
	for len(sent) > 0 {
		n := 1
		for n < len(sent) && sent[n]-sent[n-1] <= nearby {
			n++
		}
		secrets, err := t.Store.Secrets(ctx, sent[0], sent[n-1])
		if err != nil {
			return k, err
		}
		for _, f := range secrets {
			k.secrets[f.Seq] = f.CreatedAt
		}
		sent = sent[n:]
	}
	return k, nil
}

// count counts events. What is older than a day is too old, and what is still to come, on a clock that was
// moved, happens now.
func (t *Tally) count(traces []parley.Trace, k known, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range traces {
		if e.At.After(now) {
			e.At = now
		}
		if now.Sub(e.At) > Day {
			continue
		}
		in := t.all.at(minuteOf(e.At))
		if in == nil {
			continue
		}
		switch e.Type {
		case parley.MessageReceived:
			in.received++
			c := t.channel(e.Channel)
			c.inbound = later(c.inbound, e.At)
		case parley.MessageStatus:
			t.countStatus(in, e, k)
		case parley.OTPApproved:
			in.approved++
		}
	}
}

func (t *Tally) countStatus(in *minute, e parley.Trace, k known) {
	c := t.channel(e.Channel)
	q := c.quarters.at(quarterOf(e.At))
	if q == nil {
		return
	}
	_, isCode := t.codes[e.Message]
	switch e.Status {
	case parley.Sent:
		in.sent++
		q.sent++
		t.foundCode(e.Message, k)
	case parley.Delivered:
		in.delivered++
		if isCode {
			in.reached++
			delete(t.codes, e.Message)
		}
		if f, found := k.facts[e.Message]; found && !f.CreatedAt.IsZero() && !e.At.Before(f.CreatedAt) { // zero: removed since
			t.delivered.add(e.At.Sub(f.CreatedAt))
		}
	case parley.Read:
		if f, there := k.facts[e.Message]; there && !f.FromMe { // seen by us
			return
		}
		in.read++
	case parley.FailedForGood:
		in.failed++
		q.failed++
		t.foundCode(e.Message, k)
		delete(t.codes, e.Message)
		return
	}
	c.moved = later(c.moved, e.At)
}

// foundCode takes note of a code from before the start.
func (t *Tally) foundCode(message int64, k known) {
	if at, there := k.secrets[message]; there {
		if _, noted := t.codes[message]; !noted {
			t.noteCode(message, at)
		}
	}
}

func (t *Tally) noteCode(message int64, at time.Time) {
	if in := t.all.at(minuteOf(at)); in != nil {
		in.requested++
	}
	if len(t.codes) < maxCodes {
		t.codes[message] = struct{}{}
	}
}

// Code takes note that a one-time code was asked for, which a message carries.
func (t *Tally) Code(message int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteCode(message, time.Now())
}

// Link takes note that a login link was asked for.
func (t *Tally) Link() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLink(time.Now())
}

func (t *Tally) noteLink(at time.Time) {
	if in := t.all.at(minuteOf(at)); in != nil {
		in.requested++
		in.links++
	}
}

// maxLinks is how many links of a channel from before a start are counted.
const maxLinks = 10_000

// countLinks counts the links that were asked for before the start.
func (t *Tally) countLinks(ctx context.Context, since time.Time) error {
	channels, err := t.Store.Channels(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, c := range channels {
		links, err := t.Store.RecentLinks(ctx, c.Code, maxLinks)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for _, l := range links {
			if l.CreatedAt.After(since) && !l.CreatedAt.After(now) {
				t.noteLink(l.CreatedAt)
			}
		}
		t.mu.Unlock()
	}
	return nil
}

// channel returns what is known of a channel, to be changed.
func (t *Tally) channel(code parley.ChannelCode) *channel {
	c := t.channels[code]
	if c == nil {
		c = &channel{quarters: newRing[quarter](dayQuarters)}
		t.channels[code] = c
	}
	return c
}

// settled is how long ago a delivery must have been made to be counted for good: one that was made
// earlier may be committed later.
const settled = 10 * time.Second

// countDeliveries counts the deliveries that were made in the minutes since the last time.
func (t *Tally) countDeliveries(ctx context.Context, now time.Time) error {
	for ; t.minutes < minuteOf(now.Add(-settled)); t.minutes++ {
		made, err := t.deliveries(ctx, t.minutes, time.Unix(60*(t.minutes+1), 0))
		if err != nil {
			return err
		}
		t.mu.Lock()
		if in := t.webhooks.at(t.minutes); in != nil {
			*in = uint32(made)
		}
		t.mu.Unlock()
	}
	return nil
}

// deliveries counts those that were made from a minute on until a time.
func (t *Tally) deliveries(ctx context.Context, from int64, until time.Time) (int64, error) {
	_, made, err := t.Store.Deliveries(ctx, parley.DeliveryQuery{Since: time.Unix(60*from, 0), Until: until}, parley.Page{})
	return made, err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
