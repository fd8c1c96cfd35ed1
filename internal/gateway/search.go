package gateway

import (
	"context"

	"parley"
)

// FindMessages looks for records, newest first. What was answered to be sent reads as sent.
func (g *Gateway) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	if q.Channel != "" {
		g.flush(ctx, q.Channel)
	} else {
		limited, cancel := context.WithTimeout(ctx, flushLimit) // for all of them: the store that one waits for is the others' too
		defer cancel()
		for _, c := range g.Channels() {
			g.flush(limited, c.Code)
		}
	}
	return g.Store.FindMessages(ctx, q)
}

// Message finds a message as it stands now.
func (g *Gateway) Message(ctx context.Context, code parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	g.flush(ctx, code)
	return g.Store.Message(ctx, code, ref)
}
