package doctor

import (
	"context"
	"testing"
	"time"

	"parley"
)

// TestFast warns of a number that was paired lately and wrote to more new contacts, or sent more, than a careful channel would.
func TestFast(t *testing.T) {
	now := time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		age          time.Duration
		firsts, sent int64
		warns        bool
	}{
		{24 * time.Hour, 20, 1000, false}, {24 * time.Hour, 21, 21, true}, {24 * time.Hour, 0, 1001, true},
		{10 * 24 * time.Hour, 50, 60, false}, {10 * 24 * time.Hour, 51, 60, true}, {15 * 24 * time.Hour, 5000, 5000, false},
	} {
		channels := []parley.Channel{{Code: "toko", Network: parley.WhatsApp, PairedAt: now.Add(-c.age)}, {Code: "old", Network: parley.WhatsApp}}
		count := func(context.Context, parley.ChannelCode, time.Time) (int64, int64, error) {
			return c.firsts, c.sent, nil
		}
		if found := Fast(t.Context(), channels, now, count); (len(found) == 1) != c.warns {
			t.Errorf("%+v: %+v", c, found)
		}
	}
}
