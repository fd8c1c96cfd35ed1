package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var alertTests = map[string]func(*env){
	"one open alert for each cause": func(e *env) {
		rule := parley.AlertRule{ID: "alr_1", Name: "Out", Kind: parley.AlertFailingSends, Channel: main, Share: 20, Window: 15 * time.Minute,
			URL: "https://example.com", Quiet: parley.QuietHours{From: "22:00", To: "07:00", Zone: "UTC"}, Enabled: true, CreatedAt: start}
		e.tx(func(tx *store.Tx) error { return tx.SetAlertRule(e.Context(), rule) })
		rule.Name, rule.Enabled = "Other", false
		e.tx(func(tx *store.Tx) error { return tx.SetAlertRule(e.Context(), rule) })
		rules, err := e.store.AlertRules(e.Context())
		e.must(err)
		e.same("rules", rules, []parley.AlertRule{rule})

		alert := parley.Alert{Rule: rule.ID, Cause: "channel main", Channel: main, Sentence: "It is down.", RaisedAt: start}
		raise := func(a parley.Alert) { e.tx(func(tx *store.Tx) error { return tx.RaiseAlert(e.Context(), a) }) }
		raise(alert)
		raise(alert) // the same again
		raise(parley.Alert{Rule: "alr_gone", Cause: "disk", RaisedAt: start})
		waiting, err := e.store.WaitingAlerts(e.Context())
		e.must(err)
		alert.Seq = waiting[0].Seq
		e.same("waiting", waiting, []parley.Alert{alert})

		var claims [2]bool
		for i := range claims {
			e.tx(func(tx *store.Tx) (err error) {
				claims[i], err = tx.ClaimAlert(e.Context(), alert, start, start.Add(time.Minute))
				return err
			})
		}
		e.same("claims", claims, [2]bool{true, false})

		update := func(wasResolved time.Time) {
			e.tx(func(tx *store.Tx) error { return tx.UpdateAlert(e.Context(), alert, wasResolved) })
		}
		stale := alert
		alert.NotifiedAt, alert.Failed = start, 1
		update(time.Time{})
		e.tx(func(tx *store.Tx) error {
			claimed, err := tx.ClaimAlert(e.Context(), stale, start, start.Add(time.Minute))
			e.same("claim of an alert that was notified meanwhile", claimed, false)
			return err
		})
		alert.ResolvedAt, alert.ClosedAt = start.Add(time.Hour), start.Add(time.Hour)
		update(time.Time{})
		e.tx(func(tx *store.Tx) error { return tx.UpdateAlert(e.Context(), stale, time.Time{}) })     // it was resolved meanwhile
		raise(parley.Alert{Rule: rule.ID, Cause: "channel main", RaisedAt: start.Add(2 * time.Hour)}) // after it was resolved
		all, total, err := e.store.Alerts(e.Context(), parley.Page{Limit: 10})
		e.must(err)
		e.same("all", total, int64(2))
		e.same("oldest", all[1], alert)
		page, _, err := e.store.Alerts(e.Context(), parley.Page{Limit: 10, Beyond: all[0].Seq})
		e.must(err)
		e.same("the next page", page, all[1:])

		e.tx(func(tx *store.Tx) error {
			n, err := tx.PurgeAlerts(e.Context(), start.Add(2*time.Hour), 10)
			e.same("purged", n, 1)
			return err
		})
		e.tx(func(tx *store.Tx) error { return tx.DeleteAlertRule(e.Context(), rule.ID) })
		_, total, err = e.store.Alerts(e.Context(), parley.Page{Limit: 10})
		e.must(err)
		e.same("left", total, int64(0))
		_, err = e.store.AlertRule(e.Context(), rule.ID)
		e.same("rule", err, parley.ErrNotFound)
		_, err = e.store.CountSends(e.Context(), start)
		e.must(err)
	},
}
