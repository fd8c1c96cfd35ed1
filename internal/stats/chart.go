package stats

import (
	"context"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// Span is how far back a chart goes, in steps that counters exist for. No chart has more than 180 points.
type Span struct {
	Name         string
	Length, Step time.Duration
}

// Spans are the spans of charts.
var Spans = []Span{
	{"1h", time.Hour, time.Minute},
	{"24h", Day, 10 * time.Minute},
	{"7d", 7 * Day, time.Hour},
	{"30d", 30 * Day, 4 * time.Hour},
}

// Attempts are attempts to deliver events to webhooks, and how long they took.
type Attempts struct {
	Delivered int64  `json:"delivered"`
	Failed    int64  `json:"failed_attempts"`
	Took      *Times `json:"took_ms"`
}

// Sums are the counters of some time.
type Sums struct {
	Counts
	FailedBy map[parley.FailureCode]int64
	// Times are nil where nothing was counted.
	ToSent, ToDelivered *Times
	Codes               Codes
	Webhooks            Attempts
}

// Point has the sums of one step.
type Point struct {
	At time.Time
	Sums
}

// Chart has the sums over a span, in steps, oldest first. The last step is not over yet.
type Chart struct {
	Span   Span
	From   time.Time
	Points []Point
	Total  Sums
}

// Steps is the part of the store that a chart needs.
type Steps interface {
	CounterSteps(ctx context.Context, q store.CounterQuery) (map[int64]map[store.Counter]int64, error)
}

// ReadChart reads a chart of a channel or of a webhook; empty: of all together.
func ReadChart(ctx context.Context, db Steps, span Span, channel parley.ChannelCode, webhook parley.WebhookID, now time.Time,
) (Chart, error) {
	from := now.Truncate(span.Step).Add(span.Step - span.Length)
	steps, err := db.CounterSteps(ctx, store.CounterQuery{Channel: channel, Webhook: webhook, From: from, Step: span.Step})
	if err != nil {
		return Chart{}, err
	}
	chart := Chart{Span: span, From: from.UTC()}
	total := map[store.Counter]int64{}
	for i := range int64(span.Length / span.Step) {
		chart.Points = append(chart.Points, Point{from.Add(time.Duration(i) * span.Step).UTC(), toSums(steps[i])})
		for what, n := range steps[i] {
			total[what] += n
		}
	}
	chart.Total = toSums(total)
	return chart, nil
}

func toSums(n map[store.Counter]int64) Sums {
	s := Sums{
		Counts: toCounts(n), FailedBy: map[parley.FailureCode]int64{},
		ToSent: toTimes(n, store.CountToSent), ToDelivered: toTimes(n, store.CountToDelivered),
		Codes: toCodes(n),
		Webhooks: Attempts{Delivered: n[store.CountWebhookDone], Failed: n[store.CountAttemptFailed],
			Took: toTimes(n, store.CountWebhookTook)},
	}
	for what, count := range n {
		if reason, ok := strings.CutPrefix(string(what), string(store.CountFailedFor(""))); ok {
			s.FailedBy[parley.FailureCode(reason)] = count
		}
	}
	return s
}
