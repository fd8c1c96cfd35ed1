package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// ErrCodeExists is the answer to a code that another channel has.
var ErrCodeExists = parley.InvalidField("code", "code is taken: there is a channel with it already.")

// CreateChannel stores a new channel and starts it. What is given also stores more in the same transaction.
func (g *Gateway) CreateChannel(
	ctx context.Context, c parley.Channel, also ...func(*store.Tx, parley.Channel) error,
) (parley.Channel, error) {
	if _, ok := g.Drivers[c.Network]; !ok {
		return parley.Channel{}, parley.InvalidField("network", "network must be the name of a network that this server has.")
	}
	c.Begin(time.Now())
	err := g.Store.Tx(ctx, func(tx *store.Tx) error {
		err := tx.AddChannel(ctx, c)
		if errors.Is(err, parley.ErrExists) {
			err = ErrCodeExists
		}
		for _, store := range also {
			if err == nil {
				err = store(tx, c)
			}
		}
		return err
	})
	if err != nil {
		return parley.Channel{}, err
	}
	return g.refreshed(ctx, c.Code)
}

// UpdateChannel changes what is stored of a channel: its name, network, settings, or whether it runs.
func (g *Gateway) UpdateChannel(ctx context.Context, code parley.ChannelCode, change func(*parley.Channel)) (parley.Channel, error) {
	err := g.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.Channel(ctx, code)
		if err != nil {
			return err
		}
		change(&c)
		return tx.UpdateChannel(ctx, c)
	})
	if errors.Is(err, parley.ErrNotFound) {
		return parley.Channel{}, parley.Errorf(parley.NotFound, "There is no channel %s.", code)
	}
	if err != nil {
		return parley.Channel{}, err
	}
	return g.refreshed(ctx, code)
}

// StartChannel makes a stopped channel run, or opens the session of one whose session failed anew.
func (g *Gateway) StartChannel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if a, err := g.account(code); err == nil {
		switch c := a.snapshot(); {
		case c.Settings.ArchiveOf != "":
			return parley.Channel{}, c.Usable()
		case c.State.Status == parley.Failed:
			a.closeSession()
		}
	}
	return g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Enabled = true })
}

// StopChannel closes a channel's session. What waits to be sent waits on.
func (g *Gateway) StopChannel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	return g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Enabled = false })
}

// LogoutChannel ends the pairing of a channel's account, and waits a while until that shows.
func (g *Gateway) LogoutChannel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	c, err := g.onSession(ctx, code, network.Session.Logout)
	if err != nil {
		return c, err
	}
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return !s.CanSend() })
	return g.standing(code)
}

// onSession does something with a channel's session, connected or not.
func (g *Gateway) onSession(ctx context.Context, code parley.ChannelCode, do func(network.Session, context.Context) error) (parley.Channel, error) {
	a, err := g.account(code)
	if err != nil {
		return parley.Channel{}, err
	}
	a.mu.RLock()
	session := a.session
	a.mu.RUnlock()
	if session == nil {
		return parley.Channel{}, parley.Errorf(parley.BadRequest, "Channel %s is %s. Start it with: parley channel start %s",
			code, a.snapshot().State.Status, code)
	}
	if err := do(session, ctx); err != nil {
		return parley.Channel{}, err
	}
	return a.snapshot(), nil
}

// DeleteChannel removes a channel and everything that is its own. The channel ends first: what is accepted or
// arrives later is refused, so that nothing of it is stored after it was removed.
func (g *Gateway) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	ctx = context.WithoutCancel(ctx) // half of it would be worse than a slow one
	a, err := g.account(code)
	if err != nil {
		return err
	}
	if !a.retired.CompareAndSwap(nil, deletion(code)) {
		return a.retired.Load().refusal
	}
	a.close()
	if err := g.delete(ctx, a); err != nil {
		return err
	}
	return g.purge(ctx)
}

// delete removes a channel whose account has ended.
func (g *Gateway) delete(ctx context.Context, a *account) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	code := a.code
	err := g.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CheckChannel(ctx, code, a.id); err != nil {
			return err
		}
		return tx.DeleteChannel(ctx, code)
	})
	if errors.Is(err, parley.ErrNotFound) {
		err = errNoChannel(code)
	}
	if err == nil {
		err = g.forget(ctx, a)
	}
	g.drop(a)
	return errors.Join(err, g.refresh(ctx))
}

// forget has the network forget a channel that is gone.
func (g *Gateway) forget(ctx context.Context, a *account) error {
	if driver := g.Drivers[a.snapshot().Network]; driver != nil {
		return driver.Forget(ctx, a.code)
	}
	return nil
}

// ResetChannel forgets all messages of a sandbox channel, what waits included, and has its network
// forgotten meanwhile. The channel starts anew.
func (g *Gateway) ResetChannel(ctx context.Context, code parley.ChannelCode, forget func(context.Context) error) error {
	c, ok := g.Channel(code)
	if !ok || c.Network != parley.Sandbox {
		return parley.Errorf(parley.BadRequest, "Only a sandbox channel can be cleared.")
	}
	ctx = context.WithoutCancel(ctx) // half a reset would be worse than a slow one
	if err := g.clear(ctx, code, forget); err != nil {
		return err
	}
	if err := g.purge(ctx); err != nil {
		return err
	}
	_, err := g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Settings.ClockAhead = 0 })
	g.AwaitStart(ctx, code)
	return err
}

// statusPatience is how long somebody waits for a channel to become what it was told to. A sandbox channel
// takes a few milliseconds.
const statusPatience = 2 * time.Second

// AwaitStart waits a while for a channel that is starting, so that the next request can use it.
func (g *Gateway) AwaitStart(ctx context.Context, code parley.ChannelCode) {
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return s != parley.Starting })
}

// awaitStatus waits a while until a channel has a status that will do.
func (g *Gateway) awaitStatus(ctx context.Context, code parley.ChannelCode, willDo func(parley.ChannelStatus) bool) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	happens, unsubscribe := g.Activity()
	defer unsubscribe()
	for {
		if c, ok := g.Channel(code); !ok || willDo(c.State.Status) {
			return
		}
		select {
		case _, open := <-happens:
			if !open {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// clear ends a channel's account, and removes what it kept.
func (g *Gateway) clear(ctx context.Context, code parley.ChannelCode, forget func(context.Context) error) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	a, err := g.account(code)
	if err != nil {
		return err
	}
	a.setState(ctx, network.State{Status: parley.Starting}) // what is sent meanwhile waits
	a.close()
	err = g.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ClearChannel(ctx, code) })
	if err == nil {
		err = forget(ctx)
	}
	g.mu.Lock()
	delete(g.accounts, code) // its worker has ended; another one begins
	g.mu.Unlock()
	return errors.Join(err, g.refresh(ctx))
}

// maxAhead is how far a clock can be moved: longer does not fit into a length of time for ever.
const maxAhead = 100 * 365 * 24 * time.Hour

// AdvanceClock moves the clock of a sandbox channel ahead, so that expiry can be tested without
// waiting for it.
func (g *Gateway) AdvanceClock(ctx context.Context, code parley.ChannelCode, d time.Duration) error {
	c, ok := g.Channel(code)
	if !ok || c.Network != parley.Sandbox {
		return parley.Errorf(parley.BadRequest, "Only the clock of a sandbox channel can be moved.")
	}
	if d > maxAhead-time.Duration(c.Settings.ClockAhead) {
		return parley.InvalidField("advance", "advance must leave the clock at most 100 years ahead.")
	}
	_, err := g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Settings.ClockAhead += parley.Duration(d) })
	return err
}

// PickForPool chooses the channel for messages to a contact where the caller named none: the working
// one that last exchanged a message with it, else any working one. None is [parley.ErrNotFound].
func (g *Gateway) PickForPool(ctx context.Context, to parley.ContactID) (parley.ChannelCode, error) {
	var working []parley.ChannelCode
	for _, c := range g.Channels() {
		if c.State.Status == parley.Working && c.Accepts(to) == nil {
			working = append(working, c.Code)
		}
	}
	if len(working) == 0 {
		return "", parley.ErrNotFound
	}
	last, err := g.Store.LastChannelWith(ctx, to, working)
	if errors.Is(err, parley.ErrNotFound) {
		return working[rand.IntN(len(working))], nil
	}
	return last, err
}

// refreshed brings what runs up to date and returns the channel as it is then.
func (g *Gateway) refreshed(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if err := g.Refresh(context.WithoutCancel(ctx)); err != nil {
		return parley.Channel{}, err
	}
	return g.standing(code)
}

// standing returns a channel, which was there a moment ago, as it stands now.
func (g *Gateway) standing(code parley.ChannelCode) (parley.Channel, error) {
	c, ok := g.Channel(code)
	if !ok {
		return parley.Channel{}, parley.Errorf(parley.NotFound, "There is no channel %s.", code)
	}
	return c, nil
}
