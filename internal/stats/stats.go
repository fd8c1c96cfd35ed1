// Package stats makes reports from the counters in the store.
//
// Invariants:
//
//   - It has no state: two reports at the same time from the same counters are equal.
//   - A report covers the last day; its minutes cover the last hour. A chart covers up to 30 days, in at most 180 points.
package stats

import (
	"context"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// Day is how far back a report goes.
const Day = 24 * time.Hour

const hour = 60 // minutes

// Counts are the numbers of messages that reached a status or were received.
type Counts struct {
	Sent      int64 `json:"sent"`
	Delivered int64 `json:"delivered"`
	Read      int64 `json:"read"`
	Failed    int64 `json:"failed"`
	Received  int64 `json:"received"`
}

// Codes are the numbers of one-time codes and login links. Delivered counts codes only.
type Codes struct {
	Requested int64 `json:"requested"`
	Links     int64 `json:"-"`
	Delivered int64 `json:"delivered"`
	Approved  int64 `json:"approved"`
}

// Times are quantiles of a duration, in milliseconds.
type Times struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
}

// Webhooks are the numbers of deliveries by state. Waiting ones may be older than a day. Attempts are those of webhooks
// that are enabled now.
type Webhooks struct {
	Delivered      int64 `json:"delivered"`
	Failed         int64 `json:"failed"`
	Waiting        int64 `json:"waiting"`
	Attempts       int64 `json:"attempts"`
	FailedAttempts int64 `json:"failed_attempts"`
}

// Minute has the counts of one minute.
type Minute struct {
	At time.Time
	Counts
}

// Report has the numbers of the last day.
type Report struct {
	From   time.Time
	Counts Counts
	Codes  Codes
	// ToSent is from the acceptance of a message to the network's confirmation, ToDelivered to its arrival on the phone.
	// Nil: nothing was counted.
	ToSent, ToDelivered *Times
	Webhooks            Webhooks
	Minutes             []Minute // the last hour, oldest first
}

// Store is the part of the store that a report needs.
type Store interface {
	Counters(ctx context.Context, since time.Time) (map[store.Counter]int64, error)
	Steps
	CountWaiting(ctx context.Context, webhook parley.WebhookID) (int64, error)
	WebhookCounters(ctx context.Context, since time.Time) (map[parley.WebhookID]map[store.Counter]int64, error)
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
}

// Read makes a report.
func Read(ctx context.Context, db Store, now time.Time) (Report, error) {
	r := Report{From: now.Add(-Day)}
	day, err := db.Counters(ctx, r.From)
	if err != nil {
		return r, err
	}
	r.Counts = toCounts(day)
	r.Codes = toCodes(day)
	r.ToSent, r.ToDelivered = toTimes(day, store.CountToSent), toTimes(day, store.CountToDelivered)
	if r.Webhooks, err = readWebhooks(ctx, db, day, r.From); err != nil {
		return r, err
	}
	first := now.Truncate(time.Minute).Add((1 - hour) * time.Minute)
	minutes, err := db.CounterSteps(ctx, store.CounterQuery{From: first, Step: time.Minute})
	for n := range int64(hour) {
		r.Minutes = append(r.Minutes, Minute{first.Add(time.Duration(n) * time.Minute).UTC(), toCounts(minutes[n])})
	}
	return r, err
}

func readWebhooks(ctx context.Context, db Store, day map[store.Counter]int64, since time.Time) (w Webhooks, err error) {
	w.Delivered, w.Failed = day[store.CountWebhookDone], day[store.CountWebhookFailed]
	if w.Waiting, err = db.CountWaiting(ctx, ""); err != nil {
		return w, err
	}
	webhooks, err := db.Webhooks(ctx)
	if err != nil {
		return w, err
	}
	counts, err := db.WebhookCounters(ctx, since)
	for _, one := range webhooks {
		if n := counts[one.ID]; one.IsEnabled() {
			w.Attempts += n[store.CountWebhookDone] + n[store.CountAttemptFailed]
			w.FailedAttempts += n[store.CountAttemptFailed]
		}
	}
	return w, err
}

func toCounts(n map[store.Counter]int64) Counts {
	return Counts{n[store.CountSent], n[store.CountDelivered], n[store.CountRead], n[store.CountFailed], n[store.CountReceived]}
}

func toCodes(n map[store.Counter]int64) Codes {
	return Codes{Requested: n[store.CountCodes] + n[store.CountLinks], Links: n[store.CountLinks],
		Delivered: n[store.CountCodesDelivered], Approved: n[store.CountApproved]}
}

// toTimes reads the buckets of a time; nil: nothing was counted.
func toTimes(n map[store.Counter]int64, what store.Counter) *Times {
	counts := make([]int64, len(store.TimeBounds)+1)
	var total int64
	for i, bound := range store.TimeBounds {
		counts[i] = n[what+"_"+store.Counter(strconv.FormatInt(bound.Milliseconds(), 10))]
		total += counts[i]
	}
	counts[len(store.TimeBounds)] = n[what+"_more"]
	if total += counts[len(store.TimeBounds)]; total == 0 {
		return nil
	}
	return &Times{P50: quantile(counts, total, 0.5), P95: quantile(counts, total, 0.95)}
}

// quantile returns the time below which a fraction of all is, in milliseconds. It interpolates within a bucket. Beyond the
// last bound it returns that bound.
func quantile(counts []int64, total int64, part float64) int64 {
	rank := part * float64(total)
	var low, below float64
	for i, bound := range store.TimeBounds {
		high, upTo := float64(bound.Milliseconds()), below+float64(counts[i])
		if upTo >= rank && upTo > below {
			return int64(low + (high-low)*(rank-below)/(upTo-below))
		}
		low, below = high, upTo
	}
	return int64(low)
}

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
