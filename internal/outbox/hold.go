package outbox

import (
	"context"
	"time"

	"parley"
)

// Held is the error of a message that must wait before it is tried.
type Held struct {
	Until time.Time
	Code  parley.FailureCode // why it fails if it expires meanwhile
}

func (h *Held) Error() string { return "held back: " + string(h.Code) }

// expiredFailures are why messages failed that expired, by what they were held for.
var expiredFailures = map[parley.FailureCode]*parley.Failure{
	"":                  {Code: parley.Expired, Message: "It expired before it could be sent."},
	parley.QuotaReached: {Code: parley.QuotaReached, Message: "It expired while the channel had reached its quota for the day, or at night."},
	parley.Restricted:   {Code: parley.Restricted, Message: "It expired while the network did not let this account write to new contacts."},
}

// check sets an error for messages to contacts that may not leave now.
func (w *Worker) check(ctx context.Context, ms []*parley.Message, errs []error) {
	for i, m := range ms {
		if errs[i] == nil && w.config.Check != nil && !m.Chat.IsGroup() && m.Content.Kind().InHistory() {
			errs[i] = w.config.Check(ctx, m)
		}
	}
}

// ReleaseHeld makes the messages due that must wait before they are tried.
func (w *Worker) ReleaseHeld() {
	w.inRun(func() {
		w.releases++
		w.queues.each(func(e *entry) {
			if e.held != "" {
				e.held, e.NextAttempt = "", time.Time{}
			}
		})
	})
}
