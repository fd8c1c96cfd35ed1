package api

import (
	"context"
	"errors"
	"strconv"

	"parley"
	"parley/internal/store"
)

type deletionState string

const (
	deletionRunning  deletionState = "running"
	deletionFinished deletionState = "finished"
)

type deletionRow struct {
	ID              string             `json:"id"`
	Code            parley.ChannelCode `json:"code"`
	State           deletionState      `json:"state"`
	StartedAt       string             `json:"started_at"`
	FinishedAt      *string            `json:"finished_at"`
	MessagesDeleted int64              `json:"messages_deleted"`
	MessagesLeft    *int64             `json:"messages_left"` // nil: not counted yet
	Problem         string             `json:"problem"`
}

func newDeletionRow(d store.Deletion) deletionRow {
	row := deletionRow{
		ID: strconv.FormatInt(d.ID, 10), Code: d.Channel, State: deletionRunning, StartedAt: parley.Stamp(d.StartedAt),
		FinishedAt: stampOrNil(d.FinishedAt), MessagesDeleted: d.Purged, Problem: d.Problem,
	}
	if !d.FinishedAt.IsZero() {
		row.State = deletionFinished
	}
	if left := max(0, d.Messages-d.Purged); d.Messages >= 0 {
		row.MessagesLeft = &left
	}
	return row
}

// deleteChannel responds when the channel is gone. Its rows are purged in the background.
func (s *server) deleteChannel(ctx context.Context, r *request) (any, error) {
	if _, err := s.channelNamed(ctx, r.code()); err != nil && !errors.Is(err, parley.ErrNotFound) {
		return nil, err // it is starting
	}
	d, err := s.config.Gateway.DeleteChannel(ctx, r.code(), func(tx *store.Tx, c parley.Channel) error {
		return r.auditTx(ctx, tx, change{object: string(c.Code), before: auditChannel(c)})
	})
	if err == nil {
		s.config.Callbacks.Secrets.Evict(parley.ChannelSecret(r.code()))
		s.config.Callbacks.Reload() // its webhooks were deleted too
		err = s.config.Tokens.Refresh(ctx)
	}
	return ok("Channel deleted. Its messages are removed in the background.", newDeletionRow(d)), err
}

// listDeletions lists the deletions under way, and those that finished in the last days.
func (s *server) listDeletions(ctx context.Context, _ *request) (any, error) {
	deletions, err := s.config.Store.Deletions(ctx)
	return ok("OK", mapped(deletions, newDeletionRow)), err
}
