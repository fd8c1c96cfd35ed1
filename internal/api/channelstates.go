package api

import (
	"context"
	"errors"
	"time"

	"parley"
)

// channelStateRow is what a channel's status was from a time on.
type channelStateRow struct {
	Status parley.ChannelStatus `json:"status"`
	Reason string               `json:"reason"`
	At     string               `json:"at"`
}

const (
	maxStateDays = 30
	maxStates    = 1000 // of one channel: more fit on no screen
)

// channelTimeline lists what a channel's status was in the last days, newest first. The oldest lasted
// into them.
func (s *server) channelTimeline(ctx context.Context, r *request) (envelope[[]channelStateRow], error) {
	days := r.Whole("days", 1, 1, maxStateDays)
	if err := r.Err(); err != nil {
		return envelope[[]channelStateRow]{}, err
	}
	c, err := s.channelNamed(ctx, r.code())
	if errors.Is(err, parley.ErrNotFound) {
		err = parley.Errorf(parley.NotFound, "There is no such channel.")
	}
	if err != nil {
		return envelope[[]channelStateRow]{}, err
	}
	states, err := s.Store.ChannelStates(ctx, c.Code, time.Now().AddDate(0, 0, -int(days)), maxStates)
	if len(states) == 0 { // it never changed
		states = []parley.ChannelState{c.State}
	}
	rows := make([]channelStateRow, len(states))
	for i, state := range states {
		rows[i] = channelStateRow{state.Status, state.Reason, parley.Stamp(state.Since)}
	}
	return ok("OK", rows), err
}
