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

// Rotate makes a new signing key. Tokens that older keys signed stay good. also stores more in the same transaction.
func (a *Authority) Rotate(ctx context.Context, also ...func(tx *store.Tx, id string) error) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	id := make([]byte, 8)
	rand.Read(id) // never fails
	k := parley.SigningKey{ID: "key_" + hex.EncodeToString(id), Public: public, CreatedAt: time.Now().UTC()}
	k.Encrypted = a.keyring.Encrypt(private.Seed(), k.ID)
	err = a.store.Tx(ctx, func(tx *store.Tx) error {
		err := tx.AddSigningKey(ctx, k)
		for _, store := range also {
			err = errors.Join(err, store(tx, k.ID))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store signing key: %w", err)
	}
	return a.readKeys(ctx)
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
