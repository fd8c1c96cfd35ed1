package gateway

import (
	"context"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
)

// A network can forbid an account to write to new contacts for a time. First messages then wait; chats that exist go on. Where it does
// not say until when, one first message is tried now and then. After a ban the channel begins slowly.

const (
	// firstTryPause is between two first messages while a restriction has no known end.
	firstTryPause = 15 * time.Minute
	// slowFactor is how much slower a channel is after a ban. It halves every slowStep.
	slowFactor = 10
	slowStep   = time.Hour
)

// Restriction reports whether the network does not let the channel write to new contacts, and until when; zero: that is unknown.
func (g *Gateway) Restriction(code parley.ChannelCode) (active bool, until time.Time) {
	c, _ := g.Channel(code)
	return c.RestrictedAt(g.Now(code))
}

// restrict stores and publishes that the network restricts the account, or does not any more.
func (a *account) restrict(ctx context.Context, active bool, until time.Time) error {
	until = until.Truncate(time.Millisecond)
	c, now := a.snapshot(), a.now()
	if was, wasUntil := c.RestrictedAt(now); was == active && (wasUntil.Equal(until) || until.IsZero()) {
		return nil
	}
	c.Restricted, c.RestrictedUntil = active, until
	err := a.tx(ctx, func(tx *store.Tx) error {
		if err := tx.SetRestriction(ctx, c); err != nil {
			return err
		}
		return tx.AddEvent(ctx, parley.NewRestrictionEvent(c, now))
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.channel.Restricted, a.channel.RestrictedUntil = active, until
	a.firstTryAt = now.Add(firstTryPause)
	a.mu.Unlock()
	a.worker.ReleaseHeld()
	return nil
}

// ban stores until when the account is banned.
func (a *account) ban(ctx context.Context, until time.Time) error {
	c := a.snapshot()
	c.BannedUntil = until.Truncate(time.Millisecond)
	if err := a.tx(ctx, func(tx *store.Tx) error { return tx.SetRestriction(ctx, c) }); err != nil {
		return err
	}
	a.mu.Lock()
	a.channel.BannedUntil = c.BannedUntil
	a.mu.Unlock()
	return nil
}

// mayLeave returns nil if a message to a contact may leave now.
func (a *account) mayLeave(ctx context.Context, m *parley.Message) error {
	if err := a.checkOptOut(ctx, m); err != nil {
		return err
	}
	if err := a.checkWindow(ctx, m); err != nil {
		return err
	}
	if err := a.checkFirst(ctx, m); err != nil {
		return err
	}
	return a.beCareful(ctx, m)
}

// checkFirst holds a message back if it is the first to its contact and the network does not let the account write to new ones.
func (a *account) checkFirst(ctx context.Context, m *parley.Message) error {
	now := a.now()
	active, until := a.snapshot().RestrictedAt(now)
	if !active {
		return nil
	}
	if exists, err := a.g.config.Store.HasChat(ctx, a.code, m.Chat); err != nil || exists {
		return err
	}
	if until.IsZero() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if until = a.firstTryAt; !now.Before(until) {
			a.firstTryAt, a.firstTry = now.Add(firstTryPause), m.ID
			return nil
		}
	}
	return &outbox.Held{Until: until, Code: parley.Restricted}
}

// endOfTry ends a restriction without a known end when the message that was tried was sent.
func (a *account) endOfTry(m *parley.Message) {
	a.mu.Lock()
	isTry := a.firstTry != "" && a.firstTry == m.ID
	if isTry {
		a.firstTry = ""
	}
	a.mu.Unlock()
	if isTry && m.Status != parley.Failed {
		a.storeRestriction(false, time.Time{})
	}
}

// refusedFirst notes that the network refused a first message. Its time is by the real clock, which the channel's can be ahead of.
func (a *account) refusedFirst(until time.Time) {
	if !until.IsZero() {
		until = until.Add(time.Duration(a.snapshot().Settings.ClockAhead))
	}
	a.storeRestriction(true, until)
}

func (a *account) storeRestriction(active bool, until time.Time) {
	if err := a.restrict(context.Background(), active, until); err != nil && a.retired.Load() == nil {
		a.g.config.Log.Error("store a restriction of an account", "channel", a.code, "error", err)
	}
}

// slowed is the pace of a channel after a ban.
func slowed(c parley.Channel, info network.Info, least, most time.Duration, now time.Time) (time.Duration, time.Duration) {
	steps := max(0, int(now.Sub(c.BannedUntil)/slowStep))
	if c.BannedUntil.IsZero() || slowFactor>>steps == 0 {
		return least, most
	}
	return max(least, info.LeastPace) * slowFactor >> steps, max(most, info.MostPace) * slowFactor >> steps
}

// Waiting says why a message waits to be sent; nil: it does not.
func (g *Gateway) Waiting(ctx context.Context, m *parley.Message) *parley.Waiting {
	c, there := g.Channel(m.Channel)
	if !m.FromMe || m.Status != parley.Pending || !there {
		return nil
	}
	if c.State.Status != parley.ChannelWorking {
		return &parley.Waiting{Reason: parley.WaitsForConnection}
	}
	if active, until := c.RestrictedAt(g.Now(m.Channel)); active && !m.Chat.IsGroup() {
		if exists, err := g.config.Store.HasChat(ctx, m.Channel, m.Chat); err == nil && !exists {
			return &parley.Waiting{Reason: parley.WaitsForRestriction, Until: until}
		}
	}
	if _, until, err := g.quota(ctx, c, m, g.Now(m.Channel)); err == nil && !until.IsZero() {
		return &parley.Waiting{Reason: parley.WaitsForQuota, Until: until}
	}
	return &parley.Waiting{Reason: parley.WaitsForPace}
}
