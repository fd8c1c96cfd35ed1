package api

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/stats"
)

type overviewData struct {
	Needs       []*need                      `json:"needs"`
	Channels    map[parley.ChannelStatus]int `json:"channels"`
	Last24h     stats.Counts                 `json:"last24h"`
	ToSent      *stats.Times                 `json:"to_sent_ms"`
	ToSentFrom  string                       `json:"to_sent_from"`
	ToDelivered *stats.Times                 `json:"to_delivered_ms"`
	Waiting     int                          `json:"waiting"`
	Webhooks    stats.Webhooks               `json:"webhooks"`
	OTP         stats.Codes                  `json:"otp"`
	PerMinute   []minuteCounts               `json:"per_minute"`
}

type minuteCounts struct {
	At           string `json:"at"`
	stats.Counts `json:",inline"`
}

// readOverview reads counters, so it costs the same with a million messages.
func (s *server) readOverview(ctx context.Context, _ *request) (any, error) {
	now := time.Now()
	report, err := stats.Read(ctx, s.Store, now)
	if err != nil {
		return nil, err
	}
	data := overviewData{
		Channels: map[parley.ChannelStatus]int{}, Last24h: report.Counts, ToSent: report.ToSent, ToSentFrom: parley.Stamp(report.From),
		ToDelivered: report.ToDelivered, Webhooks: report.Webhooks, OTP: report.Codes,
		PerMinute: mapped(report.Minutes, func(m stats.Minute) minuteCounts { return minuteCounts{parley.Stamp(m.At), m.Counts} }),
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

type need struct {
	Kind     string     `json:"kind"`     // channel, webhook, disk, clock or otp
	Severity string     `json:"severity"` // problem: broken; warning: may break soon
	Channel  *string    `json:"channel"`
	Webhook  *string    `json:"webhook"`
	Sentence string     `json:"sentence"`
	Since    string     `json:"since"`
	Action   needAction `json:"action"`
}

type needAction struct {
	Name  string `json:"name"` // of the label
	Label string `json:"label"`
	HREF  string `json:"href"`
}

var seeCodes = needAction{"codes", "See codes", "/console/otp"}

const (
	isProblem = "problem"
	isWarning = "warning"

	// recovering is how long a reconnecting channel is not reported.
	recovering = time.Minute
	// fullDisk is the free space below which writes may fail.
	fullDisk = 100 << 20
	// enoughCodes is from how many codes on the delivery rate counts.
	enoughCodes = 10
	// maxNeeds bounds the response.
	maxNeeds = 100
)

// needs lists what needs attention, newest first.
func (s *server) needs(ctx context.Context, channels []parley.Channel, report stats.Report, now time.Time) ([]*need, error) {
	webhooks, err := s.Store.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	attacks, err := doctor.Attacks(ctx, s.Store, channels, now)
	if err != nil {
		return nil, err
	}
	found := []*need{s.diskNeed(now), otpNeed(report), s.clockNeed(now)}
	for _, c := range channels {
		found = append(found, channelNeed(c, now))
	}
	for _, w := range webhooks {
		found = append(found, webhookNeed(w, now))
	}
	for _, a := range attacks {
		found = append(found, &need{Kind: "otp", Severity: isWarning, Channel: textOrNil(a.Channel), Since: parley.Stamp(a.At),
			Action: seeCodes, Sentence: a.Finding.Found})
	}
	found = slices.DeleteFunc(found, func(n *need) bool { return n == nil })
	slices.SortStableFunc(found, func(a, b *need) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Sentence, b.Sentence))
	})
	return found[:min(len(found), maxNeeds)], nil
}

// channelNeed reports an enabled channel that does not work.
func channelNeed(c parley.Channel, now time.Time) *need {
	if !c.Enabled || c.State.Status == parley.ChannelWorking {
		return nil
	}
	page := "/console/channels/" + url.PathEscape(string(c.Code))
	pair := needAction{"pair", "Pair", page + "/pair"}
	n := &need{Kind: "channel", Severity: isProblem, Channel: textOrNil(c.Code), Since: parley.Stamp(c.State.Since),
		Action: needAction{"channel", "See channel", page}}
	switch c.State.Status {
	case parley.ChannelLoggedOut:
		n.Action = pair
		n.Sentence = fmt.Sprintf("Channel %s is logged out and sends nothing. Pair it again.", c.Code)
	case parley.ChannelScanQRCode:
		n.Action, n.Severity = pair, isWarning
		n.Sentence = fmt.Sprintf("Channel %s is not paired. Pair its phone.", c.Code)
	case parley.ChannelFailed:
		n.Sentence = fmt.Sprintf("Channel %s failed.", c.Code)
	case parley.ChannelStopped: // although it is enabled
		n.Sentence = fmt.Sprintf("Channel %s is stopped.", c.Code)
	default: // it reconnects on its own
		lasts := now.Sub(c.State.Since)
		if lasts < recovering {
			return nil
		}
		n.Severity = isWarning
		n.Sentence = fmt.Sprintf("Channel %s has been %s for %s.", c.Code, c.State.Status, doctor.Lasted(lasts))
	}
	if c.State.Reason != "" {
		n.Sentence += " " + c.State.Reason
	}
	return n
}

func webhookNeed(w parley.Webhook, now time.Time) *need {
	n := &need{Kind: "webhook", Webhook: textOrNil(w.ID), Channel: textOrNil(w.Channel)}
	switch {
	case !w.IsEnabled() && w.Failures > 0: // not one that was switched off by hand
		n.Severity, n.Since = isProblem, parley.Stamp(w.DisabledAt)
		n.Sentence = fmt.Sprintf("The webhook %s is off. %s", w.URL, w.Reason)
		n.Action = needAction{"webhook", "See webhook", "/console/webhooks?webhook=" + url.QueryEscape(string(w.ID))}
	case w.IsEnabled() && w.Failures > 0:
		lasts := now.Sub(w.FailingSince)
		n.Severity, n.Since = isWarning, parley.Stamp(w.FailingSince)
		n.Sentence = fmt.Sprintf("Every delivery to %s has failed for %s: %s.", w.URL, doctor.Lasted(lasts), doctor.Count(w.Failures, "attempt"))
		n.Action = needAction{"deliveries", "See deliveries", "/console/webhooks?state=retrying&webhook=" + url.QueryEscape(string(w.ID))}
	default:
		return nil
	}
	return n
}

func (s *server) diskNeed(now time.Time) *need {
	if s.Program.DataDir == "" {
		return nil
	}
	free := doctor.FreeDisk(s.Program.DataDir)
	if free >= doctor.LittleDisk {
		s.littleDisk.Store(0)
		return nil
	}
	s.littleDisk.CompareAndSwap(0, now.UnixMilli())
	n := &need{Kind: "disk", Severity: isWarning, Since: parley.Stamp(time.UnixMilli(s.littleDisk.Load())),
		Action:   needAction{"settings", "Settings", "/console/settings"},
		Sentence: fmt.Sprintf("The disk has %s left. When it is full, no messages are accepted. Free some space.", doctor.Size(free))}
	if free < fullDisk {
		n.Severity = isProblem
	}
	return n
}

func otpNeed(r stats.Report) *need {
	codes := r.Codes.Requested - r.Codes.Links
	if codes < enoughCodes || 2*r.Codes.Delivered >= codes {
		return nil
	}
	return &need{Kind: "otp", Severity: isWarning, Since: parley.Stamp(r.From), Action: seeCodes,
		Sentence: fmt.Sprintf("Only %d of %d one-time codes in the last 24 hours reached a phone.", r.Codes.Delivered, codes)}
}

func (s *server) clockNeed(now time.Time) *need {
	ahead, known := s.Gateway.ClockAhead()
	found := doctor.Clock(ahead)
	if !known || found.Level == doctor.Fine {
		s.clockOff.Store(0)
		return nil
	}
	s.clockOff.CompareAndSwap(0, now.UnixMilli())
	n := &need{Kind: "clock", Severity: isWarning, Since: parley.Stamp(time.UnixMilli(s.clockOff.Load())),
		Action:   needAction{"channels", "See channels", "/console/channels"},
		Sentence: found.Found + " Synchronise it with NTP."}
	if found.Level == doctor.Problem {
		n.Severity = isProblem
	}
	return n
}
