package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestSealAndOpen(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "key"))
	for _, plain := range []string{"", "x", "a secret of some length"} {
		sealed := s.Seal([]byte(plain), "row 1")
		if len(plain) > 8 && bytes.Contains(sealed, []byte(plain)) { // a shorter one may be there by chance
			t.Errorf("the plain text %q shows", plain)
		}
		got, err := s.Open(sealed, "row 1")
		if err != nil || string(got) != plain {
			t.Errorf("Open = %q, %v; want %q", got, err, plain)
		}
		if _, err := s.Open(sealed, "row 2"); !errors.Is(err, ErrSealed) {
			t.Errorf("another context opened it: %v", err)
		}
	}
	if bytes.Equal(s.Seal([]byte("x"), "c"), s.Seal([]byte("x"), "c")) {
		t.Error("the same text sealed twice is the same")
	}
}

func TestOpenRefusesChanges(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "key"))
	sealed := s.Seal([]byte("secret"), "c")
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := s.Open(changed, "c"); !errors.Is(err, ErrSealed) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := s.Open(sealed[:i], "c"); !errors.Is(err, ErrSealed) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestFileIsMadeOnceAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var wg sync.WaitGroup
	var sealers [8]*Sealer
	for i := range sealers {
		wg.Go(func() { sealers[i], _ = Open(path) })
	}
	wg.Wait()
	sealed := sealers[0].Seal([]byte("x"), "c")
	for i, s := range sealers {
		if _, err := s.Open(sealed, "c"); err != nil {
			t.Errorf("sealer %d has another key: %v", i, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); len(left) != 0 {
		t.Errorf("drafts left behind: %v", left)
	}
}

func TestWiderModesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	open(t, path)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Errorf("mode %04o was taken", mode)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	old := open(t, filepath.Join(dir, "old"))
	open(t, filepath.Join(dir, "new"))
	before := old.Seal([]byte("x"), "c")

	oldKey, _ := os.ReadFile(filepath.Join(dir, "old"))
	newKey, _ := os.ReadFile(filepath.Join(dir, "new"))
	both := filepath.Join(dir, "both")
	if err := os.WriteFile(both, append(newKey, oldKey...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, both)
	if plain, err := s.Open(before, "c"); err != nil || string(plain) != "x" {
		t.Errorf("what the old key sealed: %q, %v", plain, err)
	}
	if _, err := old.Open(s.Seal([]byte("y"), "c"), "c"); !errors.Is(err, ErrSealed) {
		t.Errorf("the old key opens what the new one sealed: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n", "short": "AAAA\n", "no base64": "not a key at all\n",
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func open(t *testing.T, path string) *Sealer {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDerive holds derived keys to their purpose and their key.
func TestDerive(t *testing.T) {
	dir := t.TempDir()
	old := open(t, filepath.Join(dir, "old"))
	open(t, filepath.Join(dir, "new"))
	oldKey, _ := os.ReadFile(filepath.Join(dir, "old"))
	newKey, _ := os.ReadFile(filepath.Join(dir, "new"))
	both := filepath.Join(dir, "both")
	if err := os.WriteFile(both, append(newKey, oldKey...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, both)
	a, again, b := s.Derive("a"), s.Derive("a"), s.Derive("b")
	if len(a) != 2 || len(a[0]) != 32 || !bytes.Equal(a[0], again[0]) || !bytes.Equal(a[1], again[1]) {
		t.Fatalf("%d keys; derived again they differ", len(a))
	}
	if bytes.Equal(a[0], a[1]) || bytes.Equal(a[0], b[0]) || bytes.Contains(newKey, a[0]) {
		t.Error("keys that should have nothing to do with each other are the same")
	}
	if !bytes.Equal(a[1], old.Derive("a")[0]) {
		t.Error("what was made with the old key cannot be checked any more")
	}
}
