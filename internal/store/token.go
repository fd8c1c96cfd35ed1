package store

import (
	"context"
	"time"

	"parley"
)

const tokenColumns = `id, name, kind, channel, created_at, expires_at, last_used_at, revoked_at, last_used_from, user_agent, role,
	signed_by, dev`

// Tokens lists all tokens, oldest first.
func (r Reader) Tokens(ctx context.Context) ([]parley.Token, error) {
	return list(r.with(ctx), `SELECT `+tokenColumns+` FROM token ORDER BY created_at, seq`, nil, scanToken)
}

// Token finds a token.
func (r Reader) Token(ctx context.Context, id parley.TokenID) (parley.Token, error) {
	return one(r.with(ctx), `SELECT `+tokenColumns+` FROM token WHERE id = $1`, []any{string(id)}, scanToken)
}

// TokenNames returns the names of tokens by their ids.
func (r Reader) TokenNames(ctx context.Context, ids []parley.TokenID) (map[parley.TokenID]string, error) {
	names := make(map[parley.TokenID]string, len(ids))
	_, err := listIn(r.with(ctx), `SELECT id, name FROM token WHERE id IN `, ``, nil, texts(ids),
		func(row scanner) (id parley.TokenID, err error) {
			var name string
			err = row.Scan(&id, &name)
			names[id] = name
			return id, err
		})
	return names, err
}

func scanToken(row scanner) (parley.Token, error) {
	var t parley.Token
	var created, expires, used, revoked int64
	err := row.Scan(&t.ID, &t.Name, &t.Kind, &t.Channel, &created, &expires, &used, &revoked, &t.LastUsedFrom, &t.UserAgent, &t.Role,
		&t.SignedBy, &t.Dev)
	t.CreatedAt, t.ExpiresAt, t.LastUsedAt, t.RevokedAt = moment(created), moment(expires), moment(used), moment(revoked)
	return t, err
}

// AddToken stores a new token.
func (t *Tx) AddToken(_ context.Context, k parley.Token) error {
	return t.revised(TokenChange, k.ID, t.add(`INSERT INTO token (`+tokenColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
		string(k.ID), k.Name, string(k.Kind), string(k.Channel),
		millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.LastUsedAt), millis(k.RevokedAt), k.LastUsedFrom, k.UserAgent, string(k.Role),
		k.SignedBy, flag(k.Dev)))
}

// UpdateToken stores the name and the role of a token, and whether it is of a development server.
func (t *Tx) UpdateToken(_ context.Context, k parley.Token) error {
	return t.revised(TokenChange, k.ID, t.change(`UPDATE token SET name = $1, role = $2, dev = $3 WHERE id = $4`,
		k.Name, string(k.Role), flag(k.Dev), string(k.ID)))
}

// RevokeToken marks a token as revoked, unless it is already.
func (t *Tx) RevokeToken(_ context.Context, id parley.TokenID, at time.Time) error {
	return t.revised(TokenChange, id, t.change(`UPDATE token
		SET revoked_at = CASE WHEN revoked_at = 0 THEN $1 ELSE revoked_at END WHERE id = $2`,
		millis(at), string(id)))
}

// SetTokenUse stores the last use of a token. Unknown properties do not change.
func (t *Tx) SetTokenUse(_ context.Context, id parley.TokenID, use parley.TokenUse) error {
	return t.change(`UPDATE token SET last_used_at = $1, last_used_from = CASE WHEN $2 = '' THEN last_used_from ELSE $2 END,
		user_agent = CASE WHEN $2 = '' THEN user_agent ELSE $3 END WHERE id = $4`, millis(use.At), use.From, use.UserAgent, string(id))
}

const keyColumns = `id, public, sealed, created_at`

// SigningKeys lists all signing keys, newest first.
func (r Reader) SigningKeys(ctx context.Context) ([]parley.SigningKey, error) {
	return list(r.with(ctx), `SELECT `+keyColumns+` FROM signing_key ORDER BY created_at DESC, seq DESC`, nil, scanKey)
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
	return t.revised(KeyChange, k.ID, t.add(`INSERT INTO signing_key (`+keyColumns+`) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		k.ID, k.Public, k.Encrypted, millis(k.CreatedAt)))
}

// RemoveSigningKey removes a key: the tokens that it signed cannot be verified any more.
func (t *Tx) RemoveSigningKey(_ context.Context, id string) error {
	return t.revised(KeyChange, id, t.change(`DELETE FROM signing_key WHERE id = $1`, id))
}

const ticketColumns = `hash, purpose, channel, created_at, expires_at, used_at, role, name, token, ends_at,
	last_used_at, last_used_from, user_agent, parent`

// Ticket finds a ticket by the hash of its secret.
func (r Reader) Ticket(ctx context.Context, hash []byte) (parley.Ticket, error) {
	return one(r.with(ctx), `SELECT `+ticketColumns+` FROM ticket WHERE hash = $1`, []any{hash}, scanTicket)
}

func scanTicket(row scanner) (parley.Ticket, error) {
	var t parley.Ticket
	var created, expires, used, ends, last int64
	err := row.Scan(&t.Hash, &t.Purpose, &t.Channel, &created, &expires, &used, &t.Role, &t.Name, &t.Token, &ends,
		&last, &t.LastUse.From, &t.LastUse.UserAgent, &t.Parent)
	t.LastUse.At = moment(last)
	t.CreatedAt, t.ExpiresAt, t.UsedAt, t.EndsAt = moment(created), moment(expires), moment(used), moment(ends)
	return t, err
}

// AddTicket stores a new ticket.
func (t *Tx) AddTicket(_ context.Context, k parley.Ticket) error {
	return t.add(`INSERT INTO ticket (`+ticketColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT DO NOTHING`,
		k.Hash, string(k.Purpose), string(k.Channel), millis(k.CreatedAt), millis(k.ExpiresAt), millis(k.UsedAt),
		string(k.Role), k.Name, string(k.Token), millis(k.EndsAt),
		millis(k.LastUse.At), k.LastUse.From, k.LastUse.UserAgent, k.Parent)
}

// UseTicket marks a valid ticket as used. Of several concurrent calls one succeeds.
func (t *Tx) UseTicket(ctx context.Context, hash []byte, now time.Time) (parley.Ticket, error) {
	if err := t.change(`UPDATE ticket SET used_at = $1 WHERE hash = $2 AND used_at = 0 AND expires_at > $1`, millis(now), hash); err != nil {
		return parley.Ticket{}, err
	}
	return t.Ticket(ctx, hash)
}

// EndSession ends a session, and the sessions and unused links that go back to it. It returns ErrNotFound if the session has
// ended already.
func (t *Tx) EndSession(ctx context.Context, hash []byte, now time.Time) error {
	if _, err := t.UseTicket(ctx, hash, now); err != nil {
		return err
	}
	return t.exec(`WITH RECURSIVE child (hash) AS (
			SELECT hash FROM ticket WHERE parent = $2
			UNION SELECT ticket.hash FROM ticket JOIN child ON ticket.parent = child.hash
		) UPDATE ticket SET used_at = $1 WHERE used_at = 0 AND hash IN (SELECT hash FROM child)`, millis(now), hash)
}

// EndTickets ends the sessions and the unused links that go back to an admin token.
func (t *Tx) EndTickets(_ context.Context, token parley.TokenID, now time.Time) error {
	return t.exec(`UPDATE ticket SET used_at = $1 WHERE token = $2 AND token <> '' AND used_at = 0`, millis(now), string(token))
}

// ExtendTicket sets when an unused ticket expires, and its last use.
func (t *Tx) ExtendTicket(_ context.Context, hash []byte, expiresAt time.Time, use parley.TokenUse) error {
	return t.change(`UPDATE ticket SET expires_at = $1, last_used_at = $3, last_used_from = $4, user_agent = $5
		WHERE hash = $2 AND used_at = 0`,
		millis(expiresAt), hash, millis(use.At), use.From, use.UserAgent)
}

// maxSessions is how many sessions are listed at most, far more than people have open.
const maxSessions = 1000

// Sessions lists the console sessions that are valid, newest first.
func (r Reader) Sessions(ctx context.Context, now time.Time) ([]parley.Ticket, error) {
	return list(r.with(ctx), `SELECT `+ticketColumns+` FROM ticket WHERE purpose = $1 AND used_at = 0 AND expires_at > $2
		ORDER BY created_at DESC, hash LIMIT $3`, []any{string(parley.SessionTicket), millis(now), int64(maxSessions)}, scanTicket)
}

// PurgeTickets deletes some tickets that expired before a time. It runs with every new one, so it deletes more than are made.
func (t *Tx) PurgeTickets(_ context.Context, before time.Time) error {
	return t.exec(`DELETE FROM ticket WHERE hash IN (SELECT hash FROM ticket WHERE expires_at < $1 LIMIT $2)`,
		millis(before), int64(purgeBatch))
}
