package callback

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

const (
	secretPrefix = "whsec_" // of the Standard Webhooks
	secretSize   = 32       // bytes; the standard wants 24 to 64
	// oldValid is how long the old secret signs beside a new one, so that a receiver has time to change
	// over.
	oldValid = 24 * time.Hour
)

// Secrets keeps the signing secrets, one for each owner, encrypted. What it read it remembers for a
// moment, because every attempt signs.
type Secrets struct {
	store   *store.DB
	keyring *encrypt.Keyring

	mu     sync.Mutex
	recent map[parley.SecretOwner]remembered
}

// remembered is a secret that was read.
type remembered struct {
	keys  Keys
	until time.Time
}

const (
	rememberFor   = time.Second // so that an old secret ends in time
	maxRemembered = 1000
)

// NewSecrets makes a keeper of secrets.
func NewSecrets(store *store.DB, keyring *encrypt.Keyring) *Secrets {
	return &Secrets{store: store, keyring: keyring, recent: map[parley.SecretOwner]remembered{}}
}

// KeysOf returns what to sign with for an owner. A secret is made on first use.
func (s *Secrets) KeysOf(ctx context.Context, owner parley.SecretOwner) (Keys, error) {
	s.mu.Lock()
	known, ok := s.recent[owner]
	s.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.keys, nil
	}
	stored, err := s.store.Secret(ctx, owner)
	if errors.Is(err, parley.ErrNotFound) {
		stored, err = s.make(ctx, owner)
	}
	if err != nil {
		return Keys{}, fmt.Errorf("secret of %s: %w", owner, err)
	}
	keys, err := s.open(stored)
	if err == nil {
		s.remember(owner, keys)
	}
	return keys, err
}

// Add stores the secret of a new owner in the transaction that adds the owner, and returns it.
func (s *Secrets) Add(ctx context.Context, tx *store.Tx, owner parley.SecretOwner) (string, error) {
	secret := newSecret()
	return secret, tx.SetSecret(ctx, parley.SigningSecret{Owner: owner, Encrypted: s.encrypt(owner, secret)})
}

// make stores a first secret, unless somebody else was faster.
func (s *Secrets) make(ctx context.Context, owner parley.SecretOwner) (stored parley.SigningSecret, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		stored, err = tx.Secret(ctx, owner)
		if !errors.Is(err, parley.ErrNotFound) {
			return err
		}
		if err := checkOwner(ctx, tx, owner); err != nil {
			return err
		}
		stored = parley.SigningSecret{Owner: owner, Encrypted: s.encrypt(owner, newSecret())}
		return tx.SetSecret(ctx, stored)
	})
	return stored, err
}

// checkOwner makes sure that the owner of a secret is still there.
func checkOwner(ctx context.Context, tx *store.Tx, owner parley.SecretOwner) error {
	if code := owner.Channel(); code != "" {
		return tx.CheckChannel(ctx, code, 0)
	}
	if id := owner.Webhook(); id != "" {
		_, err := tx.Webhook(ctx, id)
		return err
	}
	return nil
}

// Evict drops the cached secret of an owner that was deleted.
func (s *Secrets) Evict(owner parley.SecretOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.recent, owner)
}

// Rotate gives an owner a new secret. The one before it signs beside it for 24 hours; one from before
// that ends now. What is given also stores more in the same transaction; it gets the time at which the old one
// ends, zero where there was none.
func (s *Secrets) Rotate(
	ctx context.Context, owner parley.SecretOwner, also ...func(tx *store.Tx, oldUntil time.Time) error,
) (Keys, error) {
	fresh := newSecret()
	var stored parley.SigningSecret
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := checkOwner(ctx, tx, owner); err != nil {
			return err
		}
		old, err := tx.Secret(ctx, owner)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return err
		}
		stored = parley.SigningSecret{Owner: owner, Encrypted: s.encrypt(owner, fresh)}
		if err == nil {
			stored.OldEncrypted, stored.OldUntil = old.Encrypted, time.Now().Add(oldValid)
		}
		if err := tx.SetSecret(ctx, stored); err != nil {
			return err
		}
		for _, store := range also {
			if err := store(tx, stored.OldUntil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Keys{}, fmt.Errorf("rotate secret of %s: %w", owner, err)
	}
	keys, err := s.open(stored)
	if err == nil {
		s.remember(owner, keys)
	}
	return keys, err
}

func (s *Secrets) remember(owner parley.SecretOwner, keys Keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) >= maxRemembered {
		clear(s.recent)
	}
	s.recent[owner] = remembered{keys, time.Now().Add(rememberFor)}
}

func (s *Secrets) open(stored parley.SigningSecret) (Keys, error) {
	secret, err := s.keyring.Decrypt(stored.Encrypted, secretContext(stored.Owner))
	if err != nil {
		return Keys{}, fmt.Errorf("secret of %s: %w", stored.Owner, err)
	}
	keys := Keys{Secret: string(secret)}
	if stored.OldEncrypted != nil && time.Now().Before(stored.OldUntil) {
		old, err := s.keyring.Decrypt(stored.OldEncrypted, secretContext(stored.Owner))
		if err != nil {
			return Keys{}, fmt.Errorf("old secret of %s: %w", stored.Owner, err)
		}
		keys.Old, keys.OldUntil = string(old), stored.OldUntil
	}
	return keys, nil
}

func (s *Secrets) encrypt(owner parley.SecretOwner, secret string) []byte {
	return s.keyring.Encrypt([]byte(secret), secretContext(owner))
}

// Reencrypt encrypts a stored secret with the keys of another file.
func Reencrypt(stored parley.SigningSecret, from, to *encrypt.Keyring) (parley.SigningSecret, error) {
	for _, encrypted := range []*[]byte{&stored.Encrypted, &stored.OldEncrypted} {
		if *encrypted == nil {
			continue
		}
		secret, err := from.Decrypt(*encrypted, secretContext(stored.Owner))
		if err != nil {
			return parley.SigningSecret{}, fmt.Errorf("secret of %s: %w", stored.Owner, err)
		}
		*encrypted = to.Encrypt(secret, secretContext(stored.Owner))
	}
	return stored, nil
}

// secretContext is what an encrypted secret is bound to.
func secretContext(owner parley.SecretOwner) string { return "signing secret of " + string(owner) }

func newSecret() string {
	b := make([]byte, secretSize)
	rand.Read(b) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// keyOf returns the bytes that sign: what follows the prefix, decoded.
func keyOf(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) == 0 {
		return nil, errors.New("a signing secret is whsec_ and base64")
	}
	return key, nil
}
