package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// Restored makes the database of a backup fit to be used. The keys of a conversation move on with every
// message: with those of an earlier moment, what we send would be taken for a copy of what was sent since,
// and shown to nobody. So they are forgotten, and made anew with the next message.
func Restored(ctx context.Context, path string, log *slog.Logger) error {
	db, err := openDatabase(ctx, path, newLogger(log, ""))
	if err != nil {
		return fmt.Errorf("open the keys of linked devices: %w", err)
	}
	return errors.Join(db.keys.ForgetSessions(ctx), db.close())
}
