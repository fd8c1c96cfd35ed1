package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
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
	if text, isText := m.Content.(parley.Text); isText && c.Settings.Cloud != nil && c.Settings.Cloud.OutsideWindow != nil {
		return a.sendAsTemplate(ctx, m, text, *c.Settings.Cloud.OutsideWindow)
	}
	return network.Refuse(parley.OutsideWindow, "This contact has not written recently enough for this message. Send a template instead.")
}

// sendAsTemplate notes that a text leaves as a template whose only parameter it becomes, if the channel has that template.
func (a *account) sendAsTemplate(ctx context.Context, m *parley.Message, text parley.Text, as parley.TemplateName) error {
	templates, err := a.g.Templates(a.code)
	if err != nil {
		return err
	}
	all, err := templates.Templates(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(t parley.TemplateInfo) bool {
		return t.Name == as.Name && t.Language == as.Language && t.Status == "APPROVED" && len(t.Gaps()) == 1
	}) {
		return network.Refuse(parley.TemplateProblem, fmt.Sprintf("The text would go as the template %s (%s), but no template of "+
			"that name and language is approved and has one parameter.", as.Name, as.Language))
	}
	text.SentAs = parley.KindTemplate
	m.Content = text
	return a.tx(ctx, func(tx *store.Tx) error {
		return parley.IgnoreNotFound(tx.SetSentAs(ctx, a.code, m.Ref(), text.SentAs))
	})
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
