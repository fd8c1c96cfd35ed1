package stats

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// steps is a store with the same counters in some steps.
type steps map[int64]map[store.Counter]int64

func (s steps) CounterSteps(context.Context, store.CounterQuery) (map[int64]map[store.Counter]int64, error) {
	return s, nil
}

// TestChart holds that a chart has a point for every step, the current one last, and its sums.
func TestChart(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 34, 56, 0, time.UTC)
	counters := map[store.Counter]int64{store.CountSent: 2, store.CountFailed: 1, store.CountFailedFor(parley.Blocked): 1,
		store.CountToSent.Bucket(40 * time.Millisecond): 2, store.CountCodes: 3, store.CountLinks: 1,
		store.CountWebhookDone: 4, store.CountAttemptFailed: 1, store.CountWebhookTook.Bucket(time.Second): 5}
	for _, span := range Spans {
		last := int64(span.Length/span.Step) - 1
		chart, err := ReadChart(t.Context(), steps{0: counters, last: counters}, span, "", "", now)
		if err != nil || int64(len(chart.Points)) != last+1 || len(chart.Points) > 180 {
			t.Fatalf("%s: %d points, %v", span.Name, len(chart.Points), err)
		}
		newest := chart.Points[last]
		if newest.At.After(now) || now.Sub(newest.At) >= span.Step || !chart.Points[0].At.Equal(chart.From) {
			t.Errorf("%s: from %s to %s", span.Name, chart.From, newest.At)
		}
		if newest.Sent != 2 || newest.FailedBy[parley.Blocked] != 1 || newest.Codes.Requested != 4 || newest.ToSent == nil ||
			newest.ToDelivered != nil || newest.Webhooks.Delivered != 4 || newest.Webhooks.Failed != 1 || newest.Webhooks.Took == nil {
			t.Errorf("%s: %+v", span.Name, newest)
		}
		if chart.Total.Sent != 4 || chart.Total.FailedBy[parley.Blocked] != 2 || len(chart.Points[1].FailedBy) != 0 {
			t.Errorf("%s: %+v", span.Name, chart.Total)
		}
	}
}
