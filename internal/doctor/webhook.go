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

// Webhooks checks whether events reach their webhooks.
func Webhooks(ctx context.Context, store WebhookReader) ([]Finding, error) {
	webhooks, err := store.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, w := range webhooks {
		f, err := checkWebhook(ctx, store, w)
		if err != nil {
			return nil, err
		}
		if IsUnencrypted(w.URL) {
			open := Finding{"webhook", Warning, w.URL + " is not encrypted: anyone on the network path can read it", "use https"}
			if f.Level == Fine {
				f = open
			} else {
				findings = append(findings, open)
			}
		}
		findings = append(findings, f)
		if time.Since(w.LostAt) < reportGapsFor {
			findings = append(findings, Finding{"webhook", Warning,
				fmt.Sprintf("%s missed events: %d were removed from the log before it got them, the last at %s", w.URL, w.Lost, When(w.LostAt)),
				"get what was missed through the API; keep events longer with --event-retention and --event-cap"})
		}
	}
	return findings, nil
}

func checkWebhook(ctx context.Context, store WebhookReader, w parley.Webhook) (Finding, error) {
	switch {
	case !w.IsEnabled():
		return Finding{"webhook", Warning, fmt.Sprintf("%s off since %s: %s", w.URL, When(w.DisabledAt), w.Reason), "parley webhook enable " +
			string(w.ID)}, nil
	case w.Failures > 0:
		failing := time.Since(w.FailingSince)
		found := fmt.Sprintf("%s: %s in %s", w.URL, Count(w.Failures, "failure"), Lasted(failing))
		last, err := store.OldestDelivery(ctx, w.ID, false)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return Finding{}, err
		}
		if last.Problem != "" {
			found += ", last: " + last.Problem
		}
		return Finding{"webhook", Warning, found, "parley deliveries list --webhook " + string(w.ID)}, nil
	}
	return Finding{"webhook", Fine, w.URL, ""}, nil
}
