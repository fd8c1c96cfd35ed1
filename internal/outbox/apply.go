package outbox

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

// hasEffect reports whether a message changes more than its own status when it is confirmed.
func (w *Worker) hasEffect(e *entry) bool {
	return !e.Kind.IsRecord() || !w.Settings().KeepsText()
}

// apply stores what a confirmed message changes besides its own status: what an operation was about,
// and the text where the channel keeps none. Doing it twice does nothing more.
func (w *Worker) apply(ctx context.Context, tx *store.Tx, m *parley.Message, now time.Time, removed *[]parley.Media) error {
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
		if !w.Settings().KeepsText() {
			err = w.pack(ctx, tx, m, now, removed)
		}
	}
	return gone(err)
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

// pack erases a message whose text is not kept, but for what a device of its recipient may ask for again.
func (w *Worker) pack(ctx context.Context, tx *store.Tx, m *parley.Message, now time.Time, removed *[]parley.Media) error {
	if encrypted := w.EncryptForResend(m); encrypted != nil {
		if err := tx.SetResend(ctx, w.Channel, m.Ref(), encrypted, now); err != nil {
			return err
		}
	}
	return w.erase(ctx, tx, m, removed)
}

func (w *Worker) erase(ctx context.Context, tx *store.Tx, m *parley.Message, removed *[]parley.Media) error {
	if media := parley.MediaOf(m.Content); media != nil && media.Key != "" {
		*removed = append(*removed, *media)
	}
	err := tx.EraseMessage(ctx, w.Channel, m.Ref())
	if errors.Is(err, parley.ErrNotFound) {
		return nil
	}
	return err
}
