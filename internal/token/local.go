package token

import (
	"crypto/rand"
	"encoding/base64"

	"parley"
)

// Local returns a token that only this Authority accepts, until the process ends. It is not stored, so it is not listed
// and cannot be revoked. It is for the command line of users who can read the data directory. Call it before others use
// Verify.
func (a *Authority) Local(kind parley.TokenKind) string {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	raw := "local_" + base64.RawURLEncoding.EncodeToString(secret[:])
	if a.local == nil {
		a.local = map[string]parley.Token{}
	}
	a.local[raw] = parley.Token{ID: parley.TokenID("local_" + kind), Name: "command line", Kind: kind}
	return raw
}
