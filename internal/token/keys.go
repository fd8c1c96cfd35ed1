package token

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

// signingKeys holds the keys as they were read from the store. It is never changed, only replaced.
type signingKeys struct {
	signingID string
	signing   ed25519.PrivateKey // nil: there is no key yet
	public    map[string]ed25519.PublicKey
	jwks      []byte
}

// Rotation says what to do with the signing keys.
type Rotation struct {
	Retire      bool // remove the older keys, and revoke the tokens that they signed
	KeepCurrent bool // make no new key: the present one stays
}

// Rotate makes a new signing key. Tokens that older keys signed stay valid unless those keys are retired; then it returns the tokens
// that end. also stores more in the same transaction.
func (a *Authority) Rotate(
	ctx context.Context, r Rotation, also ...func(tx *store.Tx, id string, ended []parley.Token) error,
) (ended []parley.Token, err error) {
	k, err := a.newSigningKey()
	if err != nil {
		return nil, err
	}
	err = a.store.Tx(ctx, func(tx *store.Tx) error {
		ended = nil
		if !r.KeepCurrent {
			if err := tx.AddSigningKey(ctx, k); err != nil {
				return err
			}
		}
		keys, err := tx.SigningKeys(ctx)
		if err != nil {
			return err
		}
		if r.Retire {
			if ended, err = retire(ctx, tx, keys); err != nil {
				return err
			}
		}
		for _, store := range also {
			err = errors.Join(err, store(tx, keys[0].ID, ended))
		}
		return err
	})
	a.clearCaches()
	if err != nil {
		return nil, fmt.Errorf("store signing key: %w", err)
	}
	return ended, a.readKeys(ctx)
}

func (a *Authority) newSigningKey() (parley.SigningKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return parley.SigningKey{}, fmt.Errorf("make signing key: %w", err)
	}
	id := make([]byte, 8)
	rand.Read(id) // never fails
	k := parley.SigningKey{ID: "key_" + hex.EncodeToString(id), Public: public, CreatedAt: time.Now().UTC()}
	k.Encrypted = a.keyring.Encrypt(private.Seed(), k.ID)
	return k, nil
}

// retire removes all keys but the first, and revokes the tokens that another key signed, with their console sessions.
func retire(ctx context.Context, tx *store.Tx, keys []parley.SigningKey) (ended []parley.Token, err error) {
	for _, k := range keys[1:] {
		if err := tx.RemoveSigningKey(ctx, k.ID); err != nil {
			return nil, err
		}
	}
	tokens, err := tx.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	for _, t := range tokens {
		if t.SignedBy == keys[0].ID || !t.Active(now) {
			continue
		}
		if err := errors.Join(tx.RevokeToken(ctx, t.ID, now), tx.EndTickets(ctx, t.ID, now)); err != nil {
			return nil, err
		}
		t.RevokedAt = now
		ended = append(ended, t)
	}
	return ended, nil
}

// readKeys reads the keys from the store. Only the newest secret is decrypted: the others no longer sign.
func (a *Authority) readKeys(ctx context.Context) error {
	stored, err := a.store.SigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	ring := &signingKeys{public: make(map[string]ed25519.PublicKey, len(stored))}
	for _, k := range stored {
		if len(k.Public) != ed25519.PublicKeySize {
			return fmt.Errorf("signing key %s: its public half has %d bytes", k.ID, len(k.Public))
		}
		ring.public[k.ID] = ed25519.PublicKey(k.Public)
	}
	if len(stored) > 0 {
		seed, err := a.keyring.Decrypt(stored[0].Encrypted, stored[0].ID)
		if err != nil || len(seed) != ed25519.SeedSize {
			return fmt.Errorf("signing key %s: is the key file the one that it was made with? %w", stored[0].ID, err)
		}
		ring.signingID, ring.signing = stored[0].ID, ed25519.NewKeyFromSeed(seed)
	}
	if ring.jwks, err = encodeJWKS(stored); err != nil {
		return err
	}
	a.keys.Store(ring)
	return nil
}

type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Use       string `json:"use"`
}

func encodeJWKS(keys []parley.SigningKey) ([]byte, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, k := range keys {
		x := base64.RawURLEncoding.EncodeToString(k.Public)
		set.Keys = append(set.Keys, jwk{Type: "OKP", Curve: "Ed25519", X: x, ID: k.ID, Algorithm: "EdDSA", Use: "sig"})
	}
	return json.Marshal(set)
}
