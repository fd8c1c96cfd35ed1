package outbox

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// failAtOnce is how many messages are failed in one transaction, so that no caller waits long behind it.
const failAtOnce = 200

// expire fails everything that waited too long, wherever in the queue it stands.
func (w *Worker) expire(now time.Time) {
	if w.nextExpiry.IsZero() || now.Before(w.nextExpiry) {
		return
	}
	w.nextExpiry = time.Time{}
	var late []*entry
	w.lanes.all(func(e *entry) {
		switch {
		case e.ExpiresAt.IsZero():
		case !e.ExpiresAt.After(now):
			late = append(late, e)
		case w.nextExpiry.IsZero() || e.ExpiresAt.Before(w.nextExpiry):
			w.nextExpiry = e.ExpiresAt
		}
	})
	if len(late) == 0 {
		return
	}
	if !w.ClockTrusted() {
		w.hold(late, now.Add(doubtEvery))
		return
	}
	why := &parley.Failure{Code: parley.Expired, Message: "It could not be sent in the time that its channel allows."}
	if !w.failAll(late, why, now) {
		w.nextExpiry = now.Add(blink)
	}
}

// hold neither sends nor fails messages until a time, when the clock is looked at again. Their chats wait.
func (w *Worker) hold(late []*entry, until time.Time) {
	for _, e := range late {
		e.waits, e.NextAttempt = false, until
	}
	if w.nextExpiry.IsZero() || until.Before(w.nextExpiry) {
		w.nextExpiry = until
	}
}

// failOld fails what was accepted for an account that the channel had before: it must not leave from the
// account that it has now. It reports false while that cannot be stored: then nothing may be sent.
func (w *Worker) failOld(now time.Time) bool {
	from := w.AccountFrom()
	if from == w.account {
		return true
	}
	var old []*entry
	w.lanes.all(func(e *entry) {
		if e.Seq <= from {
			old = append(old, e)
		}
	})
	why := &parley.Failure{Code: parley.AccountChanged,
		Message: "The channel was paired with another account before it was sent. Send it again if it is meant to come from that one."}
	if !w.failAll(old, why, now) {
		return false
	}
	w.account = from
	return true
}

// failAll fails queued messages and reports whether that worked for all of them.
func (w *Worker) failAll(es []*entry, why *parley.Failure, now time.Time) bool {
	for len(es) > 0 {
		some := es[:min(failAtOnce, len(es))]
		failed := make([]parley.Message, len(some))
		err := w.Store.Tx(context.Background(), func(tx *store.Tx) error {
			for i, e := range some {
				var err error
				if failed[i], err = w.failQueued(context.Background(), tx, e, why, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.Log.Error("fail messages", "channel", w.Channel, "code", why.Code, "error", err)
			return false
		}
		for i, e := range some {
			w.removeQueued(e)
			w.OnDone(&failed[i])
		}
		es = es[len(some):]
	}
	return true
}

// failQueued fails a message and returns it as it is then: a receipt may have been faster.
func (w *Worker) failQueued(ctx context.Context, tx *store.Tx, e *entry, why *parley.Failure, now time.Time) (parley.Message, error) {
	m, err := tx.Message(ctx, w.Channel, e.Ref())
	if err != nil { // its channel was deleted
		return parley.Message{Seq: e.Seq, Channel: w.Channel, Chat: e.Chat, ID: e.ID, FromMe: true, Status: parley.Deleted}, gone(err)
	}
	moved, err := w.fail(ctx, tx, &m, why, now)
	if moved {
		m.Status, m.Failure, m.UpdatedAt = parley.FailedForGood, why, now
	}
	return m, gone(err)
}
