package token

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

func TestIssueAndVerify(t *testing.T) {
	a, db := newAuthority(t)
	for _, want := range []parley.Token{
		{Kind: parley.ChannelToken, Channel: "main", Name: "shop"},
		{Kind: parley.GlobalToken},
		{Kind: parley.AdminToken, ExpiresAt: time.Now().Add(time.Hour)},
	} {
		raw := issue(t, a, want)
		for range 2 { // the second time from the cache
			got, err := a.Verify(t.Context(), raw)
			if err != nil {
				t.Fatalf("%s token: %v", want.Kind, err)
			}
			if got.Kind != want.Kind || got.Channel != want.Channel || got.Name != want.Name || got.ID == "" {
				t.Errorf("Verify = %+v, want %+v", got, want)
			}
		}
	}
	tokens, err := db.Tokens(t.Context())
	if err != nil || len(tokens) != 3 {
		t.Fatalf("stored tokens: %d, %v", len(tokens), err)
	}
}

func TestIssueRefuses(t *testing.T) {
	a, _ := newAuthority(t)
	for name, bad := range map[string]parley.Token{
		"no kind":                 {},
		"unknown kind":            {Kind: "root"},
		"channel token without":   {Kind: parley.ChannelToken},
		"global with a channel":   {Kind: parley.GlobalToken, Channel: "main"},
		"channel that is not":     {Kind: parley.ChannelToken, Channel: "nobody"},
		"expired before it began": {Kind: parley.GlobalToken, ExpiresAt: time.Now().Add(-time.Hour)},
	} {
		if raw, err := a.Issue(t.Context(), bad); err == nil || raw != "" {
			t.Errorf("%s: issued", name)
		} else if parley.ToCode(err) == parley.Internal {
			t.Errorf("%s: %v is no error for the caller", name, err)
		}
	}
}

func TestExpiryCountsAtEveryHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newAuthority(t)
		raw := issue(t, a, parley.Token{Kind: parley.GlobalToken, ExpiresAt: time.Now().Add(10 * time.Second)})
		verify(t, a, raw)
		time.Sleep(9 * time.Second) // of the bubble's clock
		verify(t, a, raw)
		time.Sleep(time.Second)
		_, err := a.Verify(t.Context(), raw)
		if err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("from the cache: %v", err)
		}
		a.Refresh(t.Context())
		_, again := a.Verify(t.Context(), raw)
		if again == nil || again.Error() != err.Error() {
			t.Errorf("from the store: %v, want %v", again, err)
		}
		a.Close()
	})
}

func TestRevoke(t *testing.T) {
	a, db := newAuthority(t)
	other, err := Open(t.Context(), db, a.keyring)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	raw := issue(t, a, parley.Token{Kind: parley.GlobalToken})
	token := verify(t, a, raw)
	verify(t, other, raw)

	for range 2 {
		if err := a.Revoke(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, a, raw)
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, other, raw)
	if err := a.Revoke(t.Context(), "tok_unknown"); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("revoking an unknown token: %v", err)
	}
}

// A token that is looked up while it is being revoked must not stay in the cache.
func TestRevokeUnderLoad(t *testing.T) {
	a, _ := newAuthority(t)
	for range 20 {
		raw := issue(t, a, parley.Token{Kind: parley.GlobalToken})
		token := verify(t, a, raw)
		a.cache.clear()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					a.Verify(context.Background(), raw)
				}
			})
		}
		if err := a.Revoke(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
		refused(t, a, raw)
		wg.Wait()
		refused(t, a, raw)
	}
}

func TestRotateUnderLoad(t *testing.T) {
	a, _ := newAuthority(t)
	old := issue(t, a, parley.Token{Kind: parley.GlobalToken})
	var wrong atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				raw, err := a.Issue(context.Background(), parley.Token{Kind: parley.GlobalToken})
				if err != nil {
					wrong.Add(1)
					return
				}
				for _, one := range []string{raw, old} {
					if _, err := a.Verify(context.Background(), one); err != nil {
						wrong.Add(1)
					}
				}
			}
		})
	}
	for range 5 {
		if _, err := a.Rotate(t.Context(), Rotation{}); err != nil {
			t.Fatal(err)
		}
		a.Refresh(t.Context())
	}
	close(stop)
	wg.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d good tokens were refused while keys changed", n)
	}
	if got := strings.Count(string(a.JWKS()), `"kid"`); got != 6 {
		t.Errorf("JWKS has %d keys, want 6", got)
	}
}

// TestOldKeyForgesNothing: somebody who got an old key, from a backup, can sign the id of a newer token with it.
func TestOldKeyForgesNothing(t *testing.T) {
	a, _ := newAuthority(t)
	leaked, leakedID := a.keys.Load().signing, a.keys.Load().signingID
	old := issue(t, a, parley.Token{Kind: parley.GlobalToken})
	if ended, err := a.Rotate(t.Context(), Rotation{}); err != nil || ended != nil {
		t.Fatalf("rotated: %v ended, %v", ended, err)
	}
	good := issue(t, a, parley.Token{Kind: parley.AdminToken})
	header, claims := parts(t, good)
	header["kid"] = leakedID
	forged := signEd(header, claims, leaked)
	refused(t, a, forged)
	verify(t, a, old)
	verify(t, a, good)

	ended, err := a.Rotate(t.Context(), Rotation{Retire: true, KeepCurrent: true})
	if err != nil || len(ended) != 1 || ended[0].Kind != parley.GlobalToken || ended[0].RevokedAt.IsZero() {
		t.Fatalf("ended %+v, %v; want the old token", ended, err)
	}
	refused(t, a, old)
	refused(t, a, forged)
	verify(t, a, good)
	if strings.Contains(string(a.JWKS()), leakedID) {
		t.Error("the retired key is still published")
	}

	// Retired at once: everything ends, and an authority that has not heard of it signs nothing that is refused later.
	other, err := Open(t.Context(), a.store, a.keyring)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if ended, err = a.Rotate(t.Context(), Rotation{Retire: true}); err != nil || len(ended) != 1 {
		t.Fatalf("ended %+v, %v", ended, err)
	}
	refused(t, a, good)
	if _, err := other.Issue(t.Context(), parley.Token{Kind: parley.GlobalToken}); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("signed with a retired key: %v", err)
	}
	verify(t, a, issue(t, other, parley.Token{Kind: parley.GlobalToken}))
}

func TestKeysSurviveReopening(t *testing.T) {
	a, db := newAuthority(t)
	raw := issue(t, a, parley.Token{Kind: parley.GlobalToken})
	again, err := Open(t.Context(), db, a.keyring)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	verify(t, again, raw)
	if !bytes.Equal(a.JWKS(), again.JWKS()) {
		t.Error("another key after reopening")
	}
	wrongKey, err := encrypt.OpenKeyFile(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), db, wrongKey); err == nil {
		t.Error("opened with another key file")
	}
}

func TestJWKSHoldsNothingPrivate(t *testing.T) {
	a, db := newAuthority(t)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(a.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		for member := range key {
			if !strings.Contains("kty crv x kid alg use", member) {
				t.Errorf("JWKS has the member %q", member)
			}
		}
	}
	keys, err := db.SigningKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if bytes.Contains(keys[0].Encrypted, a.keys.Load().signing.Seed()) {
		t.Error("the seed is stored in clear")
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := cache{entries: map[string]*entry{}}
	for i := range maxCached + 500 {
		c.add(fmt.Sprint(i), newEntry(parley.Token{}), c.generation())
	}
	if len(c.entries) != maxCached {
		t.Errorf("%d entries, want %d", len(c.entries), maxCached)
	}
	generation := c.generation()
	c.clear()
	c.add("late", newEntry(parley.Token{}), generation)
	if c.get("late") != nil {
		t.Error("a token looked up before the cache was cleared came in after")
	}
}

func TestLastUsedIsStoredToTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, db := newAuthority(t)
		raw := issue(t, a, parley.Token{Kind: parley.GlobalToken})
		id := verify(t, a, raw).ID
		first := lastUsed(t, a, db, id)
		if first.IsZero() {
			t.Fatal("the first use was not written")
		}
		time.Sleep(59 * time.Second)
		verify(t, a, raw)
		a.Refresh(t.Context()) // what was written counts, not what was remembered
		verify(t, a, raw)
		if got := lastUsed(t, a, db, id); !got.Equal(first) {
			t.Errorf("written again after %v", got.Sub(first))
		}
		time.Sleep(time.Second)
		verify(t, a, raw)
		if got := lastUsed(t, a, db, id); !got.After(first) {
			t.Error("not written after a minute")
		}
	})
}

func lastUsed(t *testing.T, a *Authority, db *store.DB, id parley.TokenID) time.Time {
	t.Helper()
	a.touches.Wait()
	token, err := db.Token(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return token.LastUsedAt
}

func TestLongTokensAreNotParsed(t *testing.T) {
	a, _ := newAuthority(t)
	dots := strings.Repeat(".", 1<<20)
	if allocs := testing.AllocsPerRun(10, func() { a.Verify(t.Context(), dots) }); allocs > 3 {
		t.Errorf("%v allocations for a megabyte of dots", allocs)
	}
	refused(t, a, dots)
}

func BenchmarkVerifyCached(b *testing.B) {
	a, _ := newAuthority(b)
	raw := issue(b, a, parley.Token{Kind: parley.GlobalToken})
	for b.Loop() {
		if _, err := a.Verify(b.Context(), raw); err != nil {
			b.Fatal(err)
		}
	}
}

func newAuthority(t testing.TB) (*Authority, *store.DB) { return newAuthorityNamed(t, t.Name()) }

func newAuthorityNamed(t testing.TB, name string) (*Authority, *store.DB) {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keyring, err := encrypt.OpenKeyFile(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "main", Name: "Main", Network: parley.Sandbox, CreatedAt: time.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), db, keyring)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, db
}

func issue(t testing.TB, a *Authority, token parley.Token) string {
	t.Helper()
	raw, err := a.Issue(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func verify(t testing.TB, a *Authority, raw string) parley.Token {
	t.Helper()
	token, err := a.Verify(t.Context(), raw)
	if err != nil {
		t.Fatalf("a good token was refused: %v", err)
	}
	return token
}

func refused(t testing.TB, a *Authority, raw string) {
	t.Helper()
	_, err := a.Verify(t.Context(), raw)
	if parley.ToCode(err) != parley.Unauthenticated {
		t.Errorf("not refused: %v", err)
	} else if !isOneOf(err, errNoToken, errNotAToken, errNotValid(nil)) {
		t.Errorf("another sentence: %v", err)
	}
}

// isOneOf reports whether err has the sentence of one of the others.
func isOneOf(err error, others ...*parley.Error) bool {
	e, _ := errors.AsType[*parley.Error](err)
	return slices.ContainsFunc(others, func(other *parley.Error) bool { return e != nil && e.Message == other.Message })
}

// TestRefusalsSayWhich tells apart no token, something that is no token, a token that is not valid here and one
// that expired. Only what none of our keys signed counts as a guess.
func TestRefusalsSayWhich(t *testing.T) {
	a, db := newAuthority(t)
	foreign, _ := newAuthorityNamed(t, "foreign")
	revoked := issue(t, a, parley.Token{Kind: parley.GlobalToken})
	if err := a.Revoke(t.Context(), verify(t, a, revoked).ID); err != nil {
		t.Fatal(err)
	}
	orphan := issue(t, a, parley.Token{Kind: parley.ChannelToken, Channel: "main"})
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.DeleteChannel(t.Context(), "main")
	})
	if err != nil {
		t.Fatal(err)
	}
	header, claims := parts(t, orphan)
	expired := signEd(header, with(claims, "exp", time.Now().Add(-time.Hour).Unix()), a.keys.Load().signing)
	for name, c := range map[string]struct {
		raw    string
		want   *parley.Error
		signed bool
	}{
		"nothing":                {"", errNoToken, false},
		"a word":                 {"bad", errNotAToken, false},
		"three words":            {"a.b.c", errNotAToken, false},
		"blanks":                 {"a b", errNotAToken, false},
		"too long":               {strings.Repeat("x", maxToken+1), errNotAToken, false},
		"of another server":      {issue(t, foreign, parley.Token{Kind: parley.GlobalToken}), errNotValid(nil), false},
		"a changed signature":    {orphan[:len(orphan)-4] + "AAAA", errNotValid(nil), false},
		"revoked":                {revoked, errNotValid(nil), true},
		"its channel is deleted": {orphan, errNotValid(nil), true},
		"another issuer":         {signEd(header, with(claims, "iss", "x"), a.keys.Load().signing), errNotValid(nil), true},
		"expired":                {expired, errExpired, true},
	} {
		_, err := a.Verify(t.Context(), c.raw)
		if !isOneOf(err, c.want) || parley.ToCode(err) != c.want.Code || !parley.IsUnauthenticated(err) || errors.Is(err, ErrSigned) != c.signed {
			t.Errorf("%s: %v, signed %v", name, err, errors.Is(err, ErrSigned))
		}
	}
}
