package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
)

// together runs these in one batch: it blocks the writer until all are enqueued.
func together(t *testing.T, db *DB, do ...func(*Tx) error) []error {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	var held sync.WaitGroup
	held.Go(func() {
		if err := db.Write(context.Background(), func(*Tx) error {
			close(began)
			<-end
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-began
	results := make([]error, len(do))
	var wg sync.WaitGroup
	for i, do := range do {
		wg.Add(1)
		db.Begin(context.Background(), do, func(err error) { // in this order, before the writer looks
			results[i] = err
			wg.Done()
		})
	}
	close(end)
	held.Wait()
	wg.Wait()
	return results
}

// counted wraps a write and stores how many things a reader sees while it runs. There are as many different numbers as
// there were commits.
func counted(db *DB, seen map[int]bool, do func(*Tx) error) func(*Tx) error {
	return func(tx *Tx) error {
		var committed int
		if err := db.Read(context.Background()).QueryRow(`SELECT count(*) FROM thing`, nil, &committed); err != nil {
			return err
		}
		seen[committed] = true
		return do(tx)
	}
}

func adds(name string) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.Exec(insert, name)
		return err
	}
}

func TestWaitingWritesShareACommit(t *testing.T) {
	db := open(t)
	seen := map[int]bool{}
	var do []func(*Tx) error
	for i := range 100 {
		do = append(do, counted(db, seen, adds(fmt.Sprint(i))))
	}
	if err := errors.Join(together(t, db, do...)...); err != nil {
		t.Fatal(err)
	}
	if got := len(names(t, db)); got != 100 || len(seen) != 1 {
		t.Errorf("%d things in %d commits", got, len(seen))
	}
}

func TestCallersShareCommits(t *testing.T) {
	db := open(t)
	const callers, each = 64, 20
	seen := map[int]bool{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := db.Write(t.Context(), counted(db, seen, adds(fmt.Sprint(c, "-", i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	writes, commits := len(names(t, db)), len(seen)
	if writes != callers*each || commits > writes/4 {
		t.Errorf("%d writes in %d commits", writes, commits)
	}
	t.Logf("%d writes in %d commits", writes, commits)
}

func TestOneFailureIsAlone(t *testing.T) {
	db := open(t)
	refused := errors.New("refused")
	runs := 0
	results := together(t, db,
		func(tx *Tx) error { runs++; return adds("a")(tx) },
		func(tx *Tx) error { return errors.Join(adds("b")(tx), refused) },
		adds("a"), // already exists
		func(tx *Tx) error {
			if err := adds("c")(tx); err != nil {
				return err
			}
			panic("oh")
		},
		adds("d"),
	)
	if results[0] != nil || results[4] != nil {
		t.Errorf("good ones failed: %v", results)
	}
	if !errors.Is(results[1], refused) || !isUnique(results[2]) {
		t.Errorf("got %v", results)
	}
	if err := results[3]; err == nil || !strings.Contains(err.Error(), "oh") || parley.ToCode(err) != parley.Internal {
		t.Errorf("panic: got %v", err)
	}
	if got := names(t, db); !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("there is %v", got)
	}
	if runs != 2 {
		t.Errorf("a good write ran %d times", runs)
	}
	add(t, db, "e") // the writer goes on
}

func TestFailureAloneIsNotTriedAgain(t *testing.T) {
	db := open(t)
	runs := 0
	err := db.Write(t.Context(), func(*Tx) error { runs++; return errors.New("refused") })
	if err == nil || runs != 1 {
		t.Errorf("got %v after %d runs", err, runs)
	}
}

func TestOnCommitFollowsTheOrder(t *testing.T) {
	db := open(t)
	var calls []string
	say := func(name string, err error) func(*Tx) error {
		return func(tx *Tx) error {
			tx.OnCommit(func() { calls = append(calls, name+" 1") })
			tx.OnCommit(func() { calls = append(calls, name+" 2") })
			return err
		}
	}
	together(t, db, say("a", nil), say("b", errors.New("refused")), say("c", nil))
	if want := []string{"a 1", "a 2", "c 1", "c 2"}; !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
}

func TestFullDiskIsUnavailableUntilThereIsRoom(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	limit := func(pages int) {
		t.Helper()
		var now int
		if err := db.writer.QueryRow(fmt.Sprint("PRAGMA max_page_count = ", pages), nil, &now); err != nil {
			t.Fatal(err)
		}
	}
	var used int
	if err := db.Read(t.Context()).QueryRow("PRAGMA page_count", nil, &used); err != nil {
		t.Fatal(err)
	}
	limit(used + 1)
	large := func(name string) func(*Tx) error {
		return func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)`, name, make([]byte, 1<<16))
			return err
		}
	}
	if err := db.Write(t.Context(), large("b")); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("alone: got %v", err)
	}
	// With others, a write that returns nil must be committed.
	small := []string{"c", "d"}
	results := together(t, db, adds("c"), large("b"), adds("d"))
	want := []string{"a"}
	for i, err := range []error{results[0], results[2]} {
		if err == nil {
			want = append(want, small[i])
		} else if parley.ToCode(err) != parley.Unavailable {
			t.Errorf("a neighbour got %v", err)
		}
	}
	if parley.ToCode(results[1]) != parley.Unavailable {
		t.Errorf("in company: got %v", results[1])
	}
	// A write that continues after the error also fails and changes nothing.
	if err := db.Write(t.Context(), func(tx *Tx) error {
		if err := large("e")(tx); err == nil {
			return errors.New("there was room")
		}
		adds("f")(tx)
		return nil
	}); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("going on: got %v", err)
	}
	if got := names(t, db); !slices.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	limit(1 << 30)
	if err := db.Write(t.Context(), large("b")); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestLockOfAnotherProcessIsUnavailable(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	var path string
	if err := db.Read(t.Context()).QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`, nil, &path); err != nil {
		t.Fatal(err)
	}
	if _, err := db.writer.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	second := openAt(t, path)
	began, end := make(chan struct{}), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- second.Write(context.Background(), func(tx *Tx) error {
			close(began)
			<-end
			return adds("theirs")(tx)
		})
	}()
	<-began
	runs := 0
	err := db.Write(t.Context(), func(*Tx) error { runs++; return nil })
	if parley.ToCode(err) != parley.Unavailable || runs != 0 {
		t.Errorf("got %v after %d runs", err, runs)
	}
	close(end)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	add(t, db, "b")
	if got := names(t, db); !slices.Equal(got, []string{"a", "theirs", "b"}) {
		t.Errorf("there is %v", got)
	}
}

func TestStatementsInAndOutOfTransactions(t *testing.T) {
	type name string
	db := open(t)
	if err := db.Write(t.Context(), func(tx *Tx) error {
		if _, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)`, name("a"), []byte{1}); err != nil {
			return err
		}
		key, err := tx.Insert(`INSERT INTO thing (name) VALUES ($1) ON CONFLICT DO NOTHING`, "b")
		if err != nil || key != 2 {
			return fmt.Errorf("insert: key %d: %w", key, err)
		}
		if again, err := tx.Insert(`INSERT INTO thing (name) VALUES ($1) ON CONFLICT DO NOTHING`, "b"); err != nil || again != 0 {
			return fmt.Errorf("insert again: key %d: %w", again, err)
		}
		return check1(tx.Conn)
	}); err != nil {
		t.Fatal(err)
	}
	if err := check1(db.Read(t.Context())); err != nil {
		t.Error(err)
	}
}

// check1 reads a thing in all possible ways.
func check1(c *Conn) error {
	var seq int64
	var n int
	var text string
	var data []byte
	var yes bool // not one of the writer's short cuts
	const query = `SELECT seq, seq, name, data, seq = $2 FROM thing WHERE name = $1`
	if err := c.QueryRow(query, []any{"a", 1}, &seq, &n, &text, &data, &yes); err != nil {
		return err
	}
	if err := c.QueryRow(query, []any{"a", 1}, &seq, &n, &text, &data, &n); err != nil {
		return err
	}
	if seq != 1 || n != 1 || text != "a" || !slices.Equal(data, []byte{1}) || !yes {
		return fmt.Errorf("got %d %d %s %v %v", seq, n, text, data, yes)
	}
	if err := c.QueryRow(`SELECT data FROM thing WHERE name = $1`, []any{"b"}, &data); err != nil || data != nil {
		return fmt.Errorf("nothing: got %v: %w", data, err)
	}
	if err := c.QueryRow(`SELECT seq FROM thing WHERE name = $1`, []any{"z"}, &seq); !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("no row: got %w", err)
	}
	if err := c.QueryRow(`SELECT data FROM thing WHERE name = $1`, []any{"b"}, &seq); err == nil {
		return errors.New("nothing was read into a number")
	}
	if err := c.QueryRow(`SELECT nonsense`, nil, &seq); err == nil || parley.ToCode(err) != parley.Internal {
		return fmt.Errorf("nonsense: got %w", err)
	}
	return nil
}
