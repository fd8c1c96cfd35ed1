// Package wait has the ways of waiting that many goroutines share: for a time, for a notification, and for a turn.
//
//   - Sleep never outlives its context.
//   - Notify never blocks: notifications of a reader that has not looked yet are one.
//   - Turns are fair to callers, however many of them one waits for.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d or until ctx ends. It reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Notify wakes the reader of a channel that has room for one notification.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
