package api

import (
	"math"
	"testing"
	"time"
)

// FuzzStamp holds what is put together to what the library writes.
func FuzzStamp(f *testing.F) {
	for _, seconds := range []int64{0, 1, -1, 1_800_000_000, 253402300799, 253402300800, -62167219201, -62135596800, math.MaxInt32} {
		for _, nanoseconds := range []int64{0, 1, 999_999, 1_000_000, 98_765_432, 999_999_999} {
			f.Add(seconds, nanoseconds, 7*3600)
		}
	}
	f.Fuzz(func(t *testing.T, seconds, nanoseconds int64, east int) {
		at := time.Unix(seconds, nanoseconds).In(time.FixedZone("", east))
		if got, want := stamp(at), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
