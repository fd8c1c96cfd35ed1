package store

import (
	"context"
	"time"

	"parley"
)

const (
	ruleColumns = `id, name, kind, channel, share, minutes, url, via, contact, quiet_from, quiet_to, quiet_zone, enabled, created_at`
	readRules   = `SELECT ` + ruleColumns + ` FROM alert_rule `

	alertColumns = `rule, cause, channel, sentence, raised_at, holds_until, resolved_at, notified_at, closed_at, attempts, next_at, problem,
		failed`
	readAlerts = `SELECT seq, ` + alertColumns + ` FROM alert `
)

// AlertRules lists all alert rules, oldest first.
func (r Reader) AlertRules(ctx context.Context) ([]parley.AlertRule, error) {
	return list(r.with(ctx), readRules+`ORDER BY created_at, id`, nil, scanRule)
}

// AlertRule finds an alert rule.
func (r Reader) AlertRule(ctx context.Context, id parley.AlertRuleID) (parley.AlertRule, error) {
	return one(r.with(ctx), readRules+`WHERE id = $1`, []any{string(id)}, scanRule)
}

func scanRule(row scanner) (r parley.AlertRule, err error) {
	var minutes, created int64
	err = row.Scan(&r.ID, &r.Name, &r.Kind, &r.Channel, &r.Share, &minutes, &r.URL, &r.Via, &r.Contact, &r.Quiet.From, &r.Quiet.To,
		&r.Quiet.Zone, &r.Enabled, &created)
	r.Window, r.CreatedAt = time.Duration(minutes)*time.Minute, moment(created)
	return r, err
}

// SetAlertRule stores a new alert rule, or replaces the one with its id.
func (t *Tx) SetAlertRule(_ context.Context, r parley.AlertRule) error {
	return t.exec(`INSERT INTO alert_rule (`+ruleColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (id) DO UPDATE SET name = $2, kind = $3, channel = $4, share = $5, minutes = $6, url = $7, via = $8, contact = $9,
		quiet_from = $10, quiet_to = $11, quiet_zone = $12, enabled = $13`,
		string(r.ID), r.Name, string(r.Kind), string(r.Channel), int64(r.Share), int64(r.Window/time.Minute), r.URL, string(r.Via),
		string(r.Contact), r.Quiet.From, r.Quiet.To, r.Quiet.Zone, flag(r.Enabled), millis(r.CreatedAt))
}

// DeleteAlertRule deletes an alert rule with its alerts and its secret.
func (t *Tx) DeleteAlertRule(_ context.Context, id parley.AlertRuleID) error {
	if err := t.change(`DELETE FROM alert_rule WHERE id = $1`, string(id)); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM alert WHERE rule = $1`, string(id)); err != nil {
		return err
	}
	return t.exec(`DELETE FROM secret WHERE owner = $1`, string(parley.AlertSecret(id)))
}

// WaitingAlerts lists the alerts that are open or have a notice to send, oldest first.
func (r Reader) WaitingAlerts(ctx context.Context) ([]parley.Alert, error) {
	return list(r.with(ctx), readAlerts+`WHERE closed_at = 0 ORDER BY seq`, nil, scanAlert)
}

// Alerts lists alerts, newest first, and counts all.
func (r Reader) Alerts(ctx context.Context, page parley.Page) (found []parley.Alert, total int64, err error) {
	in := r.with(ctx)
	if err := in.row(`SELECT count(*) FROM alert`, nil, &total); err != nil {
		return nil, 0, err
	}
	found, err = list(in, readAlerts+`WHERE seq < $1 ORDER BY seq DESC LIMIT $2`, []any{before(page), int64(page.Limit)}, scanAlert)
	return found, total, err
}

func scanAlert(row scanner) (a parley.Alert, err error) {
	var raised, holds, resolved, notified, closed, next int64
	err = row.Scan(&a.Seq, &a.Rule, &a.Cause, &a.Channel, &a.Sentence, &raised, &holds, &resolved, &notified, &closed, &a.Attempts, &next,
		&a.Problem, &a.Failed)
	a.RaisedAt, a.HoldsUntil, a.ResolvedAt = moment(raised), moment(holds), moment(resolved)
	a.NotifiedAt, a.ClosedAt, a.NextAt = moment(notified), moment(closed), moment(next)
	return a, err
}

// RaiseAlert stores an alert, unless one of the same cause is open or its rule was deleted.
func (t *Tx) RaiseAlert(ctx context.Context, a parley.Alert) error {
	if _, err := t.AlertRule(ctx, a.Rule); err != nil {
		return parley.IgnoreNotFound(err)
	}
	return t.exec(`INSERT INTO alert (`+alertColumns+`) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, 0, 0, '', 0) ON CONFLICT DO NOTHING`,
		string(a.Rule), a.Cause, string(a.Channel), a.Sentence, millis(a.RaisedAt), millis(a.HoldsUntil))
}

// ClaimAlert reserves an alert for one attempt until a time. It reports whether nobody else did, and the alert is as it was read.
func (t *Tx) ClaimAlert(_ context.Context, a parley.Alert, now, until time.Time) (bool, error) {
	n, err := t.sql.Exec(`UPDATE alert SET next_at = $1 WHERE seq = $2 AND closed_at = 0 AND next_at <= $3 AND attempts = $4
		AND notified_at = $5 AND resolved_at = $6`,
		millis(until), a.Seq, millis(now), int64(a.Attempts), millis(a.NotifiedAt), millis(a.ResolvedAt))
	return n > 0, err
}

// UpdateAlert stores what became of an alert that was resolved at a time, or not yet (zero). One that was deleted or resolved
// meanwhile, by another node, does not change.
func (t *Tx) UpdateAlert(_ context.Context, a parley.Alert, wasResolved time.Time) error {
	return t.exec(`UPDATE alert SET sentence = $1, holds_until = $2, resolved_at = $3, notified_at = $4, closed_at = $5, attempts = $6,
		next_at = $7, problem = $8, failed = $9 WHERE seq = $10 AND resolved_at = $11`, a.Sentence, millis(a.HoldsUntil),
		millis(a.ResolvedAt), millis(a.NotifiedAt), millis(a.ClosedAt), int64(a.Attempts), millis(a.NextAt), a.Problem, int64(a.Failed), a.Seq,
		millis(wasResolved))
}

// PurgeAlerts deletes alerts that were closed before a time, at most limit of them, and returns how many.
func (t *Tx) PurgeAlerts(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM alert WHERE seq IN (SELECT seq FROM alert WHERE closed_at > 0 AND closed_at < $1 ORDER BY seq LIMIT $2)`,
		millis(before), int64(limit))
	return int(n), err
}

// CountSends counts the sent and the failed messages of every channel since a time, by the minute.
func (db *DB) CountSends(ctx context.Context, since time.Time) (map[parley.ChannelCode][2]int64, error) {
	all := map[parley.ChannelCode][2]int64{}
	err := each(db.counted(ctx), `SELECT code, what, sum(n) FROM counter_minute JOIN channel ON channel.id = counter_minute.channel
		WHERE minute >= $1 AND what IN ($2, $3) GROUP BY code, what`,
		[]any{since.Unix() / 60, string(CountSent), string(CountFailed)}, func(row scanner) error {
			var code parley.ChannelCode
			var what Counter
			var n int64
			err := row.Scan(&code, &what, &n)
			counts := all[code]
			if what == CountSent {
				counts[0] = n
			} else {
				counts[1] = n
			}
			all[code] = counts
			return err
		})
	return all, err
}
