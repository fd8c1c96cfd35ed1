package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"parley"
)

type channelRow struct {
	Code            string               `json:"code"`
	Network         parley.NetworkName   `json:"network"`
	Number          string               `json:"number"`
	Enabled         bool                 `json:"enabled"`
	Status          parley.ChannelStatus `json:"status"`
	Since           *time.Time           `json:"since"`
	WorkingAt       *time.Time           `json:"working_at"`
	Reason          string               `json:"reason"`
	Waiting         int                  `json:"waiting"`
	RestrictedUntil *time.Time           `json:"restricted_until"`
	Evidence        *evidence            `json:"evidence"`
}

type evidence struct {
	Connected *time.Time `json:"connected_at"`
	Heard     *time.Time `json:"heard_at"`
	Confirmed *time.Time `json:"confirmed_at"`
	Received  *time.Time `json:"received_at"`
}

func (s Source) writeChannels(_ context.Context, b *strings.Builder) error {
	rows := []channelRow{}
	for _, c := range s.Channels() {
		row := channelRow{
			Code: scrub(string(c.Code)), Network: c.Network, Number: maskNumber(c.Number), Enabled: c.Enabled,
			Status: c.State.Status, Since: orNil(c.State.Since), WorkingAt: orNil(c.State.WorkingAt), Reason: scrub(c.State.Reason),
			Waiting: c.Waiting,
		}
		if e := c.Evidence; e != nil {
			row.Evidence = &evidence{orNil(e.Connected), orNil(e.Heard), orNil(e.Confirmed), orNil(e.Received)}
			row.RestrictedUntil = orNil(e.RestrictedUntil)
		}
		rows = append(rows, row)
	}
	return writeJSON(b, rows)
}

type change struct {
	At      time.Time            `json:"at"`
	Channel string               `json:"channel"`
	Status  parley.ChannelStatus `json:"status"`
	Reason  string               `json:"reason"`
}

const (
	changesOf  = 20  // the newest of one channel
	allChanges = 500 // of all channels
)

func (s Source) writeChanges(ctx context.Context, b *strings.Builder) error {
	changes := []change{}
	var errs []error
	for _, c := range s.Channels() {
		states, err := s.Store.ChannelStates(ctx, c.Code, time.Time{}, changesOf)
		for _, one := range states {
			changes = append(changes, change{one.Since.UTC(), scrub(string(c.Code)), one.Status, scrub(one.Reason)})
		}
		errs = append(errs, err)
	}
	slices.SortStableFunc(changes, func(x, y change) int { return y.At.Compare(x.At) })
	return errors.Join(writeJSON(b, changes[:min(len(changes), allChanges)]), errors.Join(errs...))
}

func writeJSON(b *strings.Builder, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
