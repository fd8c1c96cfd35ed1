package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

func fullToken(id parley.TokenID) parley.Token {
	return parley.Token{
		Role: parley.Operator,
		ID:   id, Name: "CI", Kind: parley.ChannelToken, Channel: main, CreatedAt: start, ExpiresAt: start.Add(time.Hour),
		LastUsedAt: start.Add(time.Minute), RevokedAt: start.Add(2 * time.Minute),
	}
}

var tokenTests = map[string]func(*env){
	"a token comes back as it was stored": func(e *env) {
		for _, want := range []parley.Token{fullToken("tok_1"), {ID: "tok_2", Kind: parley.GlobalToken}} {
			e.tx(func(tx *store.Tx) error { return tx.AddToken(e.Context(), want) })
			got, err := e.store.Token(e.Context(), want.ID)
			e.must(err)
			e.same("token", got, want)
		}
	},

	"tokens are listed oldest first": func(e *env) {
		for id, age := range map[parley.TokenID]time.Duration{"tok_a": 1, "tok_b": 3, "tok_c": 2} {
			e.tx(func(tx *store.Tx) error {
				return tx.AddToken(e.Context(), parley.Token{ID: id, CreatedAt: start.Add(-age * time.Hour)})
			})
		}
		tokens, err := e.store.Tokens(e.Context())
		e.must(err)
		var order []parley.TokenID
		for _, t := range tokens {
			order = append(order, t.ID)
		}
		e.same("order", order, []parley.TokenID{"tok_b", "tok_c", "tok_a"})
	},

	"an id is used once": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddToken(e.Context(), fullToken("tok_1")) })
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddToken(e.Context(), fullToken("tok_1")) })
	},

	"an unknown token is not found": func(e *env) {
		if _, err := e.store.Token(e.Context(), "tok_1"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.RevokeToken(e.Context(), "tok_1", start) })
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.SetTokenUse(e.Context(), "tok_1", parley.TokenUse{At: start}) })
	},

	"revoking twice keeps the first time": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddToken(e.Context(), parley.Token{ID: "tok_1"}) })
		e.tx(func(tx *store.Tx) error { return tx.RevokeToken(e.Context(), "tok_1", start) })
		e.tx(func(tx *store.Tx) error { return tx.RevokeToken(e.Context(), "tok_1", start.Add(time.Hour)) })
		got, err := e.store.Token(e.Context(), "tok_1")
		e.must(err)
		e.same("revoked at", got.RevokedAt, start)
	},

	"the last use is kept": func(e *env) {
		e.tx(func(tx *store.Tx) error { return tx.AddToken(e.Context(), parley.Token{ID: "tok_1"}) })
		for i, use := range []parley.TokenUse{
			{At: start, From: "192.0.2.7", UserAgent: "curl/8.0"},
			{At: start.Add(time.Minute)}, // from where is not known: that stays
		} {
			e.tx(func(tx *store.Tx) error { return tx.SetTokenUse(e.Context(), "tok_1", use) })
			got, err := e.store.Token(e.Context(), "tok_1")
			e.must(err)
			e.same("last used at", got.LastUsedAt, start.Add(time.Duration(i)*time.Minute))
			e.same("last used from", got.LastUsedFrom+" "+got.UserAgent, "192.0.2.7 curl/8.0")
		}
	},

	"signing keys are listed newest first": func(e *env) {
		old := parley.SigningKey{ID: "old", Public: []byte{1, 2}, Encrypted: []byte{3, 4}, CreatedAt: start}
		// Made in the same moment: the one stored later is newer.
		older := parley.SigningKey{ID: "older", Public: []byte{5}, Encrypted: []byte{6}, CreatedAt: start}
		newest := parley.SigningKey{ID: "newest", Public: []byte{7}, Encrypted: []byte{8}, CreatedAt: start.Add(time.Hour)}
		for _, k := range []parley.SigningKey{newest, older, old} {
			e.tx(func(tx *store.Tx) error { return tx.AddSigningKey(e.Context(), k) })
		}
		got, err := e.store.SigningKeys(e.Context())
		e.must(err)
		e.same("keys", got, []parley.SigningKey{newest, old, older})
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddSigningKey(e.Context(), old) })
	},
}
