package outbox

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// failBatch is how many messages fail in one transaction, so that other writers do not wait long.
const failBatch = 200

// expire fails all messages that have waited too long.
func (w *Worker) expire(now time.Time) {
	if w.nextExpiry.IsZero() || now.Before(w.nextExpiry) {
		return
	}
	w.nextExpiry = time.Time{}
	var expired []*entry
	w.queues.each(func(e *entry) {
		switch {
		case e.ExpiresAt.IsZero():
		case !e.ExpiresAt.After(now):
			expired = append(expired, e)
		case w.nextExpiry.IsZero() || e.ExpiresAt.Before(w.nextExpiry):
			w.nextExpiry = e.ExpiresAt
		}
	})
	if len(expired) == 0 {
		return
	}
	if !w.ClockTrusted() {
		w.postpone(expired, now.Add(untrustedClockPause))
		return
	}
	why := &parley.Failure{Code: parley.Expired, Message: "It expired before it could be sent."}
	if !w.failAll(expired, why, now) {
		w.nextExpiry = now.Add(shortPause)
	}
}

// postpone neither sends nor fails messages until the clock is checked again. Their chats wait.
func (w *Worker) postpone(expired []*entry, until time.Time) {
	for _, e := range expired {
		e.awaitsConnection, e.NextAttempt = false, until
	}
	if w.nextExpiry.IsZero() || until.Before(w.nextExpiry) {
		w.nextExpiry = until
	}
}

// failOldAccount fails messages that were accepted for an earlier account of the channel: the current account must not
// send them. It reports false if that cannot be stored; then nothing may be sent.
func (w *Worker) failOldAccount(now time.Time) bool {
	from := w.AccountFrom()
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

// failAll fails queued messages and reports whether all of them are stored.
func (w *Worker) failAll(es []*entry, why *parley.Failure, now time.Time) bool {
	ctx := context.Background()
	for len(es) > 0 {
		batch := es[:min(failBatch, len(es))]
		failed := make([]parley.Message, len(batch))
		err := w.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			for i, e := range batch {
				if failed[i], err = w.failQueued(ctx, tx, e, why, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.Log.Error("fail messages", "channel", w.Channel, "code", why.Code, "error", err)
			return false
		}
		for i, e := range batch {
			w.dequeue(e)
			w.OnDone(&failed[i])
		}
		es = es[len(batch):]
	}
	return true
}

// failQueued fails a message and returns its current state: a receipt may have been faster.
func (w *Worker) failQueued(ctx context.Context, tx *store.Tx, e *entry, why *parley.Failure, now time.Time) (parley.Message, error) {
	m, err := tx.Message(ctx, w.Channel, e.Ref())
	if err != nil {
		return *w.deletedMessage(e), ignoreNotFound(err)
	}
	moved, err := w.fail(ctx, tx, &m, why, now)
	if moved {
		m.Status, m.Failure, m.UpdatedAt = parley.Failed, why, now
	}
	return m, ignoreNotFound(err)
}

// fail stores that a message failed. For a one-time code it publishes otp.failed.
func (w *Worker) fail(ctx context.Context, tx *store.Tx, m *parley.Message, why *parley.Failure, now time.Time) (bool, error) {
	moved, err := tx.AdvanceMessage(ctx, w.Channel, m.Ref(), parley.Failed, why, now)
	if secret, ok := m.Content.(parley.Secret); ok && secret.OTP.IsCode() && moved && err == nil {
		err = tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPFailed, secret.OTP, w.Channel, m.Chat, string(why.Code), now))
	}
	return moved, err
}
