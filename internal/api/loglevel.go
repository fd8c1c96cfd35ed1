package api

import (
	"log/slog"
	"sync"
	"time"
)

// levelFor changes a log's level for a while.
type levelFor struct {
	mu    sync.Mutex
	usual slog.Level // what it goes back to
	until time.Time  // zero: it is as usual
	timer *time.Timer
}

func (l *levelFor) set(of *slog.LevelVar, level slog.Level, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		l.usual = of.Level()
	} else {
		l.timer.Stop()
	}
	of.Set(level)
	until := time.Now().Add(d)
	l.until = until
	l.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.until.Equal(until) { // else it was changed again meanwhile
			of.Set(l.usual)
			l.until = time.Time{}
		}
	})
}
