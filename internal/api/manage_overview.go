package api

import (
	"context"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/network"
	"parley/internal/stats"
)

type overviewData struct {
	// Problems and Warnings count what needs attention, as the doctor does. Needs has the worst of them.
	Problems    int                          `json:"problems"`
	Warnings    int                          `json:"warnings"`
	Needs       []need                       `json:"needs"`
	Channels    map[parley.ChannelStatus]int `json:"channels"`
	Last24h     stats.Counts                 `json:"last24h"`
	ToSent      *stats.Times                 `json:"to_sent_ms"`
	ToSentFrom  string                       `json:"to_sent_from"`
	ToDelivered *stats.Times                 `json:"to_delivered_ms"`
	Waiting     int                          `json:"waiting"`
	Queue       queueData                    `json:"queue"`
	Webhooks    stats.Webhooks               `json:"webhooks"`
	OTP         stats.Codes                  `json:"otp"`
	PerMinute   []minuteCounts               `json:"per_minute"`
}

type minuteCounts struct {
	At           string `json:"at"`
	stats.Counts `json:",inline"`
}

// readOverview reads counters, so it costs the same with a million messages.
func (s *server) readOverview(ctx context.Context, r *request) (any, error) {
	channel := parley.ChannelCode(r.OptionalText("channel", 1, 32))
	if err := r.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	report, err := stats.Read(ctx, s.config.Store, now)
	if err != nil {
		return nil, err
	}
	data := overviewData{
		Channels: map[parley.ChannelStatus]int{}, Last24h: report.Counts, ToSent: report.ToSent, ToSentFrom: parley.Stamp(report.From),
		ToDelivered: report.ToDelivered, Webhooks: report.Webhooks, OTP: report.Codes,
		PerMinute: mapped(report.Minutes, func(m stats.Minute) minuteCounts { return minuteCounts{parley.Stamp(m.At), m.Counts} }),
	}
	list := s.config.Gateway.List()
	for _, status := range parley.ChannelStatuses {
		data.Channels[status] = list.Statuses[status]
	}
	found := doctor.Attention(s.config.Program.Attention(ctx))
	data.Problems, data.Warnings = doctor.CountLevels(found)
	data.Needs = toNeeds(found, channel)
	data.Queue, err = s.queues(ctx)
	data.Waiting = data.Queue.Leaving + data.Queue.Stuck
	return ok("OK", data), err
}

const (
	maxNeeds = 100 // bounds the response
	maxAlike = 10  // of one code: hundreds of channels with one problem must not hide another problem
)

// toNeeds lists the worst findings: all, or those of a channel and of no channel.
func toNeeds(found []doctor.Finding, channel parley.ChannelCode) []need {
	alike := map[string]int{}
	list := []need{}
	for _, f := range found {
		if channel != "" && f.Channel != "" && f.Channel != channel {
			continue
		}
		alike[f.Code]++
		if f.Code == "" || alike[f.Code] <= maxAlike {
			list = append(list, toNeed(f))
		}
	}
	list = list[:min(len(list), maxNeeds)]
	for i, n := range list {
		list[i].Alike = 1
		if n.Code != "" {
			list[i].Alike = alike[n.Code]
		}
	}
	return list
}

// need is a finding of the doctor that needs attention.
type need struct {
	Kind     string       `json:"kind"` // the first word of the check
	Code     string       `json:"code"`
	Severity doctor.Level `json:"severity"`
	Channel  *string      `json:"channel"`
	Webhook  *string      `json:"webhook"`
	URL      *string      `json:"url"` // of the webhook
	Sentence string       `json:"sentence"`
	Remedy   string       `json:"remedy"`
	Since    *string      `json:"since"`
	Until    *string      `json:"until"`
	Alike    int          `json:"alike"` // findings with this code, those that are not listed too
	Action   needAction   `json:"action"`
}

type needAction struct {
	Name  string `json:"name"` // of the label
	Label string `json:"label"`
	HREF  string `json:"href"`
}

func toNeed(f doctor.Finding) need {
	kind, _, _ := strings.Cut(f.Check, " ")
	return need{Kind: kind, Code: f.Code, Severity: f.Level, Channel: textOrNil(f.Channel), Webhook: textOrNil(f.Webhook),
		URL: textOrNil(f.URL), Sentence: f.Text(), Remedy: f.Remedy,
		Since: stampOrNil(f.Since), Until: stampOrNil(f.Until), Action: actionFor(kind, f)}
}

// actionFor is the page of the console where something can be done about a finding.
func actionFor(kind string, f doctor.Finding) needAction {
	channel := "/console/channels/" + url.PathEscape(string(f.Channel))
	switch {
	case f.Code == "channel_logged_out" || f.Code == "channel_not_paired":
		return needAction{"pair", "Pair", channel + "/pair"}
	case kind == "channel":
		return needAction{"channel", "See channel", channel}
	case kind == "webhook":
		return needAction{"webhook", "See webhook", "/console/webhooks?webhook=" + url.QueryEscape(string(f.Webhook))}
	case kind == "codes":
		return needAction{"codes", "See codes", "/console/otp"}
	case kind == "clock" || kind == "network":
		return needAction{"channels", "See channels", "/console/channels"}
	case kind == "nodes":
		return needAction{"nodes", "See nodes", "/console/nodes"}
	}
	return needAction{"checks", "Run checks", "/console/?checks=1"}
}

// queueData says when what waits will have left.
type queueData struct {
	// Leaving wait on channels that send; they leave within ETASeconds, at the pace of their channels. Null: unknown.
	Leaving    int  `json:"leaving"`
	ETASeconds *int `json:"eta_seconds"`
	// Stuck wait on channels that cannot send now: logged out, not paired, stopped or failed.
	Stuck    int            `json:"stuck"`
	Channels []channelQueue `json:"channels"` // the longest first
}

type channelQueue struct {
	Channel    parley.ChannelCode   `json:"channel"`
	Status     parley.ChannelStatus `json:"status"`
	Waiting    int                  `json:"waiting"`
	CanLeave   bool                 `json:"can_leave"`
	ETASeconds *int                 `json:"eta_seconds"`
}

// maxQueues is how many channels with the longest queues are listed.
const maxQueues = 10

// queues estimates when the messages that wait will have left.
func (s *server) queues(ctx context.Context) (data queueData, err error) {
	waiting, err := s.config.Store.PendingByChannel(ctx)
	if err != nil {
		return data, err
	}
	data.Channels = []channelQueue{}
	known := true
	for _, code := range slices.Sorted(maps.Keys(waiting)) {
		n := s.config.Gateway.QueueDepth(code) // some were sent, and that is not stored yet
		if s.isNode() {                        // queues of other nodes are only in the database
			n = max(n, waiting[code])
		}
		c, exists := s.config.Gateway.Channel(code)
		if n == 0 || !exists {
			continue
		}
		q := channelQueue{Channel: c.Code, Status: c.State.Status, Waiting: n, CanLeave: c.Enabled && c.State.Status.CanSend()}
		if !q.CanLeave {
			data.Stuck += n
		} else {
			data.Leaving += n
			q.ETASeconds = leavesIn(c, s.config.Gateway.Network(c.Network), n)
			known = known && q.ETASeconds != nil
			if q.ETASeconds != nil && (data.ETASeconds == nil || *q.ETASeconds > *data.ETASeconds) {
				data.ETASeconds = q.ETASeconds
			}
		}
		data.Channels = append(data.Channels, q)
	}
	if !known {
		data.ETASeconds = nil
	}
	slices.SortStableFunc(data.Channels, func(a, b channelQueue) int { return b.Waiting - a.Waiting })
	data.Channels = data.Channels[:min(len(data.Channels), maxQueues)]
	return data, nil
}

// leavesIn is how many seconds a channel needs for n messages at its pace. Without a pace it sends as fast as the network
// takes them. Nil: it does not send at the moment.
func leavesIn(c parley.Channel, network network.Info, n int) *int {
	if c.State.Status != parley.ChannelWorking {
		return nil
	}
	least, most := network.Pace(c)
	seconds := int(math.Ceil((float64(n) * (least + most).Seconds()) / 2))
	return &seconds
}
