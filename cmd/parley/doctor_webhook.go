package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/app"
)

// checkWebhooks looks at whether events reach those who asked for them.
func checkWebhooks(ctx context.Context, data *app.Data) ([]finding, error) {
	webhooks, err := data.Store.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, w := range webhooks {
		f, err := checkWebhook(ctx, data.Store, w)
		if err != nil {
			return nil, err
		}
		if unencrypted(w.URL) {
			open := finding{"webhook", warning, w.URL + "  is not encrypted: whoever is on the way can read what is sent", "use https"}
			if f.Level == fine {
				f = open
			} else {
				findings = append(findings, open)
			}
		}
		findings = append(findings, f)
	}
	return findings, nil
}

func checkWebhook(ctx context.Context, store parley.Reader, w parley.Webhook) (finding, error) {
	switch {
	case !w.IsEnabled():
		return finding{"webhook", warning, fmt.Sprintf("%s  off since %s: %s", w.URL, when(w.DisabledAt), w.Reason), "parley webhook enable " + string(w.ID)}, nil
	case w.Failures > 0:
		found := fmt.Sprintf("%s  %s in %s", w.URL, count(w.Failures, "failure"), lasted(time.Since(w.FailingSince)))
		last, err := store.OldestDelivery(ctx, w.ID, false)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return finding{}, err
		}
		if last.Problem != "" {
			found += ", last: " + last.Problem
		}
		return finding{"webhook", warning, found, "parley deliveries list --webhook " + string(w.ID)}, nil
	}
	return finding{"webhook", fine, w.URL, ""}, nil
}

// lasted writes a length of time for people, in its largest unit: 40 s, 12 min, 1 h, 3 d.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}
