package outbox

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

// failBatch is how many messages fail in one transaction, so that other writers do not wait long.
const failBatch = 200

func (w *Worker) expire(now time.Time) {
	if w.nextExpiry.IsZero() || now.Before(w.nextExpiry) {
		return
	}
	w.nextExpiry = time.Time{}
	var expired []*entry
	w.queues.each(func(e *entry) {
		if e.ExpiresAt.IsZero() || e.ExpiresAt.After(now) {
			w.checkExpiryAt(e.ExpiresAt)
		} else {
			expired = append(expired, e)
		}
	})
	if len(expired) == 0 {
		return
	}
	if !w.config.ClockTrusted() { // neither send nor fail them until the clock is checked again; their chats wait
		until := now.Add(untrustedClockPause)
		for _, e := range expired {
			e.awaitsConnection, e.NextAttempt = false, until
		}
		w.checkExpiryAt(until)
		return
	}
	byCode := map[parley.FailureCode][]*entry{}
	for _, e := range expired {
		byCode[e.held] = append(byCode[e.held], e)
	}
	for code, es := range byCode {
		if !w.failAll(es, expiredFailures[code], now) {
			w.nextExpiry = now.Add(shortPause)
		}
	}
}

// checkExpiryAt makes expire look at the queue at a time; zero: no need.
func (w *Worker) checkExpiryAt(at time.Time) {
	if w.nextExpiry.IsZero() || !at.IsZero() && at.Before(w.nextExpiry) {
		w.nextExpiry = at
	}
}

// failOldAccount fails messages that were accepted for an earlier account of the channel: the current account must not
// send them. It reports false if that cannot be stored; then nothing may be sent.
func (w *Worker) failOldAccount(now time.Time) bool {
	from := w.config.Current().AccountFrom
	if from == w.accountFrom {
		return true
	}
	var old []*entry
	w.queues.each(func(e *entry) {
		if e.Seq <= from {
			old = append(old, e)
		}
	})
	why := &parley.Failure{Code: parley.AccountChanged,
		Message: "The channel was paired with another account before it was sent. Send it again to send it from the new account."}
	if !w.failAll(old, why, now) {
		return false
	}
	w.accountFrom = from
	return true
}

func (w *Worker) failAll(es []*entry, why *parley.Failure, now time.Time) bool {
	ctx := context.Background()
	for batch := range slices.Chunk(es, failBatch) {
		failed := make([]parley.Message, len(batch))
		err := w.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			for i, e := range batch {
				if failed[i], err = w.failQueued(ctx, tx, e, why, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.config.Log.Error("fail messages", "channel", w.config.Channel, "code", why.Code, "error", err)
			return false
		}
		for i, e := range batch {
			w.dequeue(e)
			w.config.OnDone(&failed[i])
		}
	}
	return true
}

// failQueued fails a message and returns its current state: a receipt may have been faster.
func (w *Worker) failQueued(ctx context.Context, tx *store.Tx, e *entry, why *parley.Failure, now time.Time) (parley.Message, error) {
	m, err := tx.Message(ctx, w.config.Channel, e.Ref())
	if err != nil {
		return *w.deletedMessage(e), parley.IgnoreNotFound(err)
	}
	moved, err := Fail(ctx, tx, &m, why, now)
	if moved {
		m.Status, m.Failure, m.UpdatedAt = parley.Failed, why, now
	}
	return m, parley.IgnoreNotFound(err)
}

// Fail stores that a message failed. Another channel then carries its one-time code, or otp.failed is published. The text of a failed
// edit is erased: its message may be deleted, and then no text of it remains.
func Fail(ctx context.Context, tx *store.Tx, m *parley.Message, why *parley.Failure, now time.Time) (bool, error) {
	moved, err := tx.AdvanceMessage(ctx, m.Channel, m.Ref(), parley.Failed, why, now)
	if secret, ok := m.Content.(parley.Secret); ok && secret.OTP.IsCode() && moved && err == nil {
		err = tx.FailCode(ctx, m, secret.OTP, why.Code, now)
	}
	if _, ok := m.Content.(parley.Edit); ok && moved && err == nil {
		err = tx.EraseBody(ctx, m.Channel, m.Ref())
	}
	return moved, err
}
