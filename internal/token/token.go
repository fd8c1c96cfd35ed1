// Package token issues and checks the bearer tokens of the API: JWTs signed with Ed25519, each of
// which counts only while its id is listed in the store. It knows nothing of HTTP.
package token

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

// issuer is the "iss" claim of every token.
const issuer = "parley"

// Authority issues tokens and says which ones are good. Its methods may be called from several
// goroutines.
type Authority struct {
	store   *store.DB
	keyring *encrypt.Keyring
	parser  *jwt.Parser
	keys    atomic.Pointer[signingKeys]
	seen    cache
	local   map[string]parley.Token // those of Local; not changed once requests are served

	touching sync.Mutex
	closed   bool
	touches  sync.WaitGroup // writes of "last used" under way; none is begun once it is closed
}

// Open reads the signing keys from the store and makes the first one where there is none.
func Open(ctx context.Context, store *store.DB, keyring *encrypt.Keyring) (*Authority, error) {
	a := &Authority{
		store:   store,
		keyring: keyring,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithIssuer(issuer),
			jwt.WithStrictDecoding()),
	}
	a.seen.init()
	if err := a.readKeys(ctx); err != nil {
		return nil, err
	}
	if a.keys.Load().signing != nil {
		return a, nil
	}
	return a, a.Rotate(ctx)
}

// Close waits for what is being written. A request that is still being answered may call Verify meanwhile.
func (a *Authority) Close() {
	a.touching.Lock()
	a.closed = true
	a.touching.Unlock()
	a.touches.Wait()
}

// claims are what a token says.
type claims struct {
	Issuer    string             `json:"iss"`
	Subject   string             `json:"sub"`
	ID        parley.TokenID     `json:"jti"`
	IssuedAt  int64              `json:"iat"`
	ExpiresAt int64              `json:"exp,omitempty"`
	Kind      parley.TokenKind   `json:"kind"`
	Channel   parley.ChannelCode `json:"channel,omitempty"`
}

func (c *claims) GetIssuer() (string, error)              { return c.Issuer, nil }
func (c *claims) GetSubject() (string, error)             { return c.Subject, nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)  { return nil, nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)  { return nil, nil } // another clock may be ahead of ours
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) {
	if c.ExpiresAt == 0 {
		return nil, nil
	}
	return jwt.NewNumericDate(time.Unix(c.ExpiresAt, 0)), nil
}

// Issue stores a new token's metadata and returns the token, which is kept nowhere: what is not
// written down now is lost. An id is chosen unless t has one. What is given also stores more in the same
// transaction.
func (a *Authority) Issue(ctx context.Context, t parley.Token, also ...func(*store.Tx, parley.Token) error) (signed string, err error) {
	if err := check(t); err != nil {
		return "", err
	}
	if t.ID == "" {
		t.ID = parley.NewTokenID()
	}
	t.CreatedAt, t.LastUsedAt, t.RevokedAt = time.Now().UTC().Truncate(time.Millisecond), time.Time{}, time.Time{}
	if !t.ExpiresAt.IsZero() {
		t.ExpiresAt = t.ExpiresAt.UTC().Truncate(time.Second) // what the claim can say
	}
	if signed, err = a.sign(t); err != nil {
		return "", err
	}
	err = a.store.Tx(ctx, func(tx *store.Tx) error {
		if t.Kind == parley.ChannelToken {
			if _, err := tx.Channel(ctx, t.Channel); errors.Is(err, parley.ErrNotFound) {
				return parley.InvalidField("channel", fmt.Sprintf("There is no channel %s.", t.Channel))
			} else if err != nil {
				return err
			}
		}
		if err := tx.AddToken(ctx, t); err != nil {
			return err
		}
		for _, store := range also {
			if err := store(tx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("store token: %w", err)
	}
	return signed, nil
}

// check says what is wrong with a token to be issued.
func check(t parley.Token) error {
	if _, err := parley.ParseTokenKind(string(t.Kind)); err != nil {
		return err
	}
	if (t.Kind == parley.ChannelToken) != (t.Channel != "") {
		return parley.InvalidField("channel", "A channel token names its channel; the other kinds name none.")
	}
	if !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(time.Now().Add(time.Second)) {
		return parley.InvalidField("expires_at", "A token must expire in the future.")
	}
	return nil
}

func (a *Authority) sign(t parley.Token) (string, error) {
	c := &claims{
		Issuer: issuer, Subject: t.Subject(), ID: t.ID, IssuedAt: t.CreatedAt.Unix(),
		Kind: t.Kind, Channel: t.Channel,
	}
	if !t.ExpiresAt.IsZero() {
		c.ExpiresAt = t.ExpiresAt.Unix()
	}
	ring := a.keys.Load()
	j := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	j.Header["kid"] = ring.signingID
	signed, err := j.SignedString(ring.signing)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed, nil
}

// Revoke ends a token at once. Revoking twice is no error; an unknown id is [parley.ErrNotFound].
func (a *Authority) Revoke(ctx context.Context, id parley.TokenID) error {
	err := a.store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Token(ctx, id); err != nil {
			return err
		}
		return tx.RevokeToken(ctx, id, time.Now().UTC())
	})
	a.seen.clear()
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// Refresh forgets which tokens were valid and reads the keys again. It is to be called when tokens were removed
// from the store other than by Revoke: with their channel.
func (a *Authority) Refresh(ctx context.Context) error {
	a.seen.clear()
	return a.readKeys(ctx)
}

// JWKS returns the public keys as a JSON Web Key Set.
func (a *Authority) JWKS() []byte { return a.keys.Load().jwks }
