package api

import (
	"context"
	"errors"
	"strconv"

	"parley"
	"parley/internal/store"
	"parley/internal/wire"
)

func toDeletion(d store.Deletion) wire.Deletion {
	row := wire.Deletion{
		ID: strconv.FormatInt(d.ID, 10), Code: d.Channel, State: "running", StartedAt: wire.At(d.StartedAt),
		FinishedAt: wire.At(d.FinishedAt), MessagesDeleted: d.Purged, Problem: d.Problem,
	}
	if !d.FinishedAt.IsZero() {
		row.State = "finished"
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
	return ok("Channel deleted. Its messages are removed in the background.", toDeletion(d)), err
}

// listDeletions lists the deletions under way, and those that finished in the last days.
func (s *server) listDeletions(ctx context.Context, _ *request) (any, error) {
	deletions, err := s.config.Store.Deletions(ctx)
	return ok("OK", mapped(deletions, toDeletion)), err
}
