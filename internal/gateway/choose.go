package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
)

// Choices lists the channels that a request which names none may use, by code. It is shared: nobody may change it. Whatever chooses a
// channel by itself chooses among these: once the server has a channel on a real network, working or not, sandbox channels are no longer
// among them.
// Otherwise anyone who can read simulated phones would receive codes and login links that are meant for real people.
func (g *Gateway) Choices(ctx context.Context) ([]parley.Channel, error) {
	g.mu.RLock()
	loaded := g.loaded
	g.mu.RUnlock()
	if !loaded {
		return nil, errStarting
	}
	list := g.List()
	if len(list.Choices) > 0 && !g.isSimulated(list.Choices[0]) {
		return list.Choices, nil
	}
	// A channel that another node has just created, or that is just going live, may be only in the store.
	used, err := g.config.Store.UsedNetworks(ctx)
	if slices.ContainsFunc(used, func(name parley.NetworkName) bool { return !g.Network(name).Simulated }) {
		err = errStarting
	}
	return list.Choices, err
}

var errStarting = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
	Message: "Channels are still starting. Try again in a moment, or name a channel in the header X-Channel."}

// PickForPool chooses a channel for a contact: the working one that last exchanged a message with it, else any working one.
// If there is none, the error says why the last working one may not write to the contact, or it is [parley.ErrNotFound].
func (g *Gateway) PickForPool(ctx context.Context, to parley.ContactID) (parley.ChannelCode, error) {
	choices, err := g.Choices(ctx)
	if err != nil {
		return "", err
	}
	var working []parley.ChannelCode
	var why error = parley.ErrNotFound
	for _, c := range choices {
		if c.State.Status != parley.ChannelWorking {
			continue
		}
		if err := c.Accepts(to); err != nil {
			why = err
			continue
		}
		working = append(working, c.Code)
	}
	if len(working) == 0 {
		return "", why
	}
	last, err := g.config.Store.LastChannelWith(ctx, to, working)
	if errors.Is(err, parley.ErrNotFound) {
		return working[rand.IntN(len(working))], nil
	}
	return last, err
}
