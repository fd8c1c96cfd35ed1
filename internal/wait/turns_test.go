package wait

import (
	"context"
	"slices"
	"testing"
)

// TestTurns: of callers that hold as many, each has its turn, and one that gives up leaves no trace.
func TestTurns(t *testing.T) {
	turns := NewTurns(1)
	if err := turns.Take(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	order := map[chan struct{}]string{}
	var queued []chan struct{}
	for _, caller := range []string{"a", "a", "a", "b", "b", "c"} {
		turn := turns.queue(caller)
		order[turn], queued = caller, append(queued, turn)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, caller := range []string{"b", "gone"} {
		if err := turns.Take(ended, caller); err == nil {
			t.Errorf("%s did not give up", caller)
		}
	}
	var got []string
	for last := "a"; len(queued) > 0; {
		turns.Give(last)
		i := slices.IndexFunc(queued, func(c chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		})
		last = order[queued[i]]
		got, queued = append(got, last), slices.Delete(queued, i, i+1)
	}
	if want := []string{"a", "b", "c", "a", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("the turns are %q, want %q", got, want)
	}
	turns.Give("a")
	if turns.free != 1 || len(turns.held)+len(turns.waiting)+len(turns.order) != 0 {
		t.Errorf("something is left: %+v", turns)
	}
}
