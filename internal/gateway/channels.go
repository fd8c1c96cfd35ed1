package gateway

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// ErrCodeExists rejects the code of an existing channel.
var ErrCodeExists = parley.InvalidField("code", "code already exists: another channel has it.")

// CreateChannel stores a new channel and starts it. inTx runs in the same transaction.
func (g *Gateway) CreateChannel(
	ctx context.Context, c parley.Channel, inTx ...func(*store.Tx, parley.Channel) error,
) (parley.Channel, error) {
	if _, ok := g.Drivers[c.Network]; !ok {
		return parley.Channel{}, parley.InvalidField("network", "network must be a network of this server.")
	}
	c.Begin(time.Now())
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		err := tx.AddChannel(ctx, c)
		if errors.Is(err, parley.ErrExists) {
			err = ErrCodeExists
		}
		for _, do := range inTx {
			if err == nil {
				err = do(tx, c)
			}
		}
		return err
	})
	if err != nil {
		return parley.Channel{}, err
	}
	g.awaitNetwork(ctx, c.Code)
	return g.refreshChannel(ctx, c.Code)
}

// InChange runs in the transaction that changes a channel, and gets the channel as it was and as it is now.
type InChange func(tx *store.Tx, before, after parley.Channel) error

// UpdateChannel changes a stored channel: its name, network, settings, or whether it runs.
func (g *Gateway) UpdateChannel(
	ctx context.Context, code parley.ChannelCode, change func(*parley.Channel), inTx ...InChange,
) (parley.Channel, error) {
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.Channel(ctx, code)
		if err != nil {
			return err
		}
		before := c
		change(&c)
		err = tx.UpdateChannel(ctx, c)
		for _, do := range inTx {
			if err == nil {
				err = do(tx, before, c)
			}
		}
		return err
	})
	if errors.Is(err, parley.ErrNotFound) {
		return parley.Channel{}, errChannelNotFound(code)
	}
	if err != nil {
		return parley.Channel{}, err
	}
	return g.refreshChannel(ctx, code)
}

// StartChannel starts a stopped channel, or opens a new session for a FAILED one.
func (g *Gateway) StartChannel(ctx context.Context, code parley.ChannelCode, inTx ...InChange) (parley.Channel, error) {
	if a, err := g.account(code); err == nil {
		switch c := a.snapshot(); {
		case c.Settings.ArchiveOf != "":
			return parley.Channel{}, c.Usable()
		case c.State.Status == parley.ChannelFailed:
			a.closeSession()
		}
	}
	return g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Enabled = true }, inTx...)
}

// StopChannel closes a channel's session. Its queue stays.
func (g *Gateway) StopChannel(ctx context.Context, code parley.ChannelCode, inTx ...InChange) (parley.Channel, error) {
	return g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Enabled = false }, inTx...)
}

// LogoutChannel unlinks a channel's account, and waits a while for its new status.
func (g *Gateway) LogoutChannel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	session, err := openAs[network.Pairer](g, code, "pairing")
	if err == nil {
		err = session.Logout(ctx)
	}
	if err != nil {
		return parley.Channel{}, err
	}
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return !s.CanSend() })
	return g.currentChannel(code)
}

// ResetChannel deletes all messages of a sandbox channel, queued ones included, and restarts it. They are hidden at once and
// purged in the background. resetNetwork runs while the channel is closed.
func (g *Gateway) ResetChannel(ctx context.Context, code parley.ChannelCode, resetNetwork func(context.Context) error) error {
	c, ok := g.Channel(code)
	if !ok || !g.isSimulated(c) {
		return parley.Errorf(parley.NotSupported, "Only a sandbox channel can be reset.")
	}
	ctx = context.WithoutCancel(ctx) // a cancelled client must not leave it half done
	if err := g.reset(ctx, code, resetNetwork); err != nil {
		return err
	}
	_, err := g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Settings.ClockAhead = 0 })
	g.AwaitStart(ctx, code)
	return err
}

// statusTimeout is how long a request waits for a new status. A sandbox channel takes a few milliseconds.
const statusTimeout = 2 * time.Second

// AwaitStart waits a while until a channel has started, so that the next request can use it.
func (g *Gateway) AwaitStart(ctx context.Context, code parley.ChannelCode) {
	g.awaitStatus(ctx, code, func(s parley.ChannelStatus) bool { return s != parley.ChannelStarting })
}

func (g *Gateway) awaitStatus(ctx context.Context, code parley.ChannelCode, ok func(parley.ChannelStatus) bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	activity, unsubscribe := g.Activity()
	defer unsubscribe()
	for {
		if c, exists := g.Channel(code); !exists || ok(c.State.Status) {
			return
		}
		select {
		case _, open := <-activity:
			if !open {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (g *Gateway) reset(ctx context.Context, code parley.ChannelCode, resetNetwork func(context.Context) error) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	a, err := g.account(code)
	if err != nil {
		return err
	}
	a.setState(ctx, network.State{Status: parley.ChannelStarting}) // new messages wait
	a.close()
	err = g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ClearChannel(ctx, code) })
	if err == nil {
		err = resetNetwork(ctx)
	}
	g.unregister(a) // its worker has ended; refresh starts another one
	return errors.Join(err, g.refresh(ctx, code))
}

// maxAhead is how far a clock can be advanced, so that no duration overflows.
const maxAhead = 100 * 365 * 24 * time.Hour

// AdvanceClock advances the clock of a sandbox channel, to test expiry without waiting.
func (g *Gateway) AdvanceClock(ctx context.Context, code parley.ChannelCode, d time.Duration, inTx ...InChange) error {
	c, ok := g.Channel(code)
	if !ok || !g.isSimulated(c) {
		return parley.Errorf(parley.NotSupported, "Only the clock of a sandbox channel can be advanced.")
	}
	if d > maxAhead-time.Duration(c.Settings.ClockAhead) {
		return parley.InvalidField("advance", "advance must leave the clock at most 100 years ahead.")
	}
	_, err := g.UpdateChannel(ctx, code, func(c *parley.Channel) { c.Settings.ClockAhead += parley.Duration(d) }, inTx...)
	return err
}

func (g *Gateway) refreshChannel(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if err := g.Refresh(context.WithoutCancel(ctx), code); err != nil {
		return parley.Channel{}, err
	}
	return g.currentChannel(code)
}

func (g *Gateway) currentChannel(code parley.ChannelCode) (parley.Channel, error) {
	c, ok := g.Channel(code)
	if !ok {
		return parley.Channel{}, errChannelNotFound(code)
	}
	return c, nil
}
