package media

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestOlder lists complete files by their age, in pieces.
func TestOlder(t *testing.T) {
	l := open(t)
	now := time.Now()
	var old []string
	for i := range 20 {
		m, err := l.Keep([]byte("file"), "a.txt")
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			path, err := l.path(m.Key)
			if err := errors.Join(err, os.Chtimes(path, now.Add(-2*time.Hour), now.Add(-2*time.Hour))); err != nil {
				t.Fatal(err)
			}
			old = append(old, m.Key)
		}
	}
	slices.Sort(old)
	for _, name := range []string{"tmp/00112233445566778899aabbccddeeff", "note.txt"} { // neither is a file of the library
		path := filepath.Join(l.dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now.Add(-2*time.Hour), now.Add(-2*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for after := ""; ; {
			keys, err := l.Older(now.Add(-time.Hour), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, keys...); len(keys) < limit {
				break
			}
			after = keys[len(keys)-1]
		}
		if !slices.Equal(got, old) {
			t.Errorf("%d at a time: %v, want %v", limit, got, old)
		}
	}
}
