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
	"testing/fstest"
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
		add(t, db, fmt.Sprint("meanwhile ", steps)) // would make a copy without a snapshot begin anew
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

func TestReplace(t *testing.T) {
	source := open(t)
	add(t, source, "new")
	dir := t.TempDir()
	backup, path := filepath.Join(dir, "backup.db"), filepath.Join(dir, "test.db")
	if err := source.CopyTo(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	replace := func() error {
		return Replace(t.Context(), backup, Options{Path: path, Durable: true, Migrations: things}, nil)
	}
	old := openAt(t, path)
	add(t, old, "old")
	if err := replace(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("while it is open: got %v", err)
	}
	if got := names(t, old); !slices.Equal(got, []string{"old"}) {
		t.Errorf("while it is open: there is %v", got)
	}
	old.Close()
	// What a crash leaves behind must not be mixed with the new file.
	if err := os.WriteFile(path+"-wal", []byte("of the old file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"backup.db", "test.db"}) {
		t.Errorf("there is %v", got)
	}
	db := openAt(t, path)
	if got := names(t, db); !slices.Equal(got, []string{"new"}) {
		t.Errorf("there is %v", got)
	}
	add(t, db, "newer")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
}

func TestReplaceOfADamagedDatabase(t *testing.T) {
	source := open(t)
	add(t, source, "a")
	dir := t.TempDir()
	backup, path := filepath.Join(dir, "backup.db"), filepath.Join(dir, "test.db")
	if err := source.CopyTo(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.WriteFile(name, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replace(t.Context(), backup, Options{Path: path, Migrations: things}, nil); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"backup.db", "test.db"}) {
		t.Errorf("there is %v", got)
	}
	if got := names(t, openAt(t, path)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("there is %v", got)
	}
}

func TestReplaceMakesADatabaseWhereThereIsNone(t *testing.T) {
	source := open(t)
	add(t, source, "a")
	dir := t.TempDir()
	if err := source.CopyTo(t.Context(), filepath.Join(dir, "backup.db"), nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test.db")
	if err := Replace(t.Context(), filepath.Join(dir, "backup.db"), Options{Path: path, Migrations: things}, nil); err != nil {
		t.Fatal(err)
	}
	if got := names(t, openAt(t, path)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("there is %v", got)
	}
}

func TestReplaceRefusesWhatIsNotGood(t *testing.T) {
	source := open(t)
	fill(t, source, 32)
	good := filepath.Join(t.TempDir(), "good.db")
	if err := source.CopyTo(t.Context(), good, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	// The root of a table, overwritten: the file still opens.
	damaged := slices.Clone(whole)
	copy(damaged[4096:8192], bytes.Repeat([]byte{0xff}, 4096))

	for name, test := range map[string]struct {
		content    []byte
		migrations fstest.MapFS
	}{
		"garbage":    {[]byte(strings.Repeat("no database ", 1000)), things},
		"empty":      {nil, things},
		"cut off":    {whole[:len(whole)/2], things},
		"damaged":    {damaged, things},
		"too new":    {whole, fstest.MapFS{}},
		"not copied": {nil, nil}, // there is no such file
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			backup, path := filepath.Join(dir, "backup.db"), filepath.Join(dir, "test.db")
			if test.migrations != nil {
				if err := os.WriteFile(backup, test.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			old := openAt(t, path)
			add(t, old, "old")
			old.Close()
			err := Replace(t.Context(), backup, Options{Path: path, Migrations: test.migrations}, nil)
			if err == nil {
				t.Error("it was taken")
			}
			if got := names(t, openAt(t, path)); !slices.Equal(got, []string{"old"}) {
				t.Errorf("there is %v", got)
			}
		})
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
