package sqldb

import (
	"path/filepath"
	"testing"
	"time"

	"parley/internal/postgrestest"
	"parley/internal/wait"
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
	var turns *wait.Turns
	switch reader := db.reader.engine.(type) {
	case postgresReader:
		turns = reader.turns
	case poolReader:
		turns, reader.pool.wait = reader.turns, time.Minute
	}
	waiting := func(n int) {
		for {
			all := turns.Waiting()
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
