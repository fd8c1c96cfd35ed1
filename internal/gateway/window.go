package gateway

import (
	"cmp"
	"context"
	"time"

	"parley"
	"parley/internal/network"
)

// checkWindow refuses a message of a sandbox channel that simulates the reply window, if the contact did not write in it. Codes go as
// templates where there is a window, so they pass.
func (a *account) checkWindow(ctx context.Context, m *parley.Message) error {
	c, kind := a.snapshot(), m.Content.Kind()
	window := time.Duration(c.Settings.Window)
	if window == 0 || kind == parley.KindTemplate || !kind.InHistory() || m.Priority != parley.PriorityNormal || m.Chat.IsGroup() {
		return nil
	}
	wrote, err := a.g.wrote(ctx, c, m.Chat, window, a.now())
	if err != nil || wrote {
		return err
	}
	return network.Refuse(parley.OutsideWindow, "This contact has not written recently enough for this message. Send a template instead.")
}

// WindowEnds returns until when contacts can get more than templates, by the channel's clock; a contact that gets only templates is not
// in it. Nil: the channel has no window.
func (g *Gateway) WindowEnds(ctx context.Context, c parley.Channel, contacts ...parley.ContactID) (map[parley.ContactID]time.Time, error) {
	window := cmp.Or(time.Duration(c.Settings.Window), g.Network(c.Network).ReplyWindow)
	if window == 0 || len(contacts) == 0 {
		return nil, nil
	}
	wrote, err := g.config.Store.LastWrote(ctx, c.Code, contacts)
	now := g.Clock().Add(time.Duration(c.Settings.ClockAhead))
	ends := map[parley.ContactID]time.Time{}
	for contact, at := range wrote {
		if end := at.Add(window); end.After(now) {
			ends[contact] = end
		}
	}
	return ends, err
}

// wrote reports whether a contact wrote to a channel in a time before now, by the channel's clock.
func (g *Gateway) wrote(ctx context.Context, c parley.Channel, contact parley.ContactID, within time.Duration, now time.Time) (
	bool, error) {
	return g.config.Store.WroteSince(ctx, c.Code, contact, now.Add(-within), time.Duration(c.Settings.ClockAhead))
}
