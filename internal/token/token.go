// Package token issues and verifies the bearer tokens of the API: JWTs signed with Ed25519.
//
// Invariants:
//
//   - A token is valid only while its id is listed in the store, and only if the key that is stored with it signed it.
//   - A token itself is never stored.
//   - Only our own keys verify a token: headers that bring a key or ask for another rule are rejected.
//   - A revoked token is rejected at once: Revoke clears the cache.
package token

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

const issuer = "parley"

type Authority struct {
	store   *store.DB
	keyring *encrypt.Keyring
	parser  *jwt.Parser
	keys    atomic.Pointer[signingKeys]
	cache   cache                   // by token
	ids     cache                   // by id
	local   map[string]parley.Token // those of Local; not changed once requests are served
	dev     bool                    // see AcceptDev; not changed once requests are served

	touchMu sync.Mutex
	closed  bool
	touches sync.WaitGroup // pending writes of "last used"; none starts after Close
}

// Open reads the signing keys and creates the first one if there is none.
func Open(ctx context.Context, store *store.DB, keyring *encrypt.Keyring) (*Authority, error) {
	a := &Authority{
		store:   store,
		keyring: keyring,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithIssuer(issuer),
			jwt.WithStrictDecoding()),
		cache: cache{entries: map[string]*entry{}},
		ids:   cache{entries: map[string]*entry{}},
	}
	if err := a.readKeys(ctx); err != nil {
		return nil, err
	}
	if a.keys.Load().signing != nil {
		return a, nil
	}
	_, err := a.Rotate(ctx, Rotation{})
	return a, err
}

// Close waits for pending writes. Verify may still be called meanwhile.
func (a *Authority) Close() {
	a.touchMu.Lock()
	a.closed = true
	a.touchMu.Unlock()
	a.touches.Wait()
}

type claims struct {
	jwt.RegisteredClaims
	Kind    parley.TokenKind   `json:"kind"`
	Channel parley.ChannelCode `json:"channel,omitempty"`
}

// Issue stores a token's metadata and returns the token, which is not stored. It chooses an id unless t has one. also
// stores more in the same transaction.
func (a *Authority) Issue(ctx context.Context, t parley.Token, also ...func(*store.Tx, parley.Token) error) (signed string, err error) {
	if err := check(t); err != nil {
		return "", err
	}
	if t.ID == "" {
		t.ID = parley.NewTokenID()
	}
	if t.Kind == parley.AdminToken && t.Role == "" {
		t.Role = parley.Owner
	}
	t.CreatedAt, t.LastUsedAt, t.RevokedAt = time.Now().UTC().Truncate(time.Millisecond), time.Time{}, time.Time{}
	if !t.ExpiresAt.IsZero() {
		t.ExpiresAt = t.ExpiresAt.UTC().Truncate(time.Second) // the precision of the claim
	}
	if signed, err = a.sign(&t); err != nil {
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
		if err := checkKey(ctx, tx, t.SignedBy); err != nil {
			return err
		}
		err := tx.AddToken(ctx, t)
		for _, store := range also {
			err = errors.Join(err, store(tx, t))
		}
		return err
	})
	if errors.Is(err, errRetired) {
		err = errors.Join(err, a.readKeys(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("store token: %w", err)
	}
	return signed, nil
}

func check(t parley.Token) error {
	if _, err := parley.ParseTokenKind(string(t.Kind)); err != nil {
		return err
	}
	if (t.Kind == parley.ChannelToken) != (t.Channel != "") {
		return parley.InvalidField("channel", "A channel token names its channel; the other kinds name none.")
	}
	if err := checkRole(t); err != nil {
		return err
	}
	if !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(time.Now().Add(time.Second)) {
		return parley.InvalidField("expires_at", "A token must expire in the future.")
	}
	return nil
}

func checkRole(t parley.Token) error {
	if t.Role == "" {
		return nil
	}
	if t.Kind != parley.AdminToken {
		return parley.InvalidField("role", "Only an admin token has a role.")
	}
	_, err := parley.ParseRole(string(t.Role))
	return err
}

// errRetired happens when another node retires the key between the signature and the transaction.
var errRetired = parley.Errorf(parley.Unavailable, "The signing key was replaced just now. Try again.")

// checkKey checks that a signing key was not retired meanwhile.
func checkKey(ctx context.Context, tx *store.Tx, id string) error {
	keys, err := tx.SigningKeys(ctx)
	if err == nil && !slices.ContainsFunc(keys, func(k parley.SigningKey) bool { return k.ID == id }) {
		return errRetired
	}
	return err
}

// sign returns the signed token, and notes in t which key signed it.
func (a *Authority) sign(t *parley.Token) (string, error) {
	c := &claims{Kind: t.Kind, Channel: t.Channel}
	c.Issuer, c.Subject, c.ID, c.IssuedAt = issuer, t.Subject(), string(t.ID), jwt.NewNumericDate(t.CreatedAt)
	if !t.ExpiresAt.IsZero() {
		c.ExpiresAt = jwt.NewNumericDate(t.ExpiresAt)
	}
	ring := a.keys.Load()
	j := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	t.SignedBy, j.Header["kid"] = ring.signingID, ring.signingID
	signed, err := j.SignedString(ring.signing)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed, nil
}

// Revoke ends a token at once. Revoking twice is no error; an unknown id is [parley.ErrNotFound]. also stores more in the same
// transaction, and gets the token as it was.
func (a *Authority) Revoke(ctx context.Context, id parley.TokenID, also ...func(*store.Tx, parley.Token) error) error {
	err := a.store.Tx(ctx, func(tx *store.Tx) error {
		before, err := tx.Token(ctx, id)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		err = errors.Join(tx.RevokeToken(ctx, id, now), tx.EndTickets(ctx, id, now))
		for _, store := range also {
			err = errors.Join(err, store(tx, before))
		}
		return err
	})
	a.clearCaches()
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// Update changes the name or the role of a token. Another role ends the console sessions that it made. also stores more in the
// same transaction.
func (a *Authority) Update(
	ctx context.Context, id parley.TokenID, change func(*parley.Token), also func(tx *store.Tx, before, after parley.Token) error,
) (changed parley.Token, err error) {
	err = a.store.Tx(ctx, func(tx *store.Tx) error {
		old, err := tx.Token(ctx, id)
		if err != nil {
			return err
		}
		changed = old
		change(&changed)
		if err := checkRole(changed); err != nil {
			return err
		}
		if changed.Role != old.Role {
			err = tx.EndTickets(ctx, id, time.Now().UTC())
		}
		return errors.Join(err, tx.UpdateToken(ctx, changed), also(tx, old, changed))
	})
	a.clearCaches()
	if err != nil {
		return parley.Token{}, fmt.Errorf("change token: %w", err)
	}
	return changed, nil
}

// Refresh clears the cache and reads the keys again. Call it after tokens were removed without Revoke, such as with
// their channel.
func (a *Authority) Refresh(ctx context.Context) error {
	a.clearCaches()
	return a.readKeys(ctx)
}

// Evict makes the next use of some tokens read them again, after another node changed or removed them. It does not block.
func (a *Authority) Evict(which func(parley.Token) bool) {
	a.cache.evict(which)
	a.ids.evict(which)
}

func (a *Authority) clearCaches() {
	a.cache.clear()
	a.ids.clear()
}

func (a *Authority) JWKS() []byte { return a.keys.Load().jwks }

// AcceptDev makes this Authority accept the tokens of development servers, whose file may have been copied to other machines
// or committed. Call it before others use Verify.
func (a *Authority) AcceptDev() { a.dev = true }

// Local returns a token that only this Authority accepts, until the process ends. It is not stored, so it is not listed
// and cannot be revoked. It is for the command line of users who can read the data directory. Call it before others use
// Verify.
func (a *Authority) Local(kind parley.TokenKind) string {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	raw := localPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	if a.local == nil {
		a.local = map[string]parley.Token{}
	}
	a.local[raw] = LocalToken(kind)
	return raw
}

// localPrefix begins a local token, and its id.
const localPrefix = "local_"

// LocalToken is what is known of the token that Local returns.
func LocalToken(kind parley.TokenKind) parley.Token {
	t := parley.Token{ID: parley.TokenID(localPrefix + kind), Name: "command line", Kind: kind}
	if kind == parley.AdminToken {
		t.Role = parley.Owner
	}
	return t
}

// IsLocal reports whether a token is one of Local.
func IsLocal(t parley.Token) bool { return t.ID == parley.TokenID(localPrefix+t.Kind) }

// IsLocalID reports whether an id is that of a token of Local.
func IsLocalID(id parley.TokenID) bool { return strings.HasPrefix(string(id), localPrefix) }
