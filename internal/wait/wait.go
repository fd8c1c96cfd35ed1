// Package wait has the two ways of waiting that many goroutines share: for a time, and for a notification.
//
//   - Sleep never outlives its context.
//   - Notify never blocks: notifications of a reader that has not looked yet are one.
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
