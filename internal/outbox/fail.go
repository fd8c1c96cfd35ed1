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
		err := w.config.Store.Tx(ctx, func(tx *store.Tx) error { return w.failQueued(ctx, tx, batch, failed, why, now) })
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

// failQueued fails messages and sets failed to their current state: a receipt may have been faster.
func (w *Worker) failQueued(ctx context.Context, tx *store.Tx, es []*entry, failed []parley.Message, why *parley.Failure, now time.Time,
) error {
	seqs, index := make([]int64, len(es)), make(map[int64]int, len(es))
	for i, e := range es {
		seqs[i], index[e.Seq], failed[i] = e.Seq, i, *w.deletedMessage(e)
	}
	found, err := tx.Messages(ctx, w.config.Channel, seqs)
	if err != nil {
		return err
	}
	_, err = Fail(ctx, tx, found, why, now)
	for _, m := range found {
		failed[index[m.Seq]] = m
	}
	return err
}

// Fail stores that messages of a channel failed, where that can follow their status, and returns these. Another channel then carries a
// one-time code, or otp.failed is published. The text of a failed edit is erased: its message may be deleted, and then no text of it
// remains.
func Fail(ctx context.Context, tx *store.Tx, ms []parley.Message, why *parley.Failure, now time.Time) (moved []parley.Message, err error) {
	if len(ms) == 0 {
		return nil, nil
	}
	seqs, edits := make([]int64, len(ms)), []int64(nil)
	for i := range ms {
		seqs[i] = ms[i].Seq
	}
	if seqs, err = tx.FailMessages(ctx, ms[0].Channel, seqs, why, now); err != nil {
		return nil, err
	}
	for i := range ms {
		m := &ms[i]
		if !slices.Contains(seqs, m.Seq) {
			continue
		}
		switch content := m.Content.(type) {
		case parley.Secret:
			if content.OTP.IsCode() {
				err = tx.FailCode(ctx, m, content.OTP, why.Code, now) // which asks for the status before
			}
		case parley.Edit:
			edits = append(edits, m.Seq)
		}
		if err != nil {
			return nil, err
		}
		m.Status, m.Failure, m.UpdatedAt = parley.Failed, why, now
		moved = append(moved, *m)
	}
	return moved, tx.EraseBodies(ctx, edits)
}
