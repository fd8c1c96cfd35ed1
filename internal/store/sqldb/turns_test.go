package sqldb

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/internal/postgrestest"
)

// TestReadersAreShared: a caller with many reads, some running and more waiting, does not make another wait behind them.
func TestReadersAreShared(t *testing.T) {
	readersAreShared(t, filepath.Join(t.TempDir(), "test.db"))
}

func TestPostgresReadersAreShared(t *testing.T) {
	readersAreShared(t, postgrestest.Start(t).Schema(t))
}

func readersAreShared(t *testing.T, path string) {
	const readers, many = 2, 60
	db := openWith(t, Options{Path: path, Migrations: things, Readers: readers})
	var turns *turns
	if db.reader.pg != nil {
		turns = db.reader.pg.turns
	} else {
		turns, db.reader.pool.wait = db.reader.pool.turns, time.Minute
	}
	waiting := func(n int) {
		for {
			turns.mu.Lock()
			var all int
			for _, queue := range turns.waiting {
				all += len(queue)
			}
			turns.mu.Unlock()
			if all == n {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("%d wait, not %d", all, n)
			}
			time.Sleep(time.Millisecond)
		}
	}
	hold := func(caller string) *Rows {
		rows, err := db.Read(For(t.Context(), caller)).Query(`SELECT 1`)
		if err != nil || !rows.Next() {
			t.Errorf("no rows: %v", err)
		}
		return rows
	}
	first, second := hold("busy"), hold("busy")
	order := make(chan string, many+1)
	next := make(chan struct{})
	read := func(caller string) {
		rows := hold(caller)
		order <- caller
		<-next
		rows.Close()
	}
	for range many {
		go read("busy")
	}
	waiting(many)
	go read("other")
	waiting(many + 1)
	first.Close()
	if got := <-order; got != "other" {
		t.Errorf("the next connection is for %q", got)
	}
	second.Close()
	close(next)
	for range many {
		<-order
	}
	waiting(0)
}

// TestTurns: of callers that hold as many, each has its turn, and one that gives up leaves no trace.
func TestTurns(t *testing.T) {
	turns := newTurns(1)
	if err := turns.take(t.Context(), "a"); err != nil {
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
		if err := turns.take(ended, caller); err == nil {
			t.Errorf("%s did not give up", caller)
		}
	}
	var got []string
	for last := "a"; len(queued) > 0; {
		turns.give(last)
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
	turns.give("a")
	if turns.free != 1 || len(turns.held)+len(turns.waiting)+len(turns.order) != 0 {
		t.Errorf("something is left: %+v", turns)
	}
}
