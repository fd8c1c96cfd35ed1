package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

// GoLive moves a channel from the sandbox to a real network, where it waits to be paired or for credentials. Its code, name, tokens,
// webhooks, secrets and settings stay, except for settings of the sandbox. It may write to the contacts in allow; empty: to all.
//
// Sandbox messages must not look like messages to real people: they become those of an archive channel that never runs. Queued
// messages fail, open codes and login links end, and the simulated phones drop the channel.
func (g *Gateway) GoLive(
	ctx context.Context, code parley.ChannelCode, to parley.NetworkName, allow []parley.ContactID, inTx ...InChange,
) (parley.Channel, error) {
	if g.Drivers[to] == nil {
		return parley.Channel{}, parley.Errorf(parley.NotSupported, "This server has no network %s.", to)
	}
	ctx = context.WithoutCancel(ctx) // a cancelled client must not leave it half done
	if err := g.goLive(ctx, code, to, allow, inTx); err != nil {
		return parley.Channel{}, err
	}
	return g.currentChannel(code)
}

func (g *Gateway) goLive(ctx context.Context, code parley.ChannelCode, to parley.NetworkName, allow []parley.ContactID, inTx []InChange,
) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	a, err := g.account(code)
	if err != nil {
		return err
	}
	switch c := a.snapshot(); {
	case c.Settings.ArchiveOf != "":
		return c.Usable()
	case !g.isSimulated(c):
		return parley.Errorf(parley.BadRequest, "Channel %s is already live.", code)
	}
	refusal := &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
		Message: fmt.Sprintf("Channel %s is going live. Try again in a moment.", code)}
	if !a.retired.CompareAndSwap(nil, &retirement{refusal: refusal}) {
		return errChannelNotFound(code)
	}
	a.close()
	var failed []parley.Message
	err = g.failQueue(ctx, a)
	if err != nil {
		return errors.Join(err, g.replace(ctx, a), g.refresh(ctx))
	}
	err = g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if failed, err = a.moveTo(ctx, tx, to, allow); err != nil {
			return err
		}
		after, err := tx.Channel(ctx, code)
		for _, do := range inTx {
			if err == nil {
				err = do(tx, a.snapshot(), after)
			}
		}
		return err
	})
	if err == nil {
		for i := range failed {
			g.statusChanged(&failed[i])
		}
		err = g.Drivers[a.snapshot().Network].DeleteChannel(ctx, code)
	}
	return errors.Join(err, g.replace(ctx, a), g.refresh(ctx))
}

// replace replaces a closed account in one step, so that no request finds the channel missing.
func (g *Gateway) replace(ctx context.Context, a *account) error {
	c, err := g.config.Store.Channel(ctx, a.code)
	if err != nil {
		g.unregister(a)
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accounts[a.code] = newAccount(g, c, true)
	g.noteChange()
	return nil
}

// moveTo stores that the channel is live on another network. It returns the queued messages, which fail.
func (a *account) moveTo(
	ctx context.Context, tx *store.Tx, to parley.NetworkName, allow []parley.ContactID,
) ([]parley.Message, error) {
	c, err := tx.Channel(ctx, a.code)
	if err != nil {
		return nil, err
	}
	queue, err := tx.Queue(ctx, a.code) // what was accepted since failQueue
	if err != nil {
		return nil, err
	}
	failed, err := a.failSandboxed(ctx, tx, queue)
	if err != nil {
		return nil, err
	}
	if err := archive(ctx, tx, c); err != nil {
		return nil, err
	}
	c.Network, c.Enabled, c.Number, c.PhoneName = to, true, "", ""
	c.State = parley.ChannelState{Status: parley.ChannelStarting, Since: time.Now()}
	c.Settings.AllowOnly, c.Settings.ClockAhead, c.Settings.Window = allow, 0, 0
	if c.Settings.Pace != nil && *c.Settings.Pace == 0 { // the default of simulated phones, dangerous on WhatsApp
		c.Settings.Pace = nil
	}
	return failed, errors.Join(tx.UpdateChannel(ctx, c), tx.SetChannelState(ctx, c))
}

// failBatch is how many messages fail in one transaction, so that other writers do not wait long.
const failBatch = 100

// failQueue fails what waits to be sent in the sandbox.
func (g *Gateway) failQueue(ctx context.Context, a *account) error {
	queue, err := g.config.Store.Queue(ctx, a.code)
	for some := range slices.Chunk(queue, failBatch) {
		var failed []parley.Message
		if err := g.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			failed, err = a.failSandboxed(ctx, tx, some)
			return err
		}); err != nil {
			return err
		}
		for i := range failed {
			g.statusChanged(&failed[i])
		}
	}
	return err
}

func (a *account) failSandboxed(ctx context.Context, tx *store.Tx, queue []parley.Queued) ([]parley.Message, error) {
	why := &parley.Failure{Code: parley.NotSent,
		Message: "Its channel went live before it was sent in the sandbox. Send it again if it is meant for a real phone."}
	now, failed, seqs := a.now(), make([]parley.Message, len(queue)), make([]int64, len(queue))
	for i, q := range queue {
		seqs[i], failed[i] = q.Seq, parley.Message{Channel: a.code, Seq: q.Seq, Chat: q.Chat, ID: q.ID, FromMe: true,
			Status: parley.Failed, Failure: why, UpdatedAt: now}
	}
	_, err := tx.FailMessages(ctx, a.code, seqs, why, now)
	return failed, err
}

// archive gives the messages of a channel, if it has any, to an archive channel.
func archive(ctx context.Context, tx *store.Tx, c parley.Channel) error {
	_, _, chats, err := tx.Chats(ctx, c.Code, parley.Page{}, parley.ChatCursor{})
	if err != nil {
		return err
	}
	if chats == 0 {
		return tx.ClearChannel(ctx, c.Code)
	}
	to := c
	to.Name, to.Enabled, to.CreatedAt = c.Name+" (sandbox)", false, time.Now()
	to.Settings.ArchiveOf, to.Settings.AllowOnly = c.Code, nil
	to.State = parley.ChannelState{Status: parley.ChannelStopped, Reason: stoppedReason(to), Since: to.CreatedAt}
	for n := 1; err == nil; n++ {
		to.Code = archiveCode(c.Code, n)
		err = tx.CheckChannel(ctx, to.Code, 0)
	}
	if !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	return tx.ArchiveChannel(ctx, c.Code, to)
}

const maxCode = 32

func archiveCode(code parley.ChannelCode, n int) parley.ChannelCode {
	suffix := "-sandbox"
	if n > 1 {
		suffix = fmt.Sprintf("-sandbox-%d", n)
	}
	return code[:min(len(code), maxCode-len(suffix))] + parley.ChannelCode(suffix)
}
