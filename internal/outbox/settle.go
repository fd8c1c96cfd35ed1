package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
)

const (
	maxAttempts = 20 // then something is wrong that waiting does not cure
	firstRetry  = time.Second
	lastRetry   = 5 * time.Minute
)

// burst is a handful of messages on their way to the network, and what became of them.
type burst struct {
	messages    []*parley.Message
	rest        []time.Time // by message: zero when it is settled, else not to be tried before
	recorded    bool        // what was sent is in the store; else the recorder has it
	failedPools []failedPool
}

type failedPool struct {
	ID   parley.PoolID
	Chat parley.ContactID
}

// send gives messages to the network and records what it answered in one transaction. If that
// fails, nothing is lost: they stay pending and are sent again under the same ids.
func (w *Worker) send(ctx context.Context, s Sender, ms []*parley.Message) burst {
	b := burst{messages: ms, rest: make([]time.Time, len(ms))}
	errs := make([]error, len(ms))
	w.markSettled(ctx, ms, errs)
	if live := w.revealed(ms, errs); len(live) > 0 {
		limited, cancel := context.WithTimeout(ctx, sendTimeout)
		answers := s.Send(limited, live)
		cancel()
		for i, j := 0, 0; i < len(ms); i++ {
			if errs[i] == nil {
				errs[i] = answers[j]
				j++
			}
		}
	}
	if err := w.record(ctx, &b, errs); err != nil {
		w.Log.Error("record what was sent", "channel", w.Channel, "err", err)
		for i := range b.rest {
			b.rest[i] = w.Now().Add(blink)
		}
		b.failedPools = nil
	}
	return b
}

// revealed returns the messages that are to be sent, as the network is to have them: secrets in clear,
// in copies that nobody else sees. Those that are settled already, or whose secret is not to be had any
// more, are marked in errs and left out.
func (w *Worker) revealed(ms []*parley.Message, errs []error) []*parley.Message {
	if !slices.ContainsFunc(ms, isSecret) && !slices.ContainsFunc(errs, isError) {
		return ms // nearly always
	}
	var live []*parley.Message
	for i, m := range ms {
		if secret, ok := m.Content.(parley.Secret); ok && errs[i] == nil {
			clear := *m
			clear.Content, errs[i] = w.Reveal(secret)
			m = &clear
		}
		if errs[i] == nil {
			live = append(live, m)
		}
	}
	return live
}

func isSecret(m *parley.Message) bool {
	_, secret := m.Content.(parley.Secret)
	return secret
}

func isError(err error) bool { return err != nil }

// errSettled marks a message that a receipt or a deletion settled while it waited.
var errSettled = errors.New("settled meanwhile")

// markSettled marks the messages in errs that need not be sent. One that was tried before may have
// arrived after all, and a receipt may have said so.
func (w *Worker) markSettled(ctx context.Context, ms []*parley.Message, errs []error) {
	for i, m := range ms {
		if m.Attempts == 0 {
			continue
		}
		if now, err := w.Store.Message(ctx, w.Channel, m.Ref()); err == nil && now.Status.IsSettled() {
			m.Status, m.Failure, m.UpdatedAt = now.Status, now.Failure, now.UpdatedAt
			errs[i] = errSettled
		}
	}
}

// record stores the outcome of every message of a burst and tells it on. Failures, delays and what
// operations change are durable first. That a message was sent is told at once: see recorder.
func (w *Worker) record(ctx context.Context, b *burst, errs []error) error {
	now := w.Now()
	verdicts := make([]verdict, len(errs))
	var confirmed []int64
	for i, err := range errs {
		verdicts[i] = judge(b.messages[i], err, now)
		if verdicts[i].status == parley.Sent && b.messages[i].Content.Kind().IsRecord() {
			confirmed = append(confirmed, b.messages[i].Seq)
		}
	}
	if len(confirmed) < len(errs) || slices.ContainsFunc(b.messages, w.hasEffect) {
		if err := w.recordFirst(ctx, b.messages, verdicts, confirmed, now); err != nil {
			return err
		}
		b.recorded = true
	} else { // before anybody is told, who may look at once
		w.recorder.add(confirmed)
	}
	for i, m := range b.messages {
		v := verdicts[i]
		m.Attempts = v.attempts
		b.rest[i] = v.rest
		if !v.rest.IsZero() {
			continue
		}
		if v.status != parley.Pending { // else it was settled by somebody else, with the status it has
			m.Status, m.Failure, m.UpdatedAt = v.status, v.failure, now
		}
		if v.status == parley.FailedForGood && m.Pool != "" {
			b.failedPools = append(b.failedPools, failedPool{m.Pool, m.Chat})
		}
		w.Settled(m)
	}
	return nil
}

// recordFirst stores what must be durable before it is told. When a pool fails, the store must know
// which of its messages were sent before.
func (w *Worker) recordFirst(ctx context.Context, ms []*parley.Message, verdicts []verdict, confirmed []int64, now time.Time) error {
	if err := w.recorder.flush(ctx); err != nil {
		return err
	}
	var removed []parley.Media
	err := w.Store.Tx(ctx, func(tx parley.Tx) error {
		removed = removed[:0]
		if err := tx.ConfirmMessages(ctx, w.Channel, confirmed, now); err != nil {
			return err
		}
		for i, m := range ms {
			if err := w.recordOne(ctx, tx, m, verdicts[i], now, &removed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, media := range removed {
		w.Removed(media)
	}
	return nil
}

func (w *Worker) recordOne(ctx context.Context, tx parley.Tx, m *parley.Message, v verdict, now time.Time, removed *[]parley.Media) error {
	switch {
	case v.status == parley.Sent:
		if !m.Content.Kind().IsRecord() { // records are confirmed all at once
			if _, err := tx.AdvanceMessage(ctx, w.Channel, m.Ref(), parley.Sent, nil, now); err != nil {
				return gone(err)
			}
		}
		return w.apply(ctx, tx, m, now, removed)
	case v.status == parley.FailedForGood:
		if _, err := w.fail(ctx, tx, m, v.failure, now); err != nil {
			return gone(err)
		}
		if m.Pool != "" {
			_, err := tx.FailPool(ctx, w.Channel, m.Pool, *notSent(), now)
			return err
		}
	case v.attempts != m.Attempts:
		return gone(tx.DelayMessage(ctx, w.Channel, m.Ref(), v.attempts, v.rest))
	}
	return nil
}

// fail stores that a message will not be sent, and tells of the one-time code that it carried.
func (w *Worker) fail(ctx context.Context, tx parley.Tx, m *parley.Message, why *parley.Failure, now time.Time) (bool, error) {
	moved, err := tx.AdvanceMessage(ctx, w.Channel, m.Ref(), parley.FailedForGood, why, now)
	if secret, ok := m.Content.(parley.Secret); ok && secret.OTP.IsCode() && moved && err == nil {
		err = tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPFailed, secret.OTP, w.Channel, m.Chat, string(why.Code), now))
	}
	return moved, err
}

// gone forgives that a message is not there any more: its channel was deleted meanwhile.
func gone(err error) error {
	if errors.Is(err, parley.ErrNotFound) {
		return nil
	}
	return err
}

// verdict is what follows for a message from what the network answered.
type verdict struct {
	status   parley.Status // Pending: it goes on waiting, or somebody else settled it
	failure  *parley.Failure
	attempts int
	rest     time.Time // zero: settled
}

// judge decides what follows from an answer. It is the whole of the retry rules.
func judge(m *parley.Message, err error, now time.Time) verdict {
	if err == nil {
		return verdict{status: parley.Sent, attempts: m.Attempts}
	}
	if errors.Is(err, errSettled) {
		return verdict{attempts: m.Attempts}
	}
	if errors.Is(err, network.ErrHeldBack) {
		return verdict{attempts: m.Attempts, rest: now} // the one before it decides how long the chat rests
	}
	switch network.ClassOf(err) {
	case network.Permanent:
		e, _ := errors.AsType[*network.Error](err)
		return verdict{status: parley.FailedForGood, failure: &e.Failure, attempts: m.Attempts + 1}
	case network.Disconnected:
		return verdict{attempts: m.Attempts, rest: now.Add(blink)}
	default: // Temporary and Unknown: the same id goes out again
		attempts := m.Attempts + 1
		if attempts >= maxAttempts {
			return verdict{status: parley.FailedForGood, attempts: attempts, failure: &parley.Failure{
				Code: parley.GaveUp, Message: "Sending was tried 20 times and failed each time."}}
		}
		return verdict{attempts: attempts, rest: now.Add(backOff(attempts))}
	}
}

// backOff is how long to wait after so many failed attempts: doubling, with a fifth of chance either
// way so that what failed together does not come back together.
func backOff(attempts int) time.Duration {
	d := lastRetry
	if shift := attempts - 1; shift < 9 {
		d = min(lastRetry, firstRetry<<shift)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// expire fails everything that waited too long, wherever in the queue it stands.
func (w *Worker) expire(now time.Time) {
	if w.nextExpiry.IsZero() || now.Before(w.nextExpiry) {
		return
	}
	w.nextExpiry = time.Time{}
	var late []*parley.Message
	w.lanes.all(func(m *parley.Message) {
		switch {
		case m.ExpiresAt.IsZero():
		case !m.ExpiresAt.After(now):
			late = append(late, m)
		case w.nextExpiry.IsZero() || m.ExpiresAt.Before(w.nextExpiry):
			w.nextExpiry = m.ExpiresAt
		}
	})
	if len(late) == 0 {
		return
	}
	failure := &parley.Failure{Code: parley.Expired, Message: "It could not be sent in the time that its channel allows."}
	var mended []*parley.Message // a receipt may have settled some
	err := w.Store.Tx(context.Background(), func(tx parley.Tx) error {
		mended = mended[:0]
		for _, m := range late {
			moved, err := w.fail(context.Background(), tx, m, failure, now)
			if err := gone(err); err != nil {
				return err
			}
			if !moved {
				mended = append(mended, m)
			}
		}
		return nil
	})
	if err != nil {
		w.Log.Error("expire messages", "channel", w.Channel, "err", err)
		w.nextExpiry = now.Add(blink)
		return
	}
	settledElsewhere := map[*parley.Message]bool{}
	for _, m := range mended {
		settledElsewhere[m] = true
	}
	for _, m := range late {
		w.lanes.remove(m.Chat, func(other *parley.Message) bool { return other == m })
		w.forget(m)
		if !settledElsewhere[m] {
			m.Status, m.Failure, m.UpdatedAt = parley.FailedForGood, failure, now
		}
		w.Settled(m)
	}
}

func notSent() *parley.Failure {
	return &parley.Failure{Code: parley.NotSent, Message: "An earlier message of the pool failed, so this one was not sent."}
}
