package sqldb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fill stores enough for a copy of several steps.
func fill(t *testing.T, db *DB, n int) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *Tx) error {
		for i := range n {
			if _, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)`, fmt.Sprint("fill ", i), make([]byte, 1<<16)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestCopyIsOfOneMoment(t *testing.T) {
	db := open(t)
	fill(t, db, 64)
	before, err := db.Size(t.Context())
	if err != nil || before < 64<<16 {
		t.Fatalf("size %d: %v", before, err)
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	var last, steps int64
	err = db.CopyTo(t.Context(), to, func(done, total int64) {
		if done <= last || done > total {
			t.Errorf("progress from %d to %d of %d", last, done, total)
		}
		last = done
		steps++
		add(t, db, fmt.Sprint("meanwhile ", steps)) // would restart a copy without a snapshot
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != before || steps < 4 {
		t.Errorf("copied %d of %d bytes in %d steps", last, before, steps)
	}
	if info, err := os.Stat(to); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	if got := names(t, openAt(t, to)); len(got) != 64 {
		t.Errorf("the copy holds %d things", len(got))
	}
}

func TestCopyLeavesOneFile(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	dir := t.TempDir()
	if err := db.CopyTo(t.Context(), filepath.Join(dir, "copy.db"), nil); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"copy.db"}) {
		t.Errorf("there is %v", got)
	}
	if err := db.CopyTo(t.Context(), filepath.Join(dir, "copy.db"), nil); err == nil {
		t.Error("an earlier copy was replaced")
	}
}

func TestCancelledCopyLeavesNothing(t *testing.T) {
	db := open(t)
	fill(t, db, 64)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := db.CopyTo(ctx, filepath.Join(dir, "copy.db"), func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("there is %v", got)
	}
	add(t, db, "a") // the connection is whole
	if err := db.CopyTo(t.Context(), filepath.Join(dir, "copy.db"), nil); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openAt(t, path)
	fill(t, db, 8)
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("before: %v", err)
	}
	db.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(content[2*4096:3*4096], bytes.Repeat([]byte{0xff}, 4096))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openAt(t, path).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("after: %v", err)
	}
}

// files lists what is in a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
