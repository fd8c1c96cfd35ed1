// Package encrypt encrypts small secrets at rest, under keys that a file outside the database holds.
//
// Invariants:
//   - The database alone reveals no secret.
//   - A ciphertext is bound to its context. It does not decrypt in another row or for another channel.
//   - The first key of the file encrypts, every key decrypts. A new key goes above the old ones.
package encrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	keySize = 32 // AES-256
	idSize  = 4  // tells the few keys of one file apart; a collision only fails to decrypt

	// version is the first byte of every ciphertext. It allows the format to change.
	version = 1
)

// ErrDecrypt reports a ciphertext that was changed or truncated, belongs to another context, or needs
// a key that the file does not hold.
var ErrDecrypt = errors.New("cannot be opened with this key")

// Keyring holds the keys of a file. It encrypts and decrypts with AES-256-GCM.
type Keyring struct {
	keys []key // the first encrypts, all decrypt
}

type key struct {
	id     [idSize]byte
	aead   cipher.AEAD
	secret []byte
}

// OpenKeyFile reads a file with one base64 key on each line. It creates a missing file with a random
// key, and rejects a file that others can read. The group may read a file of another user.
func OpenKeyFile(path string) (*Keyring, error) {
	if err := create(path); err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open key file: %w", err)
	}
	closed := os.FileMode(0o077)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		closed = 0o037 // a secret that Kubernetes mounts belongs to root, and our group may read it
	}
	if mode := info.Mode().Perm(); mode&closed != 0 {
		return nil, fmt.Errorf("key file %s has mode %04o and can be read by others: run chmod 600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open key file: %w", err)
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return s, nil
}

// create writes a file with a new key unless it exists. The link makes it appear whole or not at all,
// and two processes that create it at the same time read the same key.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return (&Keyring{keys: []key{randomKey()}}).write(path, func(draft string) error {
		if err := os.Link(draft, path); !errors.Is(err, os.ErrExist) {
			return err
		}
		return nil
	})
}

// Save replaces a key file as a whole: after a crash it is the old one or the new one.
func (s *Keyring) Save(path string) error {
	if err := s.write(path, func(draft string) error { return os.Rename(draft, path) }); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

// write writes the keys to a draft with mode 0600 beside the file, and places it.
func (s *Keyring) write(path string, place func(draft string) error) error {
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	for _, k := range s.keys {
		_, failed := draft.WriteString(base64.StdEncoding.EncodeToString(k.secret) + "\n")
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := place(draft.Name()); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path)) // sync it, or a power failure may lose the file and every secret
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Len is how many keys there are.
func (s *Keyring) Len() int { return len(s.keys) }

// WithNext adds a new key below the others: it decrypts, and does not encrypt yet.
func (s *Keyring) WithNext() *Keyring {
	return &Keyring{keys: append(slices.Clone(s.keys), randomKey())}
}

// LastFirst moves the last key above the others: it encrypts from now on.
func (s *Keyring) LastFirst() *Keyring {
	last := len(s.keys) - 1
	return &Keyring{keys: append([]key{s.keys[last]}, s.keys[:last]...)}
}

// OnlyFirst removes all keys but the one that encrypts.
func (s *Keyring) OnlyFirst() *Keyring { return &Keyring{keys: slices.Clone(s.keys[:1])} }

func randomKey() key {
	secret := make([]byte, keySize)
	rand.Read(secret) // never fails
	return newKey(secret)
}

func parse(text string) (*Keyring, error) {
	s := &Keyring{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(secret) != keySize {
			return nil, errors.New("every line must be 32 bytes in base64")
		}
		s.keys = append(s.keys, newKey(secret))
	}
	if len(s.keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return s, nil
}

func newKey(secret []byte) key {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err) // only for a wrong length, which parse refuses
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for a block size that AES does not have
	}
	k := key{aead: aead, secret: secret}
	sum := sha256.Sum256(secret)
	copy(k.id[:], sum[:])
	return k
}

// Encrypt encrypts plain. The context names the secret and its owner; Decrypt needs the same context.
func (s *Keyring) Encrypt(plain []byte, context string) []byte {
	k := s.keys[0]
	encrypted := append([]byte{version}, k.id[:]...)
	return k.aead.Seal(encrypted, nil, plain, []byte(context))
}

// Decrypt decrypts what Encrypt returned. Every failure is [ErrDecrypt].
func (s *Keyring) Decrypt(encrypted []byte, context string) ([]byte, error) {
	if len(encrypted) < 1+idSize || encrypted[0] != version {
		return nil, ErrDecrypt
	}
	id, box := [idSize]byte(encrypted[1:]), encrypted[1+idSize:]
	for _, k := range s.keys {
		if k.id != id {
			continue
		}
		if plain, err := k.aead.Open(nil, nil, box, []byte(context)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrDecrypt
}

// Reencrypt encrypts with the first key what another one encrypted. It returns nil if the first one did.
func (s *Keyring) Reencrypt(encrypted []byte, context string) ([]byte, error) {
	if bytes.HasPrefix(encrypted, append([]byte{version}, s.keys[0].id[:]...)) {
		return nil, nil
	}
	plain, err := s.Decrypt(encrypted, context)
	if err != nil {
		return nil, err
	}
	return s.Encrypt(plain, context), nil
}

// Derive returns an independent 32-byte key for a purpose from each key of the file, newest first.
func (s *Keyring) Derive(purpose string) [][]byte {
	derived := make([][]byte, len(s.keys))
	for i, k := range s.keys {
		var err error
		if derived[i], err = hkdf.Key(sha256.New, k.secret, nil, purpose, keySize); err != nil {
			panic(err) // only for more bytes than a hash can give
		}
	}
	return derived
}
