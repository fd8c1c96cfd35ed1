package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley"
	"parley/internal/stats"
)

type chartData struct {
	Span        string       `json:"span"`
	StepSeconds int          `json:"step_seconds"`
	From        string       `json:"from"`
	Points      []chartPoint `json:"points"`
	Total       chartSums    `json:"total"`
}

type chartPoint struct {
	At        string `json:"at"`
	chartSums `json:",inline"`
}

type chartSums struct {
	stats.Counts `json:",inline"`
	FailedBy     map[parley.FailureCode]int64 `json:"failed_by"`
	ToSent       *stats.Times                 `json:"to_sent_ms"`
	ToDelivered  *stats.Times                 `json:"to_delivered_ms"`
	OTP          stats.Codes                  `json:"otp"`
	Webhooks     stats.Attempts               `json:"webhooks"`
}

func toSums(s stats.Sums) chartSums {
	return chartSums{s.Counts, s.FailedBy, s.ToSent, s.ToDelivered, s.Codes, s.Webhooks}
}

// readStats reads a chart. Every node has the counters of all channels, so it is never forwarded.
func (s *server) readStats(ctx context.Context, r *request) (any, error) {
	span := stats.Spans[1]
	if r.Has("span") {
		name := r.Choice("span", true, mapped(stats.Spans, func(s stats.Span) string { return s.Name })...)
		if i := slices.IndexFunc(stats.Spans, func(s stats.Span) bool { return s.Name == name }); i >= 0 {
			span = stats.Spans[i]
		}
	}
	channel := parley.ChannelCode(r.OptionalText("channel", 1, 32))
	webhook := parley.WebhookID(r.OptionalText("webhook", 1, 100))
	if err := cmp.Or(s.channelField(ctx, r, channel), r.Err()); err != nil {
		return nil, err
	}
	chart, err := stats.ReadChart(ctx, s.config.Store, span, channel, webhook, time.Now())
	points := mapped(chart.Points, func(p stats.Point) chartPoint { return chartPoint{parley.Stamp(p.At), toSums(p.Sums)} })
	return ok("OK", chartData{span.Name, int(span.Step.Seconds()), parley.Stamp(chart.From), points, toSums(chart.Total)}), err
}
