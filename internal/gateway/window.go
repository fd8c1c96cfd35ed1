package gateway

import (
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

// wrote reports whether a contact wrote to a channel in a time before now, by the channel's clock.
func (g *Gateway) wrote(ctx context.Context, c parley.Channel, contact parley.ContactID, within time.Duration, now time.Time) (
	bool, error) {
	return g.config.Store.WroteSince(ctx, c.Code, contact, now.Add(-within), time.Duration(c.Settings.ClockAhead))
}
