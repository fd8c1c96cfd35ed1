package api

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogLevelGoesBack makes sure that a change of the level ends, and that a later one counts anew.
func TestLogLevelGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var level slog.LevelVar
		var l levelFor
		wants := func(when string, want slog.Level, changed bool) {
			t.Helper()
			synctest.Wait()
			if got := level.Level(); got != want || (l.data(&level).Until != nil) != changed {
				t.Errorf("%s: %v, %+v", when, got, l.data(&level))
			}
		}
		wants("at first", slog.LevelInfo, false)
		l.set(&level, slog.LevelDebug, 10*time.Minute)
		wants("changed", slog.LevelDebug, true)
		time.Sleep(9 * time.Minute)
		l.set(&level, slog.LevelWarn, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		wants("changed again", slog.LevelWarn, true)
		time.Sleep(time.Minute)
		wants("in the end", slog.LevelInfo, false)
		l.set(&level, slog.LevelError, time.Minute)
		time.Sleep(time.Minute)
		wants("once more", slog.LevelInfo, false)
	})
}
