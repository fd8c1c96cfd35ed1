package encrypt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestEncryptAndDecrypt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "key"))
	for _, plain := range []string{"", "x", "a secret of some length"} {
		encrypted := s.Encrypt([]byte(plain), "row 1")
		if len(plain) > 8 && bytes.Contains(encrypted, []byte(plain)) { // a shorter one may be there by chance
			t.Errorf("the plain text %q shows", plain)
		}
		got, err := s.Decrypt(encrypted, "row 1")
		if err != nil || string(got) != plain {
			t.Errorf("Decrypt = %q, %v; want %q", got, err, plain)
		}
		if _, err := s.Decrypt(encrypted, "row 2"); !errors.Is(err, ErrDecrypt) {
			t.Errorf("another context decrypted it: %v", err)
		}
	}
	if bytes.Equal(s.Encrypt([]byte("x"), "c"), s.Encrypt([]byte("x"), "c")) {
		t.Error("the same text encrypted twice is the same")
	}
}

func TestDecryptRejectsChanges(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "key"))
	encrypted := s.Encrypt([]byte("secret"), "c")
	for i := range encrypted {
		changed := bytes.Clone(encrypted)
		changed[i] ^= 1
		if _, err := s.Decrypt(changed, "c"); !errors.Is(err, ErrDecrypt) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := s.Decrypt(encrypted[:i], "c"); !errors.Is(err, ErrDecrypt) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestKeyFileIsCreatedOnceAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var wg sync.WaitGroup
	var keyrings [8]*Keyring
	for i := range keyrings {
		wg.Go(func() { keyrings[i], _ = OpenKeyFile(path) })
	}
	wg.Wait()
	encrypted := keyrings[0].Encrypt([]byte("x"), "c")
	for i, s := range keyrings {
		if _, err := s.Decrypt(encrypted, "c"); err != nil {
			t.Errorf("keyring %d has another key: %v", i, err)
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

func TestWiderModesAreRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	open(t, path)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyFile(path); err == nil {
			t.Errorf("mode %04o was accepted", mode)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// TestMountedSecret reads a file as Kubernetes mounts a secret: it belongs to another user, and the group may read it.
func TestMountedSecret(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "key")
	open(t, path)
	if err := os.Chown(path, 65534, 0); err != nil {
		t.Fatal(err)
	}
	for mode, accepted := range map[os.FileMode]bool{0o440: true, 0o640: true, 0o444: false, 0o460: false, 0o404: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyFile(path); (err == nil) != accepted {
			t.Errorf("mode %04o: %v, want accepted: %v", mode, err, accepted)
		}
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	old := open(t, filepath.Join(dir, "old"))
	open(t, filepath.Join(dir, "new"))
	before := old.Encrypt([]byte("x"), "c")

	oldKey, _ := os.ReadFile(filepath.Join(dir, "old"))
	newKey, _ := os.ReadFile(filepath.Join(dir, "new"))
	both := filepath.Join(dir, "both")
	if err := os.WriteFile(both, append(newKey, oldKey...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, both)
	if plain, err := s.Decrypt(before, "c"); err != nil || string(plain) != "x" {
		t.Errorf("what the old key encrypted: %q, %v", plain, err)
	}
	if _, err := old.Decrypt(s.Encrypt([]byte("y"), "c"), "c"); !errors.Is(err, ErrDecrypt) {
		t.Errorf("the old key decrypts what the new one encrypted: %v", err)
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
		if _, err := OpenKeyFile(path); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func open(t *testing.T, path string) *Keyring {
	t.Helper()
	s, err := OpenKeyFile(path)
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

// TestSavedRotation takes a key file through the steps of a rotation, each of which can read what the one before encrypted.
func TestSavedRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	old := open(t, path)
	text := old.Encrypt([]byte("x"), "c")
	save := func(k *Keyring) *Keyring {
		t.Helper()
		if err := k.Save(path); err != nil {
			t.Fatal(err)
		}
		return open(t, path) // refuses a file that others can read
	}
	next := save(old.WithNext())
	if same, err := next.Reencrypt(text, "c"); same != nil || err != nil {
		t.Errorf("the new key encrypts before its time: %v", err)
	}
	first := save(next.LastFirst())
	if _, err := first.Reencrypt(text, "another"); !errors.Is(err, ErrDecrypt) {
		t.Errorf("it was encrypted again for another context: %v", err)
	}
	again, err := first.Reencrypt(text, "c")
	if err != nil {
		t.Fatal(err)
	}
	only := save(first.OnlyFirst())
	if plain, err := only.Decrypt(again, "c"); string(plain) != "x" || err != nil {
		t.Errorf("the new key decrypts %q, %v", plain, err)
	}
	if plain, err := next.Decrypt(again, "c"); string(plain) != "x" || err != nil {
		t.Errorf("a node that has only prepared decrypts %q, %v", plain, err)
	}
	for _, text := range [][]byte{text, old.Encrypt([]byte("x"), "c")} {
		if _, err := only.Decrypt(text, "c"); !errors.Is(err, ErrDecrypt) {
			t.Errorf("the old key is still accepted: %v", err)
		}
	}
	if old.Len() != 1 || next.Len() != 2 || only.Len() != 1 {
		t.Errorf("%d, %d and %d keys", old.Len(), next.Len(), only.Len())
	}
}
