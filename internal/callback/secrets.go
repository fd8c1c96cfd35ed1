package callback

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
	// oldSecretValid is how long an old secret still signs after a rotation, so that receivers can change over.
	oldSecretValid = 24 * time.Hour

	cacheTTL  = time.Second // short, so that an old secret ends in time
	cacheSize = 1000
)

// Secrets stores the signing secrets encrypted, one for each owner, and the credentials of channels, as network.Credentials. It caches
// them shortly, because every attempt signs.
type Secrets struct {
	store   *store.DB
	keyring *encrypt.Keyring

	mu    sync.Mutex
	cache map[parley.SecretOwner]cachedKeys
}

type cachedKeys struct {
	keys  Keys
	until time.Time
}

func NewSecrets(store *store.DB, keyring *encrypt.Keyring) *Secrets {
	return &Secrets{store: store, keyring: keyring, cache: map[parley.SecretOwner]cachedKeys{}}
}

// Keys returns the signing keys of an owner. It creates a secret on first use.
func (s *Secrets) Keys(ctx context.Context, owner parley.SecretOwner) (Keys, error) {
	keys, err := s.keys(ctx, owner)
	if !errors.Is(err, parley.ErrNotFound) {
		return keys, err
	}
	stored, err := s.create(ctx, owner)
	if err != nil {
		return Keys{}, fmt.Errorf("secret of %s: %w", owner, err)
	}
	return s.decrypt(stored)
}

// keys returns the stored secrets of an owner.
func (s *Secrets) keys(ctx context.Context, owner parley.SecretOwner) (Keys, error) {
	s.mu.Lock()
	cached, ok := s.cache[owner]
	s.mu.Unlock()
	if ok && time.Now().Before(cached.until) {
		return cached.keys, nil
	}
	stored, err := s.store.Secret(ctx, owner)
	if err != nil {
		return Keys{}, fmt.Errorf("secret of %s: %w", owner, err)
	}
	return s.decrypt(stored)
}

// Add creates the secret of a new owner in the transaction that adds the owner.
func (s *Secrets) Add(ctx context.Context, tx *store.Tx, owner parley.SecretOwner) (string, error) {
	secret, stored := s.newSecret(owner)
	return secret, tx.SetSecret(ctx, stored)
}

// create stores a first secret, unless another request was faster.
func (s *Secrets) create(ctx context.Context, owner parley.SecretOwner) (stored parley.SigningSecret, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		stored, err = tx.Secret(ctx, owner)
		if !errors.Is(err, parley.ErrNotFound) {
			return err
		}
		if err := checkOwner(ctx, tx, owner); err != nil {
			return err
		}
		_, stored = s.newSecret(owner)
		return tx.SetSecret(ctx, stored)
	})
	return stored, err
}

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

// Evict removes a deleted owner from the cache.
func (s *Secrets) Evict(owner parley.SecretOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cache, owner)
}

// Rotate gives an owner a new secret. The previous one still signs for 24 hours; older ones end now. inTx runs in the same
// transaction, with the time at which the previous one ends, zero if there was none.
func (s *Secrets) Rotate(
	ctx context.Context, owner parley.SecretOwner, inTx ...func(tx *store.Tx, oldUntil time.Time) error,
) (Keys, error) {
	_, stored := s.newSecret(owner)
	return s.replace(ctx, stored, inTx...)
}

// Credentials returns what [Secrets.SetCredentials] stored last, and for 24 hours after a change also what it replaced; nil: nothing.
func (s *Secrets) Credentials(ctx context.Context, channel parley.Channel) (current, old []byte, err error) {
	keys, err := s.keys(ctx, parley.NetworkSecret(channel.ID))
	if err != nil {
		return nil, nil, parley.IgnoreNotFound(err)
	}
	if keys.Old != "" {
		old = []byte(keys.Old)
	}
	return []byte(keys.Secret), old, nil
}

// SetCredentials stores what a channel needs on its network. They are deleted with the channel.
func (s *Secrets) SetCredentials(ctx context.Context, channel parley.Channel, credentials []byte) error {
	_, err := s.replace(ctx, s.encrypt(parley.NetworkSecret(channel.ID), credentials), func(tx *store.Tx, _ time.Time) error {
		return tx.CheckChannel(ctx, channel.Code, channel.ID)
	})
	return err
}

// SetCredentialsIn is SetCredentials within a transaction that changes the channel.
func (s *Secrets) SetCredentialsIn(ctx context.Context, tx *store.Tx, channel parley.Channel, credentials []byte) error {
	stored := s.encrypt(parley.NetworkSecret(channel.ID), credentials)
	defer s.Evict(stored.Owner)
	return s.replaceIn(ctx, tx, &stored)
}

// replace stores a secret in place of the current one of its owner, which becomes the old one.
func (s *Secrets) replace(
	ctx context.Context, stored parley.SigningSecret, inTx ...func(tx *store.Tx, oldUntil time.Time) error,
) (Keys, error) {
	owner := stored.Owner
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := s.replaceIn(ctx, tx, &stored); err != nil {
			return err
		}
		for _, do := range inTx {
			if err := do(tx, stored.OldUntil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Keys{}, fmt.Errorf("rotate secret of %s: %w", owner, err)
	}
	return s.decrypt(stored)
}

func (s *Secrets) replaceIn(ctx context.Context, tx *store.Tx, stored *parley.SigningSecret) error {
	if err := checkOwner(ctx, tx, stored.Owner); err != nil {
		return err
	}
	old, err := tx.Secret(ctx, stored.Owner)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	if err == nil {
		stored.OldEncrypted, stored.OldUntil = old.Encrypted, time.Now().Add(oldSecretValid)
	}
	return tx.SetSecret(ctx, *stored)
}

func (s *Secrets) decrypt(stored parley.SigningSecret) (Keys, error) {
	secret, err := s.keyring.Decrypt(stored.Encrypted, SecretContext(stored.Owner))
	if err != nil {
		return Keys{}, fmt.Errorf("secret of %s: %w", stored.Owner, err)
	}
	keys := Keys{Secret: string(secret)}
	if stored.OldEncrypted != nil && time.Now().Before(stored.OldUntil) {
		old, err := s.keyring.Decrypt(stored.OldEncrypted, SecretContext(stored.Owner))
		if err != nil {
			return Keys{}, fmt.Errorf("old secret of %s: %w", stored.Owner, err)
		}
		keys.Old, keys.OldUntil = string(old), stored.OldUntil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cache) >= cacheSize {
		clear(s.cache)
	}
	s.cache[stored.Owner] = cachedKeys{keys, time.Now().Add(cacheTTL)}
	return keys, nil
}

func (s *Secrets) newSecret(owner parley.SecretOwner) (string, parley.SigningSecret) {
	b := make([]byte, secretSize)
	rand.Read(b) // never fails
	secret := secretPrefix + base64.StdEncoding.EncodeToString(b)
	return secret, s.encrypt(owner, []byte(secret))
}

func (s *Secrets) encrypt(owner parley.SecretOwner, secret []byte) parley.SigningSecret {
	return parley.SigningSecret{Owner: owner, Encrypted: s.keyring.Encrypt(secret, SecretContext(owner))}
}

// Reencrypt encrypts a stored secret with another keyring.
func Reencrypt(stored parley.SigningSecret, from, to *encrypt.Keyring) (parley.SigningSecret, error) {
	for _, encrypted := range []*[]byte{&stored.Encrypted, &stored.OldEncrypted} {
		if *encrypted == nil {
			continue
		}
		secret, err := from.Decrypt(*encrypted, SecretContext(stored.Owner))
		if err != nil {
			return parley.SigningSecret{}, fmt.Errorf("secret of %s: %w", stored.Owner, err)
		}
		*encrypted = to.Encrypt(secret, SecretContext(stored.Owner))
	}
	return stored, nil
}

// SecretContext binds an encrypted secret to its owner.
func SecretContext(owner parley.SecretOwner) string { return "signing secret of " + string(owner) }

func keyFromSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) == 0 {
		return nil, errors.New("a signing secret is whsec_ and base64")
	}
	return key, nil
}

// The headers of the Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Keys are the secrets of one owner: the current one, and for a while after a rotation the old one.
type Keys struct {
	Secret   string // "whsec_" and base64
	Old      string // empty: none
	OldUntil time.Time
}

// SignRequest sets the three headers of the Standard Webhooks. The time is that of the attempt; the id is that of the
// event, the same in every attempt.
func (k Keys) SignRequest(h http.Header, id parley.EventID, at time.Time, body []byte) error {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signed := make([]byte, 0, len(id)+len(stamp)+len(body)+2)
	signed = fmt.Appendf(signed, "%s.%s.", id, stamp)
	signature, err := k.sign(append(signed, body...))
	if err != nil {
		return err
	}
	h.Set(headerID, string(id))
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, signature)
	return nil
}

// param is a query parameter, unencoded.
type param struct{ key, value string }

// signParams signs sorted query parameters as lines of key=value. A GET has no body, and parameters survive proxies that
// rewrite the address.
func (k Keys) signParams(sorted []param) (string, error) {
	lines := make([]string, len(sorted))
	for i, p := range sorted {
		lines[i] = p.key + "=" + p.value
	}
	return k.sign([]byte(strings.Join(lines, "\n")))
}

// sign returns the signature of the secret and, while it is valid, that of the old secret after it.
func (k Keys) sign(data []byte) (string, error) {
	secrets := []string{k.Secret}
	if k.Old != "" {
		secrets = append(secrets, k.Old)
	}
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := keyFromSecret(secret)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write(data)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}
