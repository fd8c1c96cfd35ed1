package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	maxAttempts = 20 // then something is wrong that waiting does not cure
	firstRetry  = time.Second
	lastRetry   = 5 * time.Minute
	// lastRecordRetry is the longest pause between attempts to store what became of a burst.
	lastRecordRetry = 30 * time.Second
)

// burst is a handful of messages on their way to the network, and what became of them.
type burst struct {
	entries     []*entry
	messages    []*parley.Message // what they say
	connection  int               // the number of the connection that it is sent on
	ctx         context.Context
	cancel      context.CancelFunc
	open        int // how many no receipt has confirmed; owned by Run
	verdicts    []verdict
	recorded    bool // what was sent is in the store; else the recorder has it
	failedPools []failedPool
}

type failedPool struct {
	ID   parley.PoolID
	Chat parley.ContactID
}

func newBurst(ctx context.Context, entries []*entry, connection int) *burst {
	b := &burst{entries: entries, connection: connection, open: len(entries), verdicts: make([]verdict, len(entries))}
	b.ctx, b.cancel = context.WithTimeout(ctx, sendTimeout)
	for _, e := range entries {
		e.burst = b
	}
	return b
}

// send gives messages to the network and records what it answered in one transaction. While that fails it is
// tried again, for as long as ctx lasts: what the network has confirmed is not sent a second time.
func (w *Worker) send(ctx context.Context, s Sender, b *burst) {
	errs := make([]error, len(b.entries))
	if err := w.load(ctx, b, errs); err != nil {
		w.Log.Error("read messages to send", "channel", w.Channel, "error", err)
		for i, e := range b.entries {
			b.verdicts[i] = verdict{attempts: e.Attempts, rest: w.Now().Add(blink)}
		}
		return
	}
	if live := w.revealed(b.messages, errs); len(live) > 0 {
		answers := w.give(s, b, live)
		for i, j := 0, 0; i < len(errs); i++ {
			if errs[i] == nil {
				errs[i] = answers[j]
				j++
			}
		}
	}
	w.markSettled(ctx, b, errs, func(i int) bool {
		return errs[i] != nil && !errors.Is(errs[i], errSettled) && !errors.Is(errs[i], network.ErrHeldBack)
	})
	w.recordUntilDone(ctx, b, errs)
}

// recordUntilDone records what became of a burst, again and again until the store has it.
func (w *Worker) recordUntilDone(ctx context.Context, b *burst, errs []error) {
	for tries := 1; ; tries++ {
		err := w.record(ctx, b, errs)
		if err == nil {
			return
		}
		w.Log.Error("record what was sent", "channel", w.Channel, "error", err)
		if !wait.Sleep(ctx, min(backOff(tries), lastRecordRetry)) { // they are pending in the store, and sent again under the same ids
			for i := range b.verdicts {
				b.verdicts[i] = verdict{rest: w.Now()}
			}
			return
		}
	}
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
			clear.Content, errs[i] = w.DecryptSecret(secret)
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

// markSettled marks those messages in errs, of the ones to look at, that a receipt confirmed or somebody
// deleted: one whose sending failed may have arrived after all.
func (w *Worker) markSettled(ctx context.Context, b *burst, errs []error, look func(i int) bool) {
	for i, m := range b.messages {
		if !look(i) {
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
	var confirmed []int64
	var took []time.Duration
	for i, err := range errs {
		b.verdicts[i] = judge(b.entries[i], err, now)
		if b.verdicts[i].status == parley.Sent && b.entries[i].Kind.IsRecord() {
			confirmed = append(confirmed, b.entries[i].Seq)
			took = append(took, now.Sub(b.messages[i].CreatedAt))
		}
	}
	if len(confirmed) < len(errs) || slices.ContainsFunc(b.entries, w.hasEffect) {
		if err := w.recordFirst(ctx, b, confirmed, took, now); err != nil {
			return err
		}
		b.recorded = true
	} else { // before anybody is told, who may look at once
		w.recorder.add(confirmed, took)
	}
	for i, e := range b.entries {
		v, m := b.verdicts[i], b.messages[i]
		e.Attempts, m.Attempts = v.attempts, v.attempts
		if !v.rest.IsZero() {
			continue
		}
		if v.status != parley.Pending { // else it was settled by somebody else, with the status it has
			m.Status, m.Failure, m.UpdatedAt = v.status, v.failure, now
		}
		if v.status == parley.FailedForGood && e.Pool != "" {
			b.failedPools = append(b.failedPools, failedPool{e.Pool, e.Chat})
		}
		w.OnDone(m)
	}
	return nil
}

// recordFirst stores what must be durable before it is told. When a pool fails, the store must know
// which of its messages were sent before.
func (w *Worker) recordFirst(ctx context.Context, b *burst, confirmed []int64, took []time.Duration, now time.Time) error {
	if err := w.recorder.flush(ctx); err != nil {
		return err
	}
	var removed []parley.Media
	err := w.Store.Tx(ctx, func(tx *store.Tx) error {
		removed = removed[:0]
		if err := tx.ConfirmMessages(ctx, w.Channel, confirmed, now); err != nil {
			return err
		}
		if err := tx.CountSendTimes(ctx, w.Channel, took); gone(err) != nil {
			return err
		}
		for i, m := range b.messages {
			if err := w.recordOne(ctx, tx, m, b.entries[i], b.verdicts[i], now, &removed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, media := range removed {
		w.RemoveFile(media)
	}
	return nil
}

func (w *Worker) recordOne(
	ctx context.Context, tx *store.Tx, m *parley.Message, e *entry, v verdict, now time.Time, removed *[]parley.Media,
) error {
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
	case v.attempts != e.Attempts:
		return gone(tx.DelayMessage(ctx, w.Channel, m.Ref(), v.attempts, v.rest))
	}
	return nil
}

// fail stores that a message will not be sent, and tells of the one-time code that it carried.
func (w *Worker) fail(ctx context.Context, tx *store.Tx, m *parley.Message, why *parley.Failure, now time.Time) (bool, error) {
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
	rest     time.Time // not to be tried before; zero: settled
	waits    bool      // a connection ends the rest
	notReady bool      // it waits beside its chat
	unknown  bool      // the network may have it
}

// judge decides what follows from an answer. It is the whole of the retry rules.
func judge(e *entry, err error, now time.Time) verdict {
	if err == nil {
		return verdict{status: parley.Sent, attempts: e.Attempts}
	}
	if errors.Is(err, errSettled) {
		return verdict{attempts: e.Attempts}
	}
	if errors.Is(err, network.ErrHeldBack) {
		return verdict{attempts: e.Attempts, rest: now} // the one before it decides how long the chat rests
	}
	class := network.ClassOf(err)
	switch class {
	case network.Permanent:
		refusal, _ := errors.AsType[*network.Error](err)
		return verdict{status: parley.FailedForGood, failure: &refusal.Failure, attempts: e.Attempts + 1}
	case network.Disconnected:
		return verdict{attempts: e.Attempts, rest: now.Add(blink), waits: true}
	case network.NotReady:
		return verdict{attempts: e.Attempts, rest: now.Add(backOff(e.notReady + 1)), waits: true, notReady: true}
	}
	attempts := e.Attempts + 1 // Temporary and Unknown: the same id goes out again
	if attempts >= maxAttempts {
		return verdict{status: parley.FailedForGood, attempts: attempts, failure: &parley.Failure{
			Code: parley.GaveUp, Message: fmt.Sprintf("Sending was tried %d times and failed each time.", maxAttempts)}}
	}
	v := verdict{attempts: attempts, rest: now.Add(backOff(attempts)), unknown: class == network.Unknown}
	if v.unknown && !e.unknown {
		v.rest = now // the answer was lost with its connection; the next one tells
	}
	return v
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

func notSent() *parley.Failure {
	return &parley.Failure{Code: parley.NotSent, Message: "An earlier message of the pool failed, so this one was not sent."}
}
