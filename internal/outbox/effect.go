package outbox

import (
	"context"
	"time"

	"parley"
	"parley/internal/store"
)

// hasEffect reports whether a confirmation changes more than the status of its message.
func (w *Worker) hasEffect(e *entry) bool {
	return !e.Kind.IsRecord() || !w.Settings().KeepsText()
}

// applyEffect stores what a confirmed message changes: the target of an operation, or the text that is not stored. It is
// idempotent.
func (w *Worker) applyEffect(ctx context.Context, tx *store.Tx, m *parley.Message, now time.Time, removed *[]parley.Media) error {
	var err error
	switch c := m.Content.(type) {
	case parley.Reaction:
		err = w.react(ctx, tx, c, now)
	case parley.Seen:
		_, err = tx.AdvanceMessage(ctx, w.Channel, c.Target, parley.Read, nil, now)
	case parley.Delete:
		err = w.deleteTarget(ctx, tx, c.Target, now, removed)
	case parley.Star:
		err = tx.SetStarred(ctx, w.Channel, c.Target, c.Starred)
	case parley.Archive:
		err = tx.SetArchived(ctx, w.Channel, m.Chat, c.Archived)
	default:
		if w.Settings().KeepsText() {
			return nil
		}
		if encrypted := w.EncryptForResend(m); encrypted != nil {
			err = tx.SetResend(ctx, w.Channel, m.Ref(), encrypted, now)
		}
		if err == nil {
			err = w.erase(ctx, tx, m, removed)
		}
	}
	return ignoreNotFound(err)
}

func (w *Worker) react(ctx context.Context, tx *store.Tx, c parley.Reaction, now time.Time) error {
	target, err := tx.Message(ctx, w.Channel, c.Target)
	if err != nil {
		return err
	}
	if err := tx.SetReaction(ctx, w.Channel, c.Target, "", c.Emoji); err != nil {
		return err
	}
	return tx.AddEvent(ctx, parley.NewReactionEvent(&target, "", c.Emoji, now))
}

func (w *Worker) deleteTarget(ctx context.Context, tx *store.Tx, target parley.MessageRef, now time.Time, removed *[]parley.Media) error {
	m, err := tx.Message(ctx, w.Channel, target)
	if err != nil {
		return err
	}
	if _, err := tx.AdvanceMessage(ctx, w.Channel, target, parley.Deleted, nil, now); err != nil {
		return err
	}
	return w.erase(ctx, tx, &m, removed)
}

func (w *Worker) erase(ctx context.Context, tx *store.Tx, m *parley.Message, removed *[]parley.Media) error {
	if media := parley.MediaOf(m.Content); media != nil && media.Key != "" {
		*removed = append(*removed, *media)
	}
	return ignoreNotFound(tx.EraseMessage(ctx, w.Channel, m.Ref()))
}
