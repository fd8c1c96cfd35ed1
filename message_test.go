package parley

import (
	"slices"
	"testing"
)

// TestStatusOnlyMovesForward walks every pair of statuses.
func TestStatusOnlyMovesForward(t *testing.T) {
	can := map[Status][]Status{ // to: from
		Pending:   nil,
		Sent:      {Pending},
		Delivered: {Pending, Sent, Failed},
		Read:      {Pending, Sent, Delivered, Failed, Received},
		Played:    {Pending, Sent, Delivered, Read, Failed},
		Failed:    {Pending, Sent},
		Deleted:   {Pending, Sent, Delivered, Read, Played, Failed, Received},
		Received:  nil,
	}
	for _, to := range Statuses {
		for _, from := range Statuses {
			if got, want := to.CanFollow(from), slices.Contains(can[to], from); got != want {
				t.Errorf("%s after %s: %t, want %t", to, from, got, want)
			}
		}
		if got := to.Before(); !slices.Equal(got, can[to]) {
			t.Errorf("%s.Before() = %v, want %v", to, got, can[to])
		}
	}
}

// TestStatusCannotGoInCircles follows every path: none may come back to where it was.
func TestStatusCannotGoInCircles(t *testing.T) {
	var walk func(path []Status)
	walk = func(path []Status) {
		for _, next := range Statuses {
			if !next.CanFollow(path[len(path)-1]) {
				continue
			}
			if slices.Contains(path, next) {
				t.Errorf("%v can go back to %s", path, next)
				return
			}
			walk(append(slices.Clone(path), next))
		}
	}
	for _, from := range Statuses {
		walk([]Status{from})
	}
}

func TestOnlyPendingIsUnsettled(t *testing.T) {
	for _, s := range Statuses {
		if got := s.IsFinal(); got != (s != Pending) {
			t.Errorf("%s.IsFinal() = %t", s, got)
		}
	}
}
