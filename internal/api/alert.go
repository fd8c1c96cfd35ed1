package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/client"
	"parley/internal/doctor"
	"parley/internal/gateway"
	"parley/internal/store"
)

const (
	alertsEvery   = 15 * time.Second
	alertClaim    = time.Minute // for one attempt to notify
	alertAttempts = 10          // after them nothing more is sent
	alertPause    = 30 * time.Second
	alertBatch    = 500
	// leastSends is from how many sends on their share of failures counts.
	leastSends = 10
)

// runAlerts watches what the rules name until ctx ends. On a cluster each node watches the channels that it serves, and the leading
// one the rest. What was found is stored, so that a restart or another node does not notify twice.
func (s *server) runAlerts(ctx context.Context) {
	ticker := time.NewTicker(alertsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.checkAlerts(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.Log.Error("check the alert rules", "error", err)
		}
	}
}

// checkAlerts raises and resolves alerts, then sends the notices that are due.
func (s *server) checkAlerts(ctx context.Context, now time.Time) error {
	rules, err := s.Store.AlertRules(ctx)
	if err != nil || len(rules) == 0 {
		return err
	}
	found, err := s.findCauses(ctx, rules, now)
	if err != nil {
		return err
	}
	open, err := s.Store.WaitingAlerts(ctx)
	if err != nil {
		return err
	}
	if err := s.storeCauses(ctx, found, open, now); err != nil {
		return err
	}
	if open, err = s.Store.WaitingAlerts(ctx); err != nil {
		return err
	}
	byID := make(map[parley.AlertRuleID]parley.AlertRule, len(rules))
	for _, r := range rules {
		byID[r.ID] = r
	}
	for _, a := range open {
		if rule, known := byID[a.Rule]; known && s.watchesHere(ctx, a.Channel) {
			if err := s.notify(ctx, rule, a, now); err != nil {
				return err
			}
		}
	}
	if s.Cluster.Leads() {
		return s.tx(ctx, func(tx *store.Tx) error {
			_, err := tx.PurgeAlerts(ctx, now.Add(-parley.AlertRetention), alertBatch)
			return err
		})
	}
	return nil
}

// watchesHere reports whether this node watches a channel, or what belongs to none. One that was deleted is the leader's. One that
// the gateway does not know yet, or no longer while it stops, is nobody's.
func (s *server) watchesHere(ctx context.Context, code parley.ChannelCode) bool {
	if code == "" {
		return s.Cluster.Leads()
	}
	if c, there := s.Gateway.Channel(code); there {
		return s.Cluster.Owns(gateway.ShardKey(c))
	}
	_, err := s.Store.Channel(ctx, code)
	return errors.Is(err, parley.ErrNotFound) && s.Cluster.Leads()
}

// mayResolve reports whether an alert whose cause was not found is over. A channel that starts, here or after another node died, is
// in no final state yet: its alert would be resolved and raised again.
func (s *server) mayResolve(a *parley.Alert, now time.Time) bool {
	c, there := s.Gateway.Channel(a.Channel)
	isStarting := there && c.State.Status == parley.ChannelStarting
	isSending := a.NotifiedAt.IsZero() && a.NextAt.After(now) && !a.NextAt.After(now.Add(alertClaim)) // perhaps another node does
	return !isStarting && !isSending && !a.HoldsUntil.After(now)
}

type alertKey struct {
	rule  parley.AlertRuleID
	cause string
}

// findCauses lists what the enabled rules find now, of what this node watches.
func (s *server) findCauses(ctx context.Context, rules []parley.AlertRule, now time.Time) (map[alertKey]parley.Alert, error) {
	found := map[alertKey]parley.Alert{}
	for _, rule := range rules {
		if !rule.Enabled {
			continue
		}
		causes, err := s.causesOf(ctx, rule, now)
		if err != nil {
			return nil, err
		}
		for _, a := range causes {
			if s.watchesHere(ctx, a.Channel) {
				a.Rule, a.RaisedAt = rule.ID, now
				found[alertKey{rule.ID, a.Cause}] = a
			}
		}
	}
	return found, nil
}

// causesOf lists what a rule finds now. What is a problem is decided by the doctor.
func (s *server) causesOf(ctx context.Context, rule parley.AlertRule, now time.Time) (causes []parley.Alert, err error) {
	if rule.Kind == parley.AlertFailingSends {
		return s.failingSends(ctx, rule, now)
	}
	findings, err := s.findingsOf(ctx, rule.Kind, now)
	for _, f := range doctor.Attention(findings) {
		if f.Channel != "" && !rule.Watches(f.Channel) {
			continue
		}
		a := parley.Alert{Cause: f.Check + string(f.Webhook), Sentence: f.Text(), HoldsUntil: f.Until}
		if f.Webhook == "" {
			a.Channel = f.Channel
		}
		causes = append(causes, a)
	}
	return causes, err
}

// findingsOf are the findings of the doctor of one kind.
func (s *server) findingsOf(ctx context.Context, kind parley.AlertKind, now time.Time) ([]doctor.Finding, error) {
	channels := s.Gateway.Channels()
	switch kind {
	case parley.AlertLoggedOut:
		out := func(c parley.Channel) bool {
			return c.State.Status != parley.ChannelLoggedOut || c.Settings.ArchiveOf != ""
		}
		return doctor.Channels(slices.DeleteFunc(channels, out), true, now), nil
	case parley.AlertRestricted:
		return doctor.Restricted(channels, s.Gateway.RestrictedUntil), nil
	case parley.AlertFailingWebhook:
		findings, err := doctor.Webhooks(ctx, s.Store, now)
		return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Code != "webhook_failing" && f.Code != "webhook_off" }), err
	}
	if s.Program.DataDir == "" {
		return nil, nil
	}
	return []doctor.Finding{doctor.Database(s.Program.DataDir, 0, true, nil)}, nil
}

func (s *server) failingSends(ctx context.Context, rule parley.AlertRule, now time.Time) (causes []parley.Alert, err error) {
	counts, err := s.Store.SendsOf(ctx, now.Add(-rule.Window))
	if err != nil {
		return nil, err
	}
	for code, n := range counts {
		all := n[0] + n[1]
		if !rule.Watches(code) || all < leastSends || n[1]*100 < int64(rule.Share)*all {
			continue
		}
		causes = append(causes, parley.Alert{Cause: "channel " + string(code), Channel: code, Sentence: fmt.Sprintf(
			"%d of %d messages of channel %s failed in the last %s.", n[1], all, code, doctor.Lasted(rule.Window))})
	}
	return causes, nil
}

// storeCauses raises an alert for each new cause, and resolves those whose cause is gone.
func (s *server) storeCauses(ctx context.Context, found map[alertKey]parley.Alert, open []parley.Alert, now time.Time) error {
	var resolved []parley.Alert
	for _, a := range open {
		key := alertKey{a.Rule, a.Cause}
		if !a.ResolvedAt.IsZero() || !s.watchesHere(ctx, a.Channel) {
			continue
		}
		if _, still := found[key]; still {
			delete(found, key)
			continue
		}
		if !s.mayResolve(&a, now) {
			continue
		}
		a.ResolvedAt, a.Attempts, a.NextAt = now, 0, time.Time{}
		if a.NotifiedAt.IsZero() { // nobody knows of it
			a.ClosedAt = now
		}
		resolved = append(resolved, a)
	}
	if len(found)+len(resolved) == 0 {
		return nil
	}
	return s.tx(ctx, func(tx *store.Tx) error {
		for _, a := range resolved {
			if err := tx.UpdateAlert(ctx, a, time.Time{}); err != nil {
				return err
			}
		}
		for _, a := range found {
			if err := tx.RaiseAlert(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// notify sends the notice of an alert if one is due: that it was raised, or that it is resolved. Quiet hours only delay it.
func (s *server) notify(ctx context.Context, rule parley.AlertRule, a parley.Alert, now time.Time) error {
	isResolved := !a.ResolvedAt.IsZero()
	if rule.Quiet.Contain(now) || a.NextAt.After(now) || !rule.Enabled && !isResolved || !isResolved && !a.NotifiedAt.IsZero() {
		return nil
	}
	var claimed bool
	err := s.tx(ctx, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimAlert(ctx, a, now, now.Add(alertClaim))
		return err
	})
	if err != nil || !claimed {
		return err
	}
	kind := alertRaised
	if isResolved {
		kind = alertResolved
	}
	a.Problem = s.sendNotice(ctx, rule, &a, kind)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.alertNotices.WithLabelValues(kind, map[bool]string{true: "ok", false: "failed"}[a.Problem == ""]).Inc()
	a.Attempts++
	a.NextAt = now.Add(alertPause << min(a.Attempts, 7))
	if a.Problem == "" || a.Attempts >= alertAttempts {
		a.Attempts, a.NextAt, a.NotifiedAt = 0, time.Time{}, now
		if isResolved {
			a.ClosedAt = now
		}
	}
	return s.tx(ctx, func(tx *store.Tx) error { return tx.UpdateAlert(ctx, a, a.ResolvedAt) })
}

// The types of notices.
const (
	alertRaised   = "alert.raised"
	alertResolved = "alert.resolved"
	alertTest     = "alert.test"
)

// sendNotice notifies once, and returns the problem; empty: it was accepted. A second notice of the same alert and kind has the same
// id, so that a receiver can ignore it.
func (s *server) sendNotice(ctx context.Context, rule parley.AlertRule, a *parley.Alert, kind string) string {
	id := a.ID() + "." + kind
	if rule.URL == "" {
		return s.sendNoticeMessage(ctx, rule, a, kind, id)
	}
	data, err := json.Marshal(map[string]any{
		"id": a.ID(), "rule": rule.ID, "name": rule.Name, "kind": rule.Kind, "sentence": a.Sentence, "raised_at": stampOrNil(a.RaisedAt),
		"resolved_at": stampOrNil(a.ResolvedAt),
	})
	if err != nil {
		return err.Error()
	}
	event := &parley.Event{ID: parley.EventID(id), Type: parley.EventType(kind), Channel: a.Channel, At: time.Now(), Data: data}
	attempt, err := s.Callbacks.SendOnce(ctx, parley.Webhook{URL: rule.URL}, parley.AlertSecret(rule.ID), event)
	if err != nil {
		return err.Error()
	}
	return attempt.Problem
}

// sendNoticeMessage sends a message as any caller does, so that the node that serves the channel does it, and once. An attempt with
// an unknown result is repeated with the same idempotency key. Only after a message that failed for good the next has another key.
func (s *server) sendNoticeMessage(ctx context.Context, rule parley.AlertRule, a *parley.Alert, kind, id string) string {
	text := map[string]string{alertRaised: "⚠️ ", alertResolved: "✅ Resolved: ", alertTest: ""}[kind] + a.Sentence
	api := &client.Client{Base: "http://parley", Token: s.LocalToken, Channel: string(rule.Via),
		HTTP: &http.Client{Transport: client.Direct(s.self)}}
	if a.Failed > 0 {
		id += "." + strconv.Itoa(a.Failed)
	}
	header := http.Header{keyHeader: {id}}
	answer, err := api.CallWith(ctx, http.MethodPost, "/api/send-message/text", nil, header, map[string]any{
		"contact_id": rule.Contact, "message": "Parley alert: " + cmp.Or(rule.Name, string(rule.Kind)) + "\n" + text}, nil)
	if err != nil {
		return err.Error()
	}
	if !answer.Success {
		a.Failed++
		return answer.Message
	}
	return ""
}
