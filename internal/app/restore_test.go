package app

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled makes a data directory whose files all say the same.
func filled(t *testing.T, says string) Dir {
	t.Helper()
	d := Dir(t.TempDir())
	if err := os.Mkdir(d.Media(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Database(), d.Database() + "-wal", d.WhatsApp(), d.Key(), filepath.Join(d.Media(), "file")} {
		if err := os.WriteFile(path, []byte(says), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// contents reads all files below a directory, by their path in it.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRestoreTwiceAtOnce keeps what was there before each time, however fast one follows the other.
func TestRestoreTwiceAtOnce(t *testing.T) {
	d := filled(t, "first")
	var kept []string
	for _, says := range []string{"second", "third", "fourth"} {
		before, err := d.replaceBy(filled(t, says), os.Rename)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, before)
	}
	for i, says := range []string{"first", "second", "third"} {
		if got := contents(t, kept[i]); len(got) != 5 || got["parley.db"] != says || got["media/file"] != says {
			t.Errorf("%s holds %v, and not what says %q", kept[i], got, says)
		}
	}
	if got, err := os.ReadFile(d.Database()); string(got) != "fourth" || err != nil {
		t.Errorf("the database says %q, %v", got, err)
	}
}

// TestRestoreIsWholeOrNot fails at each move in turn.
func TestRestoreIsWholeOrNot(t *testing.T) {
	broken := errors.New("no more moves")
	for last := range 10 { // five pieces go, five come
		d, other := filled(t, "old"), filled(t, "new")
		was := contents(t, string(d))
		moves := 0
		_, err := d.replaceBy(other, func(from, to string) error {
			if moves++; moves == last+1 {
				return broken
			}
			return os.Rename(from, to)
		})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "Nothing was changed") {
			t.Errorf("without move %d: %v", last+1, err)
		}
		if got := contents(t, string(d)); !maps.Equal(got, was) {
			t.Errorf("without move %d there is %v", last+1, got)
		}
	}
}
