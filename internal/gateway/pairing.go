package gateway

import (
	"context"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// shownFor is how long the last step of a pairing is shown.
const shownFor = 5 * time.Minute

// PairChannel starts to pair a channel with an account: by QR code, or by a code that is typed on the phone with this
// number. [Gateway.Pairing] and the event log report the steps. It waits a while for a logged out channel to change its
// status: a sandbox channel can be used again at once.
func (g *Gateway) PairChannel(ctx context.Context, code parley.ChannelCode, number string) (parley.Channel, error) {
	if err := g.startPairing(ctx, code, number); err != nil {
		return parley.Channel{}, err
	}
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return s != parley.ChannelLoggedOut })
	return g.currentChannel(code)
}

func (g *Gateway) startPairing(ctx context.Context, code parley.ChannelCode, number string) error {
	if number == "" {
		session, err := openAs[network.Pairer](g, code, "pairing")
		if err != nil {
			return err
		}
		return session.Pair(ctx)
	}
	session, err := openAs[network.PairByCode](g, code, "pairing by a code: pair it without a number")
	if err != nil {
		return err
	}
	return session.PairWithCode(ctx, number)
}

// AnswerPasskey hands in the response of an account's passkey during a pairing. Nil: a person compared the codes.
func (g *Gateway) AnswerPasskey(ctx context.Context, code parley.ChannelCode, assertion []byte) error {
	session, err := openAs[network.PairByPasskey](g, code, "pairing with a passkey")
	if err != nil {
		return err
	}
	return session.Passkey(ctx, assertion)
}

// Pairing returns the latest step of a channel's pairing, without an expired code; false: there was none lately, or the
// channel does not run. It is only in memory.
func (g *Gateway) Pairing(code parley.ChannelCode) (parley.Pairing, bool) {
	a, err := g.account(code)
	if err != nil {
		return parley.Pairing{}, false
	}
	a.mu.RLock()
	p := a.pairing
	a.mu.RUnlock()
	if p.Step == "" || p.Step.IsOver() && time.Since(p.At) > shownFor {
		return parley.Pairing{}, false
	}
	if !p.ExpiresAt.IsZero() && time.Now().After(p.ExpiresAt) {
		p.Code, p.Request = "", ""
	}
	return p, true
}

// publishPairing publishes a step of the channel's pairing. The event log has its code encrypted, until it expires.
func (a *account) publishPairing(ctx context.Context, p parley.Pairing) error {
	if p.At.IsZero() {
		p.At = time.Now()
	}
	a.mu.Lock()
	a.pairing = p
	c := a.channel
	a.mu.Unlock()
	a.g.config.Log.Info("pairing", "channel", c.Code, "step", p.Step, "reason", p.Reason)
	a.g.activity.Publish(Activity{At: p.At, Channel: c.Code, State: c.State.Status, Pairing: p.Step, Reason: p.Reason})
	event := parley.NewPairingEvent(c.Code, p)
	if p.Code != "" {
		event.Encrypted = a.g.config.Keyring.Encrypt(event.Data, parley.EventTextContext(c.Code))
		p.Code = ""
		event.Data = parley.NewPairingEvent(c.Code, p).Data
	}
	return a.tx(ctx, func(tx *store.Tx) error { return tx.AddEvent(ctx, event) })
}

// Evidence returns when a channel last showed that it works; false: it does not run, or its network has none.
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
