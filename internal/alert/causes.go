package alert

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/doctor"
)

// leastSends is from how many sends on their share of failures counts.
const leastSends = 10

type causeKey struct {
	rule  parley.AlertRuleID
	cause string
}

// findCauses lists what the enabled rules find now, of what this node watches.
func (e *Engine) findCauses(ctx context.Context, rules []parley.AlertRule, now time.Time) (map[causeKey]parley.Alert, error) {
	found := map[causeKey]parley.Alert{}
	for _, rule := range rules {
		if !rule.Enabled {
			continue
		}
		causes, err := e.causes(ctx, rule, now)
		if err != nil {
			return nil, err
		}
		for _, a := range causes {
			if e.watchesHere(ctx, a.Channel) {
				a.Rule, a.RaisedAt = rule.ID, now
				found[causeKey{rule.ID, a.Cause}] = a
			}
		}
	}
	return found, nil
}

// causes lists what a rule finds now. What is a problem is decided by the doctor.
func (e *Engine) causes(ctx context.Context, rule parley.AlertRule, now time.Time) (causes []parley.Alert, err error) {
	if rule.Kind == parley.AlertFailingSends {
		return e.failingSends(ctx, rule, now)
	}
	findings, err := e.findings(ctx, rule.Kind, now)
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

// findings are the findings of the doctor of one kind.
func (e *Engine) findings(ctx context.Context, kind parley.AlertKind, now time.Time) ([]doctor.Finding, error) {
	channels := e.config.Gateway.Channels()
	switch kind {
	case parley.AlertLoggedOut:
		out := func(c parley.Channel) bool {
			return c.State.Status != parley.ChannelLoggedOut || c.Settings.ArchiveOf != ""
		}
		return doctor.Channels(slices.DeleteFunc(channels, out), true, now), nil
	case parley.AlertRestricted:
		return doctor.Restricted(channels, now), nil
	case parley.AlertAccount:
		findings := doctor.Accounts(channels, e.config.Gateway.ExamineAccount)
		return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Level != doctor.Problem }), nil
	case parley.AlertOldClient:
		if e.config.ClientDate == nil {
			return nil, nil
		}
		findings := doctor.WhatsApp(channels, e.config.ClientDate(), now)
		return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Level != doctor.Problem }), nil
	case parley.AlertFailingWebhook:
		findings, err := doctor.Webhooks(ctx, e.config.Store, now)
		return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Code != "webhook_failing" && f.Code != "webhook_off" }), err
	}
	if e.config.DataDir == "" {
		return nil, nil
	}
	return []doctor.Finding{doctor.Database(e.config.DataDir, 0, true, nil)}, nil
}

func (e *Engine) failingSends(ctx context.Context, rule parley.AlertRule, now time.Time) (causes []parley.Alert, err error) {
	counts, err := e.config.Store.CountSends(ctx, now.Add(-rule.Window))
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
