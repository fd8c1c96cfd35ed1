package api

import (
	"context"
	"time"

	"parley"
	"parley/internal/stats"
)

// overviewData is how the whole gateway is.
type overviewData struct {
	Needs       []need                       `json:"needs"`
	Channels    map[parley.ChannelStatus]int `json:"channels"`
	Last24h     counts                       `json:"last24h"`
	ToSent      *times                       `json:"to_sent_ms"`
	ToSentFrom  string                       `json:"to_sent_from"`
	ToDelivered *times                       `json:"to_delivered_ms"`
	Waiting     int                          `json:"waiting"`
	Webhooks    webhookCounts                `json:"webhooks"`
	OTP         otpCounts                    `json:"otp"`
	PerMinute   []minuteCounts               `json:"per_minute"`
}

type counts struct {
	Sent      int64 `json:"sent"`
	Delivered int64 `json:"delivered"`
	Read      int64 `json:"read"`
	Failed    int64 `json:"failed"`
	Received  int64 `json:"received"`
}

type minuteCounts struct {
	At     string `json:"at"`
	counts `json:",inline"`
}

type times struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
}

type webhookCounts struct {
	Delivered int64 `json:"delivered"`
	Failed    int64 `json:"failed"`
	Waiting   int64 `json:"waiting"`
}

type otpCounts struct {
	Requested int64 `json:"requested"`
	Delivered int64 `json:"delivered"`
	Approved  int64 `json:"approved"`
}

func timesOf(t *stats.Times) *times {
	if t == nil {
		return nil
	}
	return &times{t.P50, t.P95}
}

// readOverview reports how the gateway is. It reads counters, so it costs the same with a million messages.
func (s *server) readOverview(ctx context.Context, _ *request) (envelope[overviewData], error) {
	now := time.Now()
	report, err := stats.Read(ctx, s.Store, now)
	if err != nil {
		return envelope[overviewData]{}, err
	}
	data := overviewData{
		Channels: map[parley.ChannelStatus]int{}, Last24h: counts(report.Counts),
		ToSent: timesOf(report.ToSent), ToSentFrom: parley.Stamp(report.From), ToDelivered: timesOf(report.ToDelivered),
		Webhooks: webhookCounts(report.Webhooks), OTP: otpCounts{report.Codes.Requested, report.Codes.Delivered, report.Codes.Approved},
	}
	for _, m := range report.Minutes {
		data.PerMinute = append(data.PerMinute, minuteCounts{parley.Stamp(m.At), counts(m.Counts)})
	}
	channels := s.Gateway.Channels()
	for _, status := range parley.ChannelStatuses {
		data.Channels[status] = 0
	}
	for _, c := range channels {
		data.Channels[c.State.Status]++
		data.Waiting += s.Gateway.QueueDepth(c.Code)
	}
	data.Needs, err = s.needs(ctx, channels, report, now)
	return ok("OK", data), err
}
