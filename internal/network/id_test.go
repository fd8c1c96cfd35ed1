package network

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

func TestRandomID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		form := regexp.MustCompile(`^3EB0[0-9A-F]{18}$`)
		starts := map[string]bool{}
		for range 1000 {
			a, b := RandomID("3EB0"), RandomID("3EB0")
			if !form.MatchString(string(a)) || a == b || a[:8] != b[:8] {
				t.Fatalf("at the same time come %s and %s", a, b)
			}
			starts[string(a[:8])] = true
			time.Sleep(128 * time.Millisecond)
		}
		if len(starts) != 1000 {
			t.Errorf("%d starts at 1000 times", len(starts))
		}
	})
}
