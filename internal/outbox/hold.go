package outbox

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/network"
)

// errRestricted is why a first message waits: the network does not let the account write to new contacts.
var errRestricted = errors.New("the account may not write to new contacts now")

var expiredRestricted = &parley.Failure{Code: parley.Restricted,
	Message: "It expired while the network did not let this account write to new contacts."}

// holdFirst sets an error for messages that must wait because they would be the first to their contact.
func (w *Worker) holdFirst(ctx context.Context, ms []*parley.Message, errs []error, now time.Time) {
	for i, m := range ms {
		if errs[i] != nil || w.config.HoldFirst == nil || m.Chat.IsGroup() || !m.Content.Kind().InHistory() {
			continue
		}
		until, err := w.config.HoldFirst(ctx, m)
		switch {
		case err != nil:
			errs[i] = err // temporary
		case until.After(now):
			errs[i] = &network.Error{Class: network.Temporary, Cause: errRestricted, RetryAfter: until.Sub(now)}
		}
	}
}

// ReleaseHeld makes the messages due that wait because they are the first to their contact.
func (w *Worker) ReleaseHeld() {
	w.inRun(func() {
		w.releases++
		w.queues.each(func(e *entry) {
			if e.held {
				e.held, e.NextAttempt = false, time.Time{}
			}
		})
	})
}
