package sqldb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	addThings   = Many{Insert: `INSERT INTO thing (name) VALUES `, Row: `($1)`}
	countThings = Many{Insert: `INSERT INTO thing (name, data) VALUES `, Row: `($1, nullif($2, ''))`,
		Then: ` ON CONFLICT (name) DO UPDATE SET data = 'again' RETURNING data IS NULL`}
)

// TestRowsThatWait: rows get their keys in the order in which they were added, over several statements and several Many.
func TestRowsThatWait(t *testing.T) {
	db := open(t)
	const rows = 2*maxMany + 7
	keys, isNew := make([]int64, rows), make([]bool, 3)
	err := db.Write(t.Context(), func(tx *Tx) error {
		for i := range keys {
			if err := tx.ManyThen(&addThings, []any{fmt.Sprint("a", i)}, &keys[i]); err != nil {
				return err
			}
		}
		for i, name := range []string{"b", "a3", "c"} {
			if err := tx.ManyThen(&countThings, []any{name, ""}, &isNew[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		var name string
		err := db.Read(t.Context()).QueryRow(`SELECT name FROM thing WHERE seq = $1`, []any{key}, &name)
		if err != nil || name != fmt.Sprint("a", i) {
			t.Fatalf("key %d of row %d is that of %q (%v)", key, i, name, err)
		}
	}
	if !slices.Equal(isNew, []bool{true, false, true}) {
		t.Errorf("new are %v", isNew)
	}
}

// TestStatementsSeeRowsThatWait: only a statement beside them does not write them.
func TestStatementsSeeRowsThatWait(t *testing.T) {
	db := open(t)
	err := db.Write(t.Context(), func(tx *Tx) error {
		var key int64
		number := tx.Waiting()
		count := func() (n int, err error) { return n, tx.QueryRow(`SELECT count(*) FROM thing`, nil, &n) }
		if err := tx.ManyThen(&addThings, []any{"a"}, &key); err != nil {
			return err
		}
		err := tx.Beside(func() error {
			if n, err := count(); n != 0 || err != nil {
				t.Errorf("beside it there are %d things (%v)", n, err)
			}
			return nil
		})
		if err != nil || key != 0 || tx.Waiting() != number {
			t.Errorf("the row has the key %d while it waits (%v)", key, err)
		}
		if n, err := count(); n != 1 || err != nil || key == 0 || tx.Waiting() == number {
			t.Errorf("a statement sees %d things, with the key %d (%v)", n, key, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOneRefusedRow: a row that the database refuses fails its own caller, whenever it is written.
func TestOneRefusedRow(t *testing.T) {
	db := open(t)
	if err := db.Write(t.Context(), adds("taken")); err != nil {
		t.Fatal(err)
	}
	later := func(name string, then error) func(*Tx) error {
		return func(tx *Tx) error {
			var key int64
			if err := tx.ManyThen(&addThings, []any{name}, &key); err != nil {
				return err
			}
			return then
		}
	}
	gone := errors.New("no")
	got := together(t, db, later("a", nil), later("taken", nil), later("b", gone), later("c", nil))
	for i, want := range []string{"<nil>", "UNIQUE constraint", "no", "<nil>"} {
		if !strings.Contains(fmt.Sprint(got[i]), want) {
			t.Errorf("caller %d got %v, not %s", i, got[i], want)
		}
	}
	names, err := Collect(db.Read(t.Context()), ScanOne[string], `SELECT name FROM thing ORDER BY name`)
	if err != nil || !slices.Equal(names, []string{"a", "c", "taken"}) {
		t.Errorf("stored are %q (%v)", names, err)
	}
	careless := func(tx *Tx) error { // it writes the rows that wait, and does not look at the error
		tx.Do(`DELETE FROM thing WHERE name = 'c'`)
		return nil
	}
	got = together(t, db, later("d", nil), later("taken", nil), careless, later("e", nil))
	for i, want := range []string{"<nil>", "UNIQUE constraint", "<nil>", "<nil>"} {
		if !strings.Contains(fmt.Sprint(got[i]), want) {
			t.Errorf("beside one who does not look at errors, caller %d got %v, not %s", i, got[i], want)
		}
	}
	names, err = Collect(db.Read(t.Context()), ScanOne[string], `SELECT name FROM thing ORDER BY name`)
	if err != nil || !slices.Equal(names, []string{"a", "d", "e", "taken"}) {
		t.Errorf("beside one who does not look at errors, stored are %q (%v)", names, err)
	}
	if got := together(t, db, later("taken", nil))[0]; !strings.Contains(fmt.Sprint(got), "UNIQUE constraint") {
		t.Errorf("alone: %v", got)
	}
	if err := db.Write(t.Context(), adds("after")); err != nil {
		t.Error(err)
	}
}
