package gateway

import (
	"context"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

const (
	ringTime     = time.Minute // a call that is older does not ring any more
	callTextLife = time.Hour   // a caller is sent one text in this time
	maxCalls     = 100         // that are known by their ids
)

// handleCall publishes that a call came in or ended, once. A channel that rejects calls does so, and sends its text.
func (a *account) handleCall(ctx context.Context, c parley.PhoneCall) error {
	a.mu.RLock()
	ended, known := a.calls[c.ID]
	a.mu.RUnlock()
	if ended || known && c.Ended == "" {
		return nil // the network sent it again, or we ended it
	}
	channel, now := a.snapshot(), a.now()
	rejected := false
	if settings := channel.Settings.Calls; settings != nil && settings.Reject && c.Ended == "" && c.Group == "" && now.Sub(c.At) < ringTime {
		if rejecter, can := a.liveSession().(network.CallRejecter); can {
			err := rejecter.RejectCall(ctx, network.PhoneCall(c))
			if rejected = err == nil; !rejected {
				a.g.config.Log.Warn("reject a call", "channel", a.code, "error", err)
			}
		}
	}
	err := a.tx(ctx, func(tx *store.Tx) error {
		if err := tx.AddEvent(ctx, parley.NewCallEvent(a.code, c)); err != nil || !rejected {
			return err
		}
		over := c
		over.Ended, over.At = parley.CallRejected, now
		if err := tx.AddEvent(ctx, parley.NewCallEvent(a.code, over)); err != nil {
			return err
		}
		text := channel.Settings.Calls.Text
		if text == "" || channel.Accepts(c.From) != nil {
			return nil
		}
		may, err := tx.SetCallText(ctx, a.code, c.From, now, now.Add(-callTextLife))
		if err != nil || !may {
			return err
		}
		return a.enqueue(ctx, tx, a.newMessages(channel, []Draft{{To: c.From, Content: parley.Text{Body: text}}}))
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil || len(a.calls) >= maxCalls {
		a.calls = map[string]bool{}
	}
	a.calls[c.ID] = c.Ended != "" || rejected
	return nil
}
