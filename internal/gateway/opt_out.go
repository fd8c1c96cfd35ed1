package gateway

import (
	"context"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// Contacts can ask a channel not to write to them: by a word that its settings name, or through the API. Messages to them then fail,
// except for one-time codes and the replies to login links and to opt-outs, which have a priority of their own.

// Whether a channel has such contacts. Most have none, and then no message is checked.
const (
	optOutsUnknown = iota
	noOptOuts
	someOptOuts
)

// SetOptedOut stores that contacts want no messages of a channel, or may get them again. It returns how many changed.
func (g *Gateway) SetOptedOut(ctx context.Context, code parley.ChannelCode, contacts []parley.ContactID, out bool) (
	changed int, err error) {
	a, err := g.account(code)
	if err != nil {
		return 0, err
	}
	err = a.tx(ctx, func(tx *store.Tx) error {
		changed = 0 // an earlier run of the transaction may have set it
		for _, contact := range contacts {
			did, err := a.setOptedOut(ctx, tx, contact, out, "api", a.now())
			if err != nil {
				return err
			}
			if did {
				changed++
			}
		}
		return nil
	})
	return changed, err
}

// setOptedOut stores and publishes whether a contact wants no messages. It reports false if that is stored already.
func (a *account) setOptedOut(
	ctx context.Context, tx *store.Tx, contact parley.ContactID, out bool, source string, at time.Time,
) (changed bool, err error) {
	var since time.Time
	if out {
		since = at
		a.optOuts.Store(someOptOuts) // before the commit: a message that leaves after it must be checked
	}
	if changed, err = tx.SetOptedOut(ctx, a.code, contact, since); err != nil || !changed {
		return false, err
	}
	return true, tx.AddEvent(ctx, parley.NewOptOutEvent(a.code, contact, out, source, at))
}

// applyOptOut stores that the contact of an inbound message wants no more messages, or wants them again, and enqueues the reply.
func (a *account) applyOptOut(ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message, out bool) error {
	changed, err := a.setOptedOut(ctx, tx, m.Chat, out, "contact", m.CreatedAt)
	reply := channel.Settings.OptOut.Reply
	if err != nil || !changed || !out || reply == "" {
		return err
	}
	draft := Draft{To: m.Chat, Content: parley.Text{Body: reply}, Priority: parley.PriorityKnown}
	return a.enqueue(ctx, tx, a.newMessages(channel, []Draft{draft}))
}

// checkOptOut refuses a message to a contact that wants none.
func (a *account) checkOptOut(ctx context.Context, m *parley.Message) error {
	if m.Priority != parley.PriorityNormal || a.optOuts.Load() == noOptOuts {
		return nil
	}
	if a.optOuts.Load() == optOutsUnknown {
		some, err := a.g.config.Store.OptOuts(ctx, a.code, parley.ChatCursor{}, 1)
		if err != nil {
			return err
		}
		if len(some) == 0 {
			a.optOuts.CompareAndSwap(optOutsUnknown, noOptOuts) // unless one was added meanwhile
			return a.checkOptOut(ctx, m)
		}
		a.optOuts.Store(someOptOuts)
	}
	isOut, err := a.g.config.Store.IsOptedOut(ctx, a.code, m.Chat)
	if err == nil && isOut {
		err = network.Refuse(parley.OptedOut, "This contact asked for no more messages.")
	}
	return err
}
