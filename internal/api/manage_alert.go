package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
	"parley/internal/wire"
)

func toAlertRule(a parley.AlertRule) wire.AlertRule {
	row := wire.AlertRule{
		ID: a.ID, Name: a.Name, Kind: a.Kind, Channel: wire.Text(a.Channel), URL: wire.Text(a.URL), Via: wire.Text(a.Via),
		ContactID: wire.Text(a.Contact), Enabled: a.Enabled, Warning: addressWarning(a.URL), CreatedAt: wire.At(a.CreatedAt),
	}
	if a.Kind == parley.AlertFailingSends {
		row.Share, row.WindowMinutes = new(a.Share), new(int(a.Window/time.Minute))
	}
	if a.Quiet != (parley.QuietHours{}) {
		row.Quiet = &wire.QuietHours{From: a.Quiet.From, To: a.Quiet.To, Zone: a.Quiet.Zone}
	}
	return row
}

// alertRule is a rule as the caller may see it.
func (r *request) alertRule(a parley.AlertRule) wire.AlertRule {
	row := toAlertRule(a)
	row.URL = wire.Text(r.shownAddress(a.URL))
	return row
}

// auditAlert is a rule as the audit log shows it.
func auditAlert(a parley.AlertRule) wire.AlertRule {
	a.URL = withoutSecrets(a.URL)
	return toAlertRule(a)
}

func (s *server) listAlerts(ctx context.Context, r *request) (any, error) {
	page := seqPage(r.Form)
	if err := r.Err(); err != nil {
		return nil, err
	}
	rules, err := s.config.Store.AlertRules(ctx)
	if err != nil {
		return nil, err
	}
	alerts, total, err := s.config.Store.Alerts(ctx, page)
	alerts, meta := cutPage(alerts, page, total, func(a parley.Alert) int64 { return a.Seq })
	data := wire.Alerts{Rules: mapped(rules, r.alertRule), Alerts: mapped(alerts, func(a parley.Alert) wire.Alert {
		return wire.Alert{ID: a.ID(), Rule: a.Rule, Channel: wire.Text(a.Channel), Sentence: a.Sentence, RaisedAt: wire.At(a.RaisedAt),
			NotifiedAt: wire.At(a.NotifiedAt), ResolvedAt: wire.At(a.ResolvedAt), Problem: a.Problem}
	})}
	return envelope{Success: true, Message: "OK", Data: data, Meta: meta}, err
}

// alertRule reads the fields of a rule.
func (s *server) alertRule(ctx context.Context, r *request) (parley.AlertRule, error) {
	rule := parley.AlertRule{
		Name: r.OptionalText("name", 1, 60), Channel: parley.ChannelCode(r.OptionalText("channel", 1, 32)),
		Kind:    parley.AlertKind(r.Choice("kind", true, mapped(parley.AlertKinds, func(k parley.AlertKind) string { return string(k) })...)),
		Enabled: r.Bool("enabled", true), CreatedAt: time.Now(),
	}
	if err := s.channelField(ctx, r, rule.Channel); err != nil {
		return rule, err
	}
	if rule.Kind == parley.AlertFailingSends {
		rule.Share = int(r.Whole("share", 20, 1, 100))
		rule.Window = time.Duration(r.Whole("window_minutes", 15, 5, 24*60)) * time.Minute
	}
	if (rule.Kind == parley.AlertDisk || rule.Kind == parley.AlertOldClient) && rule.Channel != "" {
		r.Fail("channel", "does not apply to the disk or the client. Leave it out.")
	}
	switch byMessage := r.Has("via") || r.Has("contact_id"); {
	case r.Has("url") && byMessage:
		r.Fail("url", "and via cannot be given together. Notify an address, or a contact through a channel.")
	case byMessage:
		rule.Via, rule.Contact = parley.ChannelCode(r.Text("via", 1, 32)), r.Contact("contact_id")
		if _, err := s.config.Store.Channel(ctx, rule.Via); rule.Via != "" && err != nil {
			if !errors.Is(err, parley.ErrNotFound) {
				return rule, err
			}
			r.Fail("via", namesNoChannel)
		}
	default:
		rule.URL = r.Address("url")
	}
	if quiet, given := r.Object("quiet", false); given {
		rule.Quiet = parley.QuietHours{From: quiet.Text("from", 5, 5), To: quiet.Text("to", 5, 5), Zone: quiet.Text("zone", 1, 60)}
		checkHours(quiet, rule.Quiet.From, rule.Quiet.To)
		checkZone(quiet, rule.Quiet.Zone)
	}
	return rule, r.Err()
}

func checkHours(f form.Form, from, to string) {
	for name, text := range map[string]string{"from": from, "to": to} {
		if _, err := parley.ParseClock(text); text != "" && err != nil {
			f.Fail(name, "must be a time of day such as 22:00.")
		}
	}
}

func checkZone(f form.Form, zone string) {
	if _, err := parley.LoadZone(zone); zone != "" && err != nil {
		f.Fail("zone", "must be the name of a time zone, such as Asia/Jakarta or UTC.")
	}
}

const maxAlertRules = 100

func (s *server) createAlert(ctx context.Context, r *request) (any, error) {
	rule, err := s.alertRule(ctx, r)
	if err != nil {
		return nil, err
	}
	rule.ID = parley.NewAlertRuleID()
	var secret string
	err = s.tx(ctx, func(tx *store.Tx) error {
		all, err := tx.AlertRules(ctx)
		if err != nil {
			return err
		}
		if len(all) >= maxAlertRules {
			return parley.Errorf(parley.BadRequest, "There are %d alert rules, and no more are possible. Delete one first.", maxAlertRules)
		}
		if err := tx.SetAlertRule(ctx, rule); err != nil {
			return err
		}
		if rule.URL != "" {
			if secret, err = s.config.Callbacks.Secrets.Add(ctx, tx, parley.AlertSecret(rule.ID)); err != nil {
				return err
			}
		}
		// The stored response must not contain the secret.
		before := ok("The alert rule already exists. Its secret was shown once.", wire.NewAlertRule{AlertRule: toAlertRule(rule)})
		return errors.Join(r.auditTx(ctx, tx, change{object: string(rule.ID), after: auditAlert(rule)}),
			r.storeKey(ctx, tx, http.StatusCreated, before))
	})
	return ok("Alert rule created", wire.NewAlertRule{AlertRule: toAlertRule(rule), Secret: wire.Text(secret)}), err
}

func (r *request) alertID() parley.AlertRuleID { return parley.AlertRuleID(r.http.PathValue("id")) }

var errNoAlert = parley.Errorf(parley.NotFound, "This alert rule does not exist.")

func (s *server) replaceAlert(ctx context.Context, r *request) (any, error) {
	rule, err := s.alertRule(ctx, r)
	if err != nil {
		return nil, err
	}
	err = s.tx(ctx, func(tx *store.Tx) error {
		old, err := tx.AlertRule(ctx, r.alertID())
		if err != nil {
			return err
		}
		if (old.URL == "") != (rule.URL == "") {
			return parley.InvalidField("url", "url and via cannot replace each other. Create another alert rule.")
		}
		rule.ID, rule.CreatedAt = old.ID, old.CreatedAt
		return errors.Join(tx.SetAlertRule(ctx, rule),
			r.auditTx(ctx, tx, change{object: string(rule.ID), before: auditAlert(old), after: auditAlert(rule)}))
	})
	return ok("Alert rule changed", toAlertRule(rule)), notFoundAs(err, errNoAlert)
}

func (s *server) deleteAlert(ctx context.Context, r *request) (any, error) {
	err := s.tx(ctx, func(tx *store.Tx) error {
		old, err := tx.AlertRule(ctx, r.alertID())
		if err != nil {
			return err
		}
		return errors.Join(tx.DeleteAlertRule(ctx, old.ID), r.auditTx(ctx, tx, change{object: string(old.ID), before: auditAlert(old)}))
	})
	s.config.Callbacks.Secrets.Evict(parley.AlertSecret(r.alertID()))
	return ok("Alert rule deleted", nil), notFoundAs(err, errNoAlert)
}

type alertTestData struct {
	Problem string `json:"problem"`
}

// testAlert sends a test notice now, also in quiet hours. The node that serves the channel of a message does it.
func (s *server) testAlert(ctx context.Context, r *request) (any, error) {
	rule, err := s.config.Store.AlertRule(ctx, r.alertID())
	if err != nil {
		return nil, notFoundAs(err, errNoAlert)
	}
	if c, there := s.config.Gateway.Channel(rule.Via); there {
		if err := s.checkChannelOwner(ctx, c); err != nil {
			return nil, err
		}
	}
	problem := s.config.Alerts.Test(ctx, rule)
	e := ok("The notice was accepted", alertTestData{problem})
	if problem != "" {
		e.Success, e.Message = false, fmt.Sprintf("The notice was not accepted. %s", problem)
	}
	return e, nil
}
