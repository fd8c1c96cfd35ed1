package api

import (
	"context"
	"strconv"
	"time"

	"parley"
)

// healthData is how a channel is doing.
type healthData struct {
	Name            string               `json:"name"`
	Code            parley.ChannelCode   `json:"code"`
	Network         parley.NetworkName   `json:"network"`
	Status          parley.ChannelStatus `json:"status"`
	Reason          string               `json:"reason"`
	Since           string               `json:"since"`
	UpTime          string               `json:"up_time"`
	StartAt         string               `json:"start_at"`
	Timestamp       string               `json:"timestamp"`
	Phone           phoneData            `json:"phone"`
	Waiting         int                  `json:"waiting"`
	RestrictedUntil *string              `json:"restricted_until,omitempty"`
}

type phoneData struct {
	Name   string `json:"name"`
	Number int64  `json:"number"` // 0 before it is known
}

func (s *server) health(_ context.Context, r *request) (envelope[healthData], error) {
	c := r.channel
	now := time.Now()
	number, _ := strconv.ParseInt(c.Number, 10, 64) // not known yet: 0
	data := healthData{
		Name: c.Name, Code: c.Code, Network: c.Network,
		Status: c.State.Status, Reason: c.State.Reason, Since: parley.Stamp(c.State.Since),
		UpTime: "0s", Timestamp: parley.Stamp(s.Gateway.Now(c.Code)),
		Phone:           phoneData{Name: c.PhoneName, Number: number},
		Waiting:         s.Gateway.QueueDepth(c.Code),
		RestrictedUntil: stampOrNil(s.Gateway.RestrictedUntil(c.Code)),
	}
	if !c.State.WorkingAt.IsZero() {
		data.StartAt = parley.Stamp(c.State.WorkingAt)
		if c.State.Status == parley.Working {
			data.UpTime = max(0, now.Sub(c.State.WorkingAt)).Truncate(time.Second).String()
		}
	}
	return ok("OK", data), nil
}
