package parley

import (
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	night := QuietHours{"22:00", "07:00", "Asia/Jakarta"} // UTC+7
	for _, c := range []struct {
		quiet QuietHours
		at    string
		want  bool
	}{
		{night, "2026-11-16T14:59:59Z", false}, {night, "2026-11-16T15:00:00Z", true}, {night, "2026-11-16T23:59:59Z", true},
		{night, "2026-11-17T00:00:00Z", false}, {QuietHours{}, "2026-11-16T15:00:00Z", false},
		{QuietHours{"12:00", "13:00", "UTC"}, "2026-11-16T12:30:00Z", true}, {QuietHours{"12:00", "13:00", "UTC"}, "2026-11-16T13:00:00Z", false},
		{QuietHours{"12:00", "12:00", "UTC"}, "2026-11-16T12:00:00Z", false},
		// Over the change to summer time, and with a zone that does not exist.
		{QuietHours{"22:00", "07:00", "Europe/Berlin"}, "2026-03-29T04:59:00Z", true},
		{QuietHours{"22:00", "07:00", "Europe/Berlin"}, "2026-03-29T05:00:00Z", false},
		{QuietHours{"00:00", "23:59", "Mars/Base"}, "2026-11-16T12:00:00Z", false},
	} {
		if got := c.quiet.Contain(at(c.at)); got != c.want {
			t.Errorf("%v at %s: %t", c.quiet, c.at, got)
		}
	}
	for _, text := range []string{"", "7:00", "24:00", "12:60", "noon", "12:00 "} {
		if _, err := ParseClock(text); err == nil {
			t.Errorf("%q is a time of day", text)
		}
	}
	for _, name := range []string{"", "Local", "local", "../../etc/passwd", "/etc/localtime", "WIB+7"} {
		if _, err := LoadZone(name); err == nil {
			t.Errorf("%q is a time zone", name)
		}
	}
}
