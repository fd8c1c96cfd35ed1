package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
)

// WebhookReader reads webhooks and their waiting deliveries.
type WebhookReader interface {
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
	OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error)
}

// reportGapsFor is how long a gap is reported.
const reportGapsFor = 7 * 24 * time.Hour

const (
	// A webhook is failing after a second failed attempt, this long after the first. One failed attempt is retried within
	// seconds and needs nobody.
	failingFailures = 2
	failingTime     = 10 * time.Second
	// longFailing is when a failing webhook becomes a problem.
	longFailing = time.Hour
)

// Webhooks checks whether events reach their webhooks.
func Webhooks(ctx context.Context, store WebhookReader, now time.Time) ([]Finding, error) {
	webhooks, err := store.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, w := range webhooks {
		isUnencrypted := IsUnencrypted(w.URL)
		w.URL = parley.ShortAddress(w.URL) // findings are for everybody who may read
		about := Finding{Check: "webhook", Channel: w.Channel, Webhook: w.ID, URL: w.URL}
		f, err := checkWebhook(ctx, store, w, about, now)
		if err != nil {
			return nil, err
		}
		if isUnencrypted {
			open := about
			open.Level, open.Code, open.Remedy = Warning, "webhook_unencrypted", "use https"
			open.Found = w.URL + " is not encrypted: anyone on the network path can read it"
			if f.Level == Fine {
				f = open
			} else {
				findings = append(findings, open)
			}
		}
		findings = append(findings, f)
		if now.Sub(w.LostAt) < reportGapsFor {
			gap := about
			gap.Level, gap.Code, gap.Since = Warning, "webhook_gap", w.LostAt
			gap.Found = fmt.Sprintf("%s missed events: %d were removed from the log before it got them, the last at %s", w.URL, w.Lost,
				When(w.LostAt))
			gap.Remedy = "get what was missed through the API; keep events longer with --event-retention and --event-cap"
			findings = append(findings, gap)
		}
	}
	return findings, nil
}

// checkWebhook checks one webhook. Who turns one off by hand knows.
func checkWebhook(ctx context.Context, store WebhookReader, w parley.Webhook, f Finding, now time.Time) (Finding, error) {
	f.Level, f.Found = Fine, w.URL
	switch {
	case !w.IsEnabled():
		f.Found = fmt.Sprintf("%s off since %s: %s", w.URL, When(w.DisabledAt), w.Reason)
		f.Remedy, f.Since = "parley webhook enable "+string(w.ID), w.DisabledAt
		if w.Failures > 0 {
			f.Level, f.Code, f.Sentence = Problem, "webhook_off", fmt.Sprintf("The webhook %s is off. %s", w.URL, w.Reason)
		}
	case w.Failures >= failingFailures && now.Sub(w.FailingSince) >= failingTime:
		lasts := now.Sub(w.FailingSince)
		f.Level, f.Code, f.Since, f.Remedy = Warning, "webhook_failing", w.FailingSince, "parley deliveries list --webhook "+string(w.ID)
		if lasts >= longFailing {
			f.Level = Problem
		}
		f.Found = fmt.Sprintf("%s: %s in %s", w.URL, Count(w.Failures, "failure"), Lasted(lasts))
		f.Sentence = fmt.Sprintf("Every delivery to %s has failed for %s: %s.", w.URL, Lasted(lasts), Count(w.Failures, "attempt"))
		last, err := store.OldestDelivery(ctx, w.ID, false)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return Finding{}, err
		}
		if last.Problem != "" {
			f.Found += ", last: " + last.Problem
		}
	}
	return f, nil
}
