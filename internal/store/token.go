package store

import (
	"context"
	"time"

	"parley"
)

const tokenColumns = `id, name, kind, channel, created_at, expires_at, last_used_at, revoked_at, last_used_from, user_agent`

// Tokens lists all tokens, oldest first.
func (r Reader) Tokens(ctx context.Context) ([]parley.Token, error) {
	r = r.with(ctx)
	return list(r, `SELECT `+tokenColumns+` FROM token ORDER BY created_at, seq`, nil, scanToken)
}

// Token finds a token.
func (r Reader) Token(ctx context.Context, id parley.TokenID) (parley.Token, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+tokenColumns+` FROM token WHERE id = $1`, []any{string(id)}, scanToken)
}

func scanToken(row scanner) (parley.Token, error) {
	var t parley.Token
	var created, expires, used, revoked int64
	err := row.Scan(&t.ID, &t.Name, &t.Kind, &t.Channel, &created, &expires, &used, &revoked, &t.LastUsedFrom, &t.UserAgent)
	t.CreatedAt, t.ExpiresAt, t.LastUsedAt, t.RevokedAt = moment(created), moment(expires), moment(used), moment(revoked)
	return t, err
}

// AddToken stores what is kept of a new token.
func (t *Tx) AddToken(_ context.Context, k parley.Token) error {
	if err := t.add(`INSERT INTO token (`+tokenColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		string(k.ID), k.Name, string(k.Kind), string(k.Channel),
		millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.LastUsedAt), millis(k.RevokedAt), k.LastUsedFrom, k.UserAgent); err != nil {
		return err
	}
	return t.revise()
}

// RevokeToken marks a token as revoked, unless it is already.
func (t *Tx) RevokeToken(_ context.Context, id parley.TokenID, at time.Time) error {
	if err := t.change(`UPDATE token SET revoked_at = CASE WHEN revoked_at = 0 THEN $1 ELSE revoked_at END WHERE id = $2`,
		millis(at), string(id)); err != nil {
		return err
	}
	return t.revise()
}

// SetTokenUse stores how a token was last used. What is not known of that stays as it was.
func (t *Tx) SetTokenUse(_ context.Context, id parley.TokenID, use parley.TokenUse) error {
	return t.change(`UPDATE token SET last_used_at = $1, last_used_from = CASE WHEN $2 = '' THEN last_used_from ELSE $2 END,
		user_agent = CASE WHEN $2 = '' THEN user_agent ELSE $3 END WHERE id = $4`, millis(use.At), use.From, use.UserAgent, string(id))
}

const keyColumns = `id, public, sealed, created_at`

// SigningKeys lists all signing keys, newest first.
func (r Reader) SigningKeys(ctx context.Context) ([]parley.SigningKey, error) {
	r = r.with(ctx)
	return list(r, `SELECT `+keyColumns+` FROM signing_key ORDER BY created_at DESC, seq DESC`, nil, scanKey)
}

func scanKey(row scanner) (parley.SigningKey, error) {
	var k parley.SigningKey
	var created int64
	err := row.Scan(&k.ID, &k.Public, &k.Encrypted, &created)
	k.CreatedAt = moment(created)
	return k, err
}

// AddSigningKey stores a new signing key.
func (t *Tx) AddSigningKey(_ context.Context, k parley.SigningKey) error {
	if err := t.add(`INSERT INTO signing_key (`+keyColumns+`) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		k.ID, k.Public, k.Encrypted, millis(k.CreatedAt)); err != nil {
		return err
	}
	return t.revise()
}
