// Package seal encrypts small secrets that are kept in the database, under a key that is kept
// outside of it: whoever reads the database alone learns nothing.
package seal

import (
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
	"strings"
)

const (
	keySize = 32 // AES-256
	idSize  = 4  // enough to tell apart the few keys of one file; a wrong guess fails to open anyway

	// version is the first byte of everything sealed, so that the form can change one day.
	version = 1
)

// ErrSealed is the answer to anything that cannot be opened: changed, cut, sealed for another
// context, or under a key that the file does not hold.
var ErrSealed = errors.New("cannot be opened with this key")

// Sealer encrypts and decrypts with AES-256-GCM.
type Sealer struct {
	keys []key // the first seals, all open
}

type key struct {
	id     [idSize]byte
	aead   cipher.AEAD
	secret []byte
}

// Open reads the keys from a file: one in base64 on each line, of which the first seals and all
// open, so that a new one is put above the old. A file that is missing is made, with a random key.
// One that others than its owner may read is refused.
func Open(path string) (*Sealer, error) {
	if err := create(path); err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
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

// create makes the file with a new key unless it is there. The file appears whole or not at all,
// and of two processes that make it at once both read the same one.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	secret := make([]byte, keySize)
	rand.Read(secret) // never fails
	_, err = draft.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n")
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	folder, err := os.Open(filepath.Dir(path)) // without it the name may be lost when the power fails, and all that was sealed
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func parse(text string) (*Sealer, error) {
	s := &Sealer{}
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

// Seal encrypts plain. The context says what it is and whose; only the same context opens it again,
// so that a sealed value that was moved to another row opens nothing.
func (s *Sealer) Seal(plain []byte, context string) []byte {
	k := s.keys[0]
	sealed := append([]byte{version}, k.id[:]...)
	return k.aead.Seal(sealed, nil, plain, []byte(context))
}

// Open decrypts what Seal returned. Every failure is [ErrSealed].
func (s *Sealer) Open(sealed []byte, context string) ([]byte, error) {
	if len(sealed) < 1+idSize || sealed[0] != version {
		return nil, ErrSealed
	}
	id, box := [idSize]byte(sealed[1:]), sealed[1+idSize:]
	for _, k := range s.keys {
		if k.id != id {
			continue
		}
		if plain, err := k.aead.Open(nil, nil, box, []byte(context)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSealed
}

// Derive makes a key of 32 bytes for another purpose of each key in the file, in their order: the
// first is for what is new, all are for what was made before. Keys of different purposes have nothing
// to do with each other.
func (s *Sealer) Derive(purpose string) [][]byte {
	derived := make([][]byte, len(s.keys))
	for i, k := range s.keys {
		var err error
		if derived[i], err = hkdf.Key(sha256.New, k.secret, nil, purpose, keySize); err != nil {
			panic(err) // only for more bytes than a hash can give
		}
	}
	return derived
}
