package gateway

import (
	"context"
	"fmt"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// shownAfter is how long the last step of a pairing is shown after it ended.
const shownAfter = 5 * time.Minute

// PairChannel begins to pair a channel's account anew: by QR code, or by a code that is typed on the phone
// with this number. How it goes is told by [Gateway.Pairing] and in the event log. It waits a while until a
// channel that was logged out is so no more: the sandbox needs nothing else to be used again.
func (g *Gateway) PairChannel(ctx context.Context, code parley.ChannelCode, number string) (parley.Channel, error) {
	c, err := g.onSession(ctx, code, func(s network.Session, ctx context.Context) error {
		if number == "" {
			return s.Pair(ctx)
		}
		byCode, ok := s.(network.PairByCode)
		if !ok {
			return parley.Errorf(parley.BadRequest, "Channel %s is on a network that gives no code to type. Pair it without a number.", code)
		}
		return byCode.PairWithCode(ctx, number)
	})
	if err != nil {
		return c, err
	}
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return s != parley.LoggedOut })
	return g.standing(code)
}

// Pairing returns the latest step of a channel's pairing; false: it was not paired lately, or does not
// run. It is known in memory only. A code that cannot be used any more is left out.
func (g *Gateway) Pairing(code parley.ChannelCode) (parley.Pairing, bool) {
	a, err := g.account(code)
	if err != nil {
		return parley.Pairing{}, false
	}
	a.mu.RLock()
	p := a.pairing
	a.mu.RUnlock()
	if p.Step == "" || p.Step.IsOver() && time.Since(p.At) > shownAfter {
		return parley.Pairing{}, false
	}
	if !p.ExpiresAt.IsZero() && time.Now().After(p.ExpiresAt) {
		p.Code = ""
	}
	return p, true
}

// paired takes a step of the channel's pairing. Memory has it at once. The log has its code encrypted, for
// as long as it is of use.
func (a *account) paired(ctx context.Context, p parley.Pairing) error {
	if p.At.IsZero() {
		p.At = time.Now()
	}
	a.mu.Lock()
	a.pairing = p
	c := a.channel
	a.mu.Unlock()
	a.g.Log.Info("pairing", "channel", c.Code, "step", p.Step, "reason", p.Reason)
	a.g.activity.Publish(Activity{At: p.At, Channel: c.Code, State: c.State.Status, Pairing: p.Step, Reason: p.Reason})
	event := parley.NewPairingEvent(c.Code, p)
	if p.Code != "" {
		event.Encrypted = a.g.Keyring.Encrypt(event.Data, parley.EventTextContext(c.Code))
		p.Code = ""
		event.Data = parley.NewPairingEvent(c.Code, p).Data
	}
	if err := a.tx(ctx, func(tx *store.Tx) error { return tx.AddEvent(ctx, event) }); err != nil {
		return fmt.Errorf("keep a step of a pairing: %w", err)
	}
	return nil
}

// Evidence returns when a channel last showed that it works; false: it does not run, or its network cannot
// tell.
func (g *Gateway) Evidence(code parley.ChannelCode) (network.Evidence, bool) {
	a, err := g.account(code)
	if err != nil {
		return network.Evidence{}, false
	}
	witness, ok := g.Drivers[a.snapshot().Network].(network.Witness)
	if !ok {
		return network.Evidence{}, false
	}
	return witness.Evidence(code)
}
