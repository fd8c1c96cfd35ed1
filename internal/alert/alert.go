// Package alert watches what the alert rules name, and notifies people of problems and of their end.
//
// Invariants:
//   - On a cluster each node watches the channels that it serves, and the leading one the rest.
//   - What was found is stored, so that a restart or another node does not notify twice: one attempt at a time has a claim.
//   - A message goes out at the node that serves its channel, under an idempotency key of the notice.
package alert

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/gateway"
	"parley/internal/store"
)

const (
	checkEvery  = 15 * time.Second
	claimTime   = time.Minute // for one attempt to notify
	maxAttempts = 10          // after them nothing more is sent
	retryPause  = 30 * time.Second
	purgeBatch  = 500
)

// Config holds the dependencies of an engine.
type Config struct {
	Store     *store.DB
	Gateway   *gateway.Gateway
	Callbacks *callback.Engine
	Cluster   cluster.Membership
	Log       *slog.Logger
	Metrics   prometheus.Registerer
	// DataDir is the directory whose disk is watched; empty: none.
	DataDir string
	// ClientDate is when the version of the WhatsApp client appeared; zero: unknown. Nil: it is always unknown.
	ClientDate func() time.Time
	// Token is the id of the token that messages name as their sender's.
	Token parley.TokenID
}

// Engine raises alerts, resolves them and sends their notices.
type Engine struct {
	config  Config
	notices *prometheus.CounterVec // by type and result
}

// New makes an engine; Run starts it.
func New(c Config) *Engine {
	e := &Engine{config: c, notices: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_alert_notices_total", Help: "Attempts to send notices of alerts, by type and result.",
	}, []string{"type", "result"})}
	c.Metrics.MustRegister(e.notices)
	return e
}

// Run checks the rules until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := e.check(ctx, time.Now()); err != nil && ctx.Err() == nil {
			e.config.Log.Error("check the alert rules", "error", err)
		}
	}
}

// check raises and resolves alerts, then sends the notices that are due.
func (e *Engine) check(ctx context.Context, now time.Time) error {
	rules, err := e.config.Store.AlertRules(ctx)
	if err != nil || len(rules) == 0 {
		return err
	}
	found, err := e.findCauses(ctx, rules, now)
	if err != nil {
		return err
	}
	open, err := e.config.Store.WaitingAlerts(ctx)
	if err != nil {
		return err
	}
	if err := e.storeCauses(ctx, found, open, now); err != nil {
		return err
	}
	if open, err = e.config.Store.WaitingAlerts(ctx); err != nil {
		return err
	}
	byID := make(map[parley.AlertRuleID]parley.AlertRule, len(rules))
	for _, r := range rules {
		byID[r.ID] = r
	}
	for _, a := range open {
		if rule, known := byID[a.Rule]; known && e.notifiesHere(ctx, rule, a) {
			if err := e.notify(ctx, rule, a, now); err != nil {
				return err
			}
		}
	}
	if e.config.Cluster.Leads() {
		return e.config.Store.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.PurgeAlerts(ctx, now.Add(-parley.AlertRetention), purgeBatch)
			return err
		})
	}
	return nil
}

// watchesHere reports whether this node watches a channel, or what belongs to none. One that was deleted is the leader's. One that
// the gateway does not know yet, or no longer while it stops, is nobody's.
func (e *Engine) watchesHere(ctx context.Context, code parley.ChannelCode) bool {
	if code == "" {
		return e.config.Cluster.Leads()
	}
	if c, there := e.config.Gateway.Channel(code); there {
		return e.config.Cluster.Owns(gateway.ShardKey(c))
	}
	_, err := e.config.Store.Channel(ctx, code)
	return errors.Is(err, parley.ErrNotFound) && e.config.Cluster.Leads()
}

// notifiesHere reports whether this node sends the notices of an alert: that which serves the channel of the message, else that
// which watches the cause.
func (e *Engine) notifiesHere(ctx context.Context, rule parley.AlertRule, a parley.Alert) bool {
	if rule.URL == "" {
		return e.watchesHere(ctx, rule.Via)
	}
	return e.watchesHere(ctx, a.Channel)
}

// mayResolve reports whether an alert whose cause was not found is over. A channel that starts, here or after another node died, is
// in no final state yet: its alert would be resolved and raised again.
func (e *Engine) mayResolve(a *parley.Alert, now time.Time) bool {
	c, there := e.config.Gateway.Channel(a.Channel)
	isStarting := there && c.State.Status == parley.ChannelStarting
	isSending := a.NotifiedAt.IsZero() && a.NextAt.After(now) && !a.NextAt.After(now.Add(claimTime)) // perhaps another node does
	return !isStarting && !isSending && !a.HoldsUntil.After(now)
}

// storeCauses raises an alert for each new cause, and resolves those whose cause is gone.
func (e *Engine) storeCauses(ctx context.Context, found map[causeKey]parley.Alert, open []parley.Alert, now time.Time) error {
	var over []parley.Alert
	for _, a := range open {
		key := causeKey{a.Rule, a.Cause}
		if !a.ResolvedAt.IsZero() || !e.watchesHere(ctx, a.Channel) {
			continue
		}
		if _, still := found[key]; still {
			delete(found, key)
			continue
		}
		if e.mayResolve(&a, now) {
			over = append(over, a)
		}
	}
	if len(found)+len(over) == 0 {
		return nil
	}
	return e.config.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, a := range over {
			if err := resolve(ctx, tx, a, now); err != nil {
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

// resolve resolves an alert, unless another node began to send its notice since it was read.
func resolve(ctx context.Context, tx *store.Tx, a parley.Alert, now time.Time) error {
	due := now
	if a.NextAt.After(due) {
		due = a.NextAt
	}
	if unchanged, err := tx.ClaimAlert(ctx, a, due, now); err != nil || !unchanged {
		return err
	}
	a.ResolvedAt, a.Attempts, a.NextAt = now, 0, time.Time{}
	if a.NotifiedAt.IsZero() { // nobody knows of it
		a.ClosedAt = now
	}
	return tx.UpdateAlert(ctx, a, time.Time{})
}
