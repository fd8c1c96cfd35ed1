package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// followEvery is how often the database is asked whether another process changed channels or
// tokens: their changes must count within a second.
const followEvery = 300 * time.Millisecond

// follow has tokens and channels read again whenever another process changed them, until ctx ends.
func (s *server) follow(ctx context.Context) {
	seen := int64(-1) // no revision: what changed while we started is read at the first tick
	broken := false
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := s.data.Store.Revision(ctx)
		if err == nil && now != seen {
			if err = errors.Join(s.data.Tokens.Refresh(ctx), s.gateway.Refresh(ctx)); err != nil {
				err = fmt.Errorf("read channels and tokens again: %w", err)
			}
		}
		if err == nil {
			seen = now
		}
		if ctx.Err() == nil && (err != nil) != broken { // once, not three times a second
			broken = err != nil
			if broken {
				s.log.Error("changes by other processes are not seen", "error", err)
			} else {
				s.log.Info("changes by other processes are seen again")
			}
		}
	}
}
