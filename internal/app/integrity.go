package app

import (
	"context"
	"fmt"
)

// smallDatabase is the size up to which the database is checked before the server is ready: that
// takes a few milliseconds. A larger one is checked while the server works already.
const smallDatabase = 8 << 20

// CheckDatabase looks for damage and says what to do about it.
func CheckDatabase(ctx context.Context, data *Data) error {
	if err := data.Store.Check(ctx); err != nil {
		return fmt.Errorf("the database %s is damaged: %w. Nothing was changed. Restore a backup with: parley restore FILE --data %s",
			data.Dir.Database(), err, data.Dir)
	}
	return nil
}

// isSmall reports whether a check of the database is quick enough to wait for it.
func (s *server) isSmall(ctx context.Context) (bool, error) {
	size, err := s.data.Store.Size(ctx)
	return size <= smallDatabase, err
}
