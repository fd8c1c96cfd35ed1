package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/store"
)

// notify sends the notice of an alert if one is due: that it was raised, or that it is resolved. Quiet hours only delay it.
func (e *Engine) notify(ctx context.Context, rule parley.AlertRule, a parley.Alert, now time.Time) error {
	isResolved := !a.ResolvedAt.IsZero()
	if rule.Quiet.Contain(now) || a.NextAt.After(now) || !rule.Enabled && !isResolved || !isResolved && !a.NotifiedAt.IsZero() {
		return nil
	}
	var claimed bool
	err := e.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimAlert(ctx, a, now, now.Add(claimTime))
		return err
	})
	if err != nil || !claimed {
		return err
	}
	kind := raised
	if isResolved {
		kind = resolved
	}
	a.Problem = e.sendNotice(ctx, rule, &a, kind)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.notices.WithLabelValues(kind, map[bool]string{true: "ok", false: "failed"}[a.Problem == ""]).Inc()
	a.Attempts++
	a.NextAt = now.Add(retryPause << min(a.Attempts, 7))
	if a.Problem == "" || a.Attempts >= maxAttempts {
		a.Attempts, a.NextAt, a.NotifiedAt = 0, time.Time{}, now
		if isResolved {
			a.ClosedAt = now
		}
	}
	return e.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.UpdateAlert(ctx, a, a.ResolvedAt) })
}

// The types of notices.
const (
	raised   = "alert.raised"
	resolved = "alert.resolved"
	test     = "alert.test"
)

// Test sends a test notice of a rule now, also in quiet hours, and returns the problem; empty: it was accepted.
func (e *Engine) Test(ctx context.Context, rule parley.AlertRule) (problem string) {
	a := parley.Alert{Seq: rand.Int64(), Rule: rule.ID, Channel: rule.Channel, RaisedAt: time.Now(),
		Sentence: "This is a test. Nothing is wrong."}
	return e.sendNotice(ctx, rule, &a, test)
}

// sendNotice notifies once, and returns the problem; empty: it was accepted. A second notice of the same alert and kind has the same
// id, so that a receiver can ignore it.
func (e *Engine) sendNotice(ctx context.Context, rule parley.AlertRule, a *parley.Alert, kind string) string {
	id := a.ID() + "." + kind
	if rule.URL == "" {
		return e.sendMessage(ctx, rule, a, kind, id)
	}
	data, err := json.Marshal(map[string]any{
		"id": a.ID(), "rule": rule.ID, "name": rule.Name, "kind": rule.Kind, "sentence": a.Sentence, "raised_at": stamp(a.RaisedAt),
		"resolved_at": stamp(a.ResolvedAt),
	})
	if err != nil {
		return err.Error()
	}
	event := &parley.Event{ID: parley.EventID(id), Type: parley.EventType(kind), Channel: a.Channel, At: time.Now(), Data: data}
	attempt, err := e.config.Callbacks.SendOnce(ctx, parley.Webhook{URL: rule.URL}, parley.AlertSecret(rule.ID), event)
	if err != nil {
		return err.Error()
	}
	return attempt.Problem
}

// stamp is a time as JSON; nil: there is none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return parley.Stamp(t)
}

const (
	sendWait = 10 * time.Second // for the network's confirmation
	keyScope = "*alert"         // the star cannot be part of a channel code
)

// sendMessage sends a notice as a message. An attempt with an unknown result is repeated under the same idempotency key. Only after a
// message that failed for good the next has another key.
func (e *Engine) sendMessage(ctx context.Context, rule parley.AlertRule, a *parley.Alert, kind, id string) (problem string) {
	text := map[string]string{raised: "⚠️ ", resolved: "✅ Resolved: ", test: ""}[kind] + a.Sentence
	if a.Failed > 0 {
		id += "." + strconv.Itoa(a.Failed)
	}
	m, err := e.sendOnce(ctx, rule, id, "Parley alert: "+cmp.Or(rule.Name, string(rule.Kind))+"\n"+text)
	known, isKnown := errors.AsType[*parley.Error](err)
	switch {
	case isKnown:
		return known.Message
	case err != nil:
		e.config.Log.Error("send the notice of an alert", "alert", a.ID(), "error", err)
		return "Internal server error"
	case m.Status != parley.Failed:
		return ""
	}
	a.Failed++
	if m.Failure == nil {
		return "The network rejected it."
	}
	return m.Failure.Message
}

// sendOnce sends a message, or returns the one that was sent under the same key.
func (e *Engine) sendOnce(ctx context.Context, rule parley.AlertRule, key, text string) (parley.Message, error) {
	var ms []parley.Message
	before, err := e.config.Store.StoredResponse(ctx, keyScope, key)
	switch {
	case err == nil:
		ms, err = e.config.Gateway.CurrentMessages(ctx, before.Channel, before.Messages)
	case errors.Is(err, parley.ErrNotFound):
		if c, there := e.config.Gateway.Channel(rule.Via); there && c.Usable() != nil {
			return parley.Message{}, c.Usable()
		}
		draft := gateway.Draft{To: rule.Contact, Content: parley.Text{Body: text}, Request: key, Token: e.config.Token}
		ms, err = e.config.Gateway.Send(ctx, rule.Via, []gateway.Draft{draft}, gateway.SendOptions{Wait: sendWait,
			Key: &store.StoredResponse{Scope: keyScope, Key: key, Fingerprint: []byte{}, CreatedAt: time.Now().UTC()}})
	}
	if err != nil {
		return parley.Message{}, err
	}
	return ms[0], nil
}
