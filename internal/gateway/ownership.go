package gateway

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"parley"
)

// owns reports whether this process serves a channel. An archive belongs with its channel.
func (g *Gateway) owns(c parley.Channel) bool { return g.config.Cluster.Owns(ShardKey(c)) }

// serves reports whether this process has a channel's account.
func (g *Gateway) serves(code parley.ChannelCode) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.accounts[code] != nil
}

// ShardKey is what decides which node serves a channel.
func ShardKey(c parley.Channel) string { return string(cmp.Or(c.Settings.ArchiveOf, c.Code)) }

func errMoved(code parley.ChannelCode) *parley.Error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
		Message: fmt.Sprintf("Channel %s moves to another node. Try again in a moment.", code)}
}

// Release closes the accounts of channels that this process no longer serves. When it returns nil, nothing of them is
// written any more. Their stored state stays: the next owner begins with it.
func (g *Gateway) Release(ctx context.Context) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	var moving []*account
	for _, a := range g.all() {
		if !g.owns(a.snapshot()) {
			moving = append(moving, a)
		}
	}
	results := make(chan error, len(moving))
	for _, a := range moving {
		a.moving.Store(true)
		go func() { results <- g.release(ctx, a) }()
	}
	for range moving {
		select {
		case err := <-results:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (g *Gateway) release(ctx context.Context, a *account) error {
	a.close()
	if a.retired.CompareAndSwap(nil, &retirement{refusal: errMoved(a.code)}) {
		close(a.moved)
	}
	err := a.awaitSync(ctx) // an open that takes long writes too
	g.mu.Lock()
	g.others[a.code] = a.snapshot()
	g.mu.Unlock()
	g.noteChange()
	g.unregister(a)
	return err
}

// refreshLater refreshes the channels after a pause, because something did not work for a moment.
func (g *Gateway) refreshLater() {
	const pause = time.Second
	if g.later.Swap(true) {
		return
	}
	time.AfterFunc(pause, func() {
		g.later.Store(false)
		if err := g.Refresh(context.Background()); err != nil { // nothing, once the gateway drains
			g.config.Log.Error("refresh channels", "error", err)
			g.refreshLater()
		}
	})
}
