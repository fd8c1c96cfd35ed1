package token

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/internal/store"
)

// maxToken bounds a token's length. Ours have about 350 characters; longer ones are rejected unparsed.
const maxToken = 4 << 10

// touchEvery is how exactly it is known when a token was last used.
const touchEvery = time.Minute

// ErrSigned is in the chain of every error about a token that one of our own keys signed: it was revoked, it
// expired, or its channel was deleted. Presenting such a token is not an attempt to guess one.
var ErrSigned = errors.New("signed by this server")

// The errors for an invalid token. A caller learns no more about the cause.
var (
	errNoToken   = parley.Errorf(parley.Unauthenticated, "No token was sent. Send one header Authorization: Bearer <token>.")
	errNotAToken = parley.Errorf(parley.Unauthenticated,
		"This is not a token. Make one with parley token create, and send it as it was printed.")
	errExpired = &parley.Error{Code: parley.TokenExpired, Cause: ErrSigned,
		Message: "The token has expired. Make a new one with: parley token create"}
)

// errDev rejects a token of dev.env on a production server.
var errDev = &parley.Error{Code: parley.Unauthenticated, Cause: ErrSigned,
	Message: "This token was made by parley dev, and parley serve does not accept it. Make one with: parley token create"}

func errNotValid(cause error) *parley.Error {
	return &parley.Error{Code: parley.Unauthenticated, Cause: cause,
		Message: "This token is not valid on this server: it was revoked, its channel was deleted, or another server made it. " +
			"Make a new one with parley token create."}
}

func errUnchecked(cause error) *parley.Error {
	return &parley.Error{Code: parley.Unavailable, Message: "Tokens cannot be checked just now. Try again soon.", Cause: cause}
}

// Verify returns the metadata of a token, or a [parley.Error] that is Unauthenticated or TokenExpired. The first call
// checks its signature and the store; later ones use the cache.
func (a *Authority) Verify(ctx context.Context, raw string) (parley.Token, error) {
	return a.VerifyFrom(ctx, raw, func() (from, userAgent string) { return "", "" })
}

// VerifyFrom is Verify with the user of the token: address and program. who is called only when they are stored, once a
// minute for each token.
func (a *Authority) VerifyFrom(ctx context.Context, raw string, who func() (from, userAgent string)) (parley.Token, error) {
	now := time.Now()
	if e := a.cache.get(raw); e != nil {
		if !e.token.Active(now) {
			return parley.Token{}, errExpired // a revoked one is not in the cache
		}
		a.touch(ctx, e, now, who)
		return e.token, nil
	}
	switch {
	case raw == "":
		return parley.Token{}, errNoToken
	case !wellFormed(raw):
		return parley.Token{}, errNotAToken
	}
	if t, isLocal := a.local[raw]; isLocal {
		return t, nil
	}
	generation := a.cache.generation()
	t, err := a.check(ctx, raw, now)
	if err != nil {
		return parley.Token{}, err
	}
	e := newEntry(t)
	a.cache.add(raw, e, generation)
	a.touch(ctx, e, now, who)
	return t, nil
}

// ByID returns the metadata of a token that another node verified, if it is still valid. Its id alone proves nothing, so the id must
// not come from a caller.
func (a *Authority) ByID(ctx context.Context, id parley.TokenID) (parley.Token, error) {
	if IsLocalID(id) {
		return LocalToken(parley.TokenKind(strings.TrimPrefix(string(id), localPrefix))), nil
	}
	if e := a.ids.get(string(id)); e != nil && e.token.Active(time.Now()) {
		return e.token, nil
	}
	generation := a.ids.generation()
	t, err := a.read(ctx, id, time.Now())
	if err != nil {
		return parley.Token{}, err
	}
	a.ids.add(string(id), newEntry(t), generation)
	return t, nil
}

// read returns a token that the store lists, if it is valid.
func (a *Authority) read(ctx context.Context, id parley.TokenID, now time.Time) (parley.Token, error) {
	t, err := a.store.Token(ctx, id)
	switch {
	case errors.Is(err, parley.ErrNotFound), err == nil && !t.RevokedAt.IsZero():
		return parley.Token{}, errNotValid(ErrSigned)
	case err != nil:
		return parley.Token{}, errUnchecked(err)
	case !t.Active(now):
		return parley.Token{}, errExpired
	}
	return t, nil
}

// wellFormed rejects long tokens, and characters that base64url does not have: the decoder would skip line breaks, and
// one token must have one spelling.
func wellFormed(raw string) bool {
	return len(raw) <= maxToken && strings.Trim(raw, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// check verifies the signature and the claims, and that the store lists just this token.
func (a *Authority) check(ctx context.Context, raw string, now time.Time) (parley.Token, error) {
	c := &claims{}
	parsed, err := a.parser.ParseWithClaims(raw, c, a.verificationKey) // looks at the claims only after the signature
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return parley.Token{}, errExpired
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return parley.Token{}, errNotValid(ErrSigned)
	case errors.Is(err, jwt.ErrTokenMalformed):
		return parley.Token{}, errNotAToken
	case err != nil:
		return parley.Token{}, errNotValid(nil)
	}
	t, err := a.read(ctx, parley.TokenID(c.ID), now)
	switch {
	case err != nil:
		return parley.Token{}, err
	case t.SignedBy != parsed.Header["kid"]: // an old key that leaked must not forge newer tokens
		return parley.Token{}, errNotValid(ErrSigned)
	case t.Kind != c.Kind || t.Channel != c.Channel || t.Subject() != c.Subject:
		return parley.Token{}, errNotValid(ErrSigned)
	case t.Dev && !a.dev:
		return parley.Token{}, errDev
	}
	return t, nil
}

// refusedHeaders bring a key or ask for a rule that is not supported.
var refusedHeaders = []string{"jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "zip"}

// verificationKey finds the key that a token names, in our own table and nowhere else.
func (a *Authority) verificationKey(t *jwt.Token) (any, error) {
	for _, name := range refusedHeaders {
		if _, there := t.Header[name]; there {
			return nil, errors.New("refused header")
		}
	}
	id, _ := t.Header["kid"].(string)
	key, known := a.keys.Load().public[id]
	if !known {
		return nil, errors.New("unknown key")
	}
	return key, nil
}

// touch stores at most once a minute, in the background, that a token was used and by whom. Errors are ignored: the
// next minute repeats it.
func (a *Authority) touch(ctx context.Context, e *entry, now time.Time, who func() (from, userAgent string)) {
	last := e.touched.Load()
	if now.UnixMilli()-last < touchEvery.Milliseconds() || !e.touched.CompareAndSwap(last, now.UnixMilli()) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	id, use := e.token.ID, parley.TokenUse{At: now.UTC()}
	use.From, use.UserAgent = who()
	a.touchMu.Lock()
	defer a.touchMu.Unlock()
	if a.closed {
		return
	}
	a.touches.Go(func() {
		_ = a.store.Tx(ctx, func(tx *store.Tx) error { return tx.SetTokenUse(ctx, id, use) })
	})
}

// maxCached bounds the cache: 10,000 tokens take about 8 MB.
const maxCached = 10_000

// cache holds valid tokens by their whole text. The map's hash is seeded and its comparison complete, so collisions
// cannot be forged.
type cache struct {
	mu      sync.RWMutex
	entries map[string]*entry
	cleared uint64 // counts the calls of clear
}

type entry struct {
	token   parley.Token
	touched atomic.Int64 // when "last used" was last written, in Unix milliseconds
}

func newEntry(t parley.Token) *entry {
	e := &entry{token: t}
	if !t.LastUsedAt.IsZero() {
		e.touched.Store(t.LastUsedAt.UnixMilli())
	}
	return e
}

func (c *cache) get(raw string) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[raw]
}

// generation must be read before the store is queried, for add.
func (c *cache) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cleared
}

// add caches a token unless the cache was cleared since generation: it may have been revoked in between. A full cache
// evicts some other token.
func (c *cache) add(raw string, e *entry, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cleared != generation {
		return
	}
	if len(c.entries) >= maxCached {
		for other := range c.entries {
			delete(c.entries, other)
			break
		}
	}
	c.entries[raw] = e
}

// evict removes some tokens.
func (c *cache) evict(which func(parley.Token) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleared++
	for raw, e := range c.entries {
		if which(e.token) {
			delete(c.entries, raw)
		}
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleared++
	clear(c.entries)
}
