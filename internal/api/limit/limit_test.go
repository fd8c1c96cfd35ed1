package limit

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoBurstAtABoundary looks for a moment at which more is let in than the limit says: with windows
// that restart it would be twice as much around each beginning.
func TestNoBurstAtABoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, window = 100, time.Minute
		m := NewWindow[int](most, window)
		var let []time.Time
		for range 2000 {
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
			now := time.Now()
			if m.Peek(1, now).Refused {
				continue
			}
			m.Add(1, 1, now)
			let = append(let, now)
			recent := 0
			for _, at := range let {
				if now.Sub(at) < window {
					recent++
				}
			}
			if recent > most {
				t.Fatalf("%d within a minute", recent)
			}
		}
		if len(let) < 1000 {
			t.Errorf("only %d were let in: the limit is tighter than it says", len(let))
		}

		l := NewBuckets[int](time.Second, 30) // thirty at once, and then one a second
		began, n := time.Now(), 0
		for time.Since(began) < 5*time.Minute {
			if !l.Spend(1, time.Now()).Refused {
				n++
			}
			if most := 30 + int(time.Since(began)/time.Second); n > most {
				t.Fatalf("%d after %s", n, time.Since(began))
			}
			time.Sleep(77 * time.Millisecond)
		}
		if n < 320 {
			t.Errorf("only %d in five minutes", n)
		}
	})
}

// TestMeterForgetsKeys holds what is remembered of tokens that fetch nothing any more to a bound.
func TestMeterForgetsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewWindow[int](1000, time.Minute)
		for i := range 10_000 {
			m.Add(i, 1, time.Now())
			time.Sleep(time.Second)
		}
		if len(m.by) > 200 {
			t.Errorf("%d keys are in memory", len(m.by))
		}
		for range 10_000 {
			m.Add(-1, 1, time.Now())
			time.Sleep(time.Millisecond)
		}
		if n := len(m.by[-1]); n > windowSlices+1 {
			t.Errorf("%d entries for one key", n)
		}
	})
}

func TestTableOfBucketsIsBounded(t *testing.T) {
	l := NewBuckets[int](time.Second, 30)
	now := time.Now()
	l.Spend(-1, now)
	for range 29 {
		l.Spend(-1, now)
	}
	for i := range maxKeys + 1000 {
		l.Spend(i, now)
	}
	if len(l.by) > maxKeys {
		t.Errorf("%d entries", len(l.by))
	}
	if !l.Spend(-1, now).Refused {
		t.Error("the emptiest bucket was dropped for full ones")
	}
}
