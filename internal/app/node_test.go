package app

import (
	"testing"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/store"
)

// TestRevocationWaitsForNothing: a token that another node revoked is refused at once. The other changes are read later, which may take
// as long as channels need to start.
func TestRevocationWaitsForNothing(t *testing.T) {
	data := openTest(t, Dir(t.TempDir()))
	issue := func(id parley.TokenID) string {
		raw, err := data.Tokens.Issue(t.Context(), parley.Token{ID: id, Name: "test", Kind: parley.GlobalToken})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	id := parley.NewTokenID()
	raw, other := issue(id), issue(parley.NewTokenID())
	s := &server{data: data, changed: make(chan struct{}, 1)}
	s.partsOpen.Store(true)
	for _, text := range []string{raw, other} {
		if _, err := data.Tokens.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := data.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.RevokeToken(t.Context(), id, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Tokens.Verify(t.Context(), raw); err != nil {
		t.Fatalf("the token is not cached, so the test shows nothing: %v", err)
	}
	s.noteChanges(cluster.Changes{Tokens: []parley.TokenID{id}}) // nobody reads them
	if _, err := data.Tokens.Verify(t.Context(), raw); err == nil {
		t.Error("a revoked token is accepted")
	}
	if _, err := data.Tokens.Verify(t.Context(), other); err != nil {
		t.Errorf("another token: %v", err)
	}
}
