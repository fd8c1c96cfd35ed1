package parley

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]struct {
		d     time.Duration
		shown string
	}{
		"30d": {720 * time.Hour, "720h"}, "1.5d": {36 * time.Hour, "36h"}, "720h": {720 * time.Hour, "720h"}, "1h30m": {90 * time.Minute,
			"1h30m"},
		"90s": {90 * time.Second, "1m30s"}, "10m": {10 * time.Minute, "10m"}, "0s": {0, "0s"}, "1.5s": {1500 * time.Millisecond, "1.5s"},
		"100ms":   {100 * time.Millisecond, "100ms"},
		"10h0m5s": {10*time.Hour + 5*time.Second, "10h0m5s"},
	} {
		d, err := ParseDuration(text)
		if err != nil || time.Duration(d) != want.d || d.String() != want.shown {
			t.Errorf("%s: %d written as %s, %v", text, d, d, err)
		}
	}
	for _, text := range []string{"", "d", "NaNd", "Infd", "1e9d", "soon", "30 d"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q was read as %s", text, d)
		}
	}
}
