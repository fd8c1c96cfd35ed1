package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Backup writes a snapshot of an open store to a new file. It calls progress, which may be nil, with the bytes copied and
// the total.
func Backup(ctx context.Context, from *DB, to string, progress func(done, total int64)) error {
	return from.sql.CopyTo(ctx, to, progress)
}

// CopyFile writes a snapshot of any database file to a new file.
func CopyFile(ctx context.Context, from, to string, progress func(done, total int64)) error {
	return sqldb.CopyFile(ctx, from, to, progress)
}

// Version reads the version of the database in a file, without changing it, and the version that this program needs. A new
// file is at version 0. The error may be an [sqldb.EarlyError]. No other process may have the file open.
func Version(ctx context.Context, file string) (at, needed int, err error) {
	return sqldb.FileVersion(ctx, file, Migrations)
}

// MovedTo reads where the data of a database file was moved to; empty: nowhere. No other process may have it open.
func MovedTo(ctx context.Context, file string) (destination string, err error) {
	err = sqldb.ReadFile(ctx, file, func(c *sqldb.Conn) error {
		var tables int // 0: a new file
		err := c.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'moved'`, nil, &tables)
		if err != nil || tables == 0 {
			return err
		}
		return c.QueryRow(`SELECT coalesce(max(destination), '') FROM moved`, nil, &destination)
	})
	return destination, err
}

// SetMoved stores in a database file where its data was moved to; empty: nowhere.
func (t *Tx) SetMoved(_ context.Context, destination string) error {
	if err := t.exec(`DELETE FROM moved`); err != nil || destination == "" {
		return err
	}
	return t.exec(`INSERT INTO moved (destination) VALUES ($1)`, destination)
}

// Credentials are what a restore must not lose: the tokens, signing keys, signing secrets and audit log of the database that it
// replaces.
type Credentials struct {
	Tokens  map[parley.TokenID]parley.Token
	Keys    []parley.SigningKey
	Secrets []parley.SigningSecret
	Audit   []AuditEntry // oldest first
}

// ReadCredentials reads them from a database file, without changing it. No other process may have it open.
func ReadCredentials(ctx context.Context, path string) (c Credentials, err error) {
	err = sqldb.ReadFile(ctx, path, func(conn *sqldb.Conn) error {
		c, err = Reader{conn}.credentials()
		return err
	})
	return c, err
}

// Credentials reads them from this database.
func (db *DB) Credentials(ctx context.Context) (Credentials, error) {
	return db.Reader.with(ctx).credentials()
}

func (r Reader) credentials() (c Credentials, err error) {
	c.Tokens = map[parley.TokenID]parley.Token{}
	tokens := each(r, `SELECT id, revoked_at, expires_at, role, signed_by FROM token`, nil, func(row scanner) error {
		var t parley.Token
		var revoked, expires int64
		err := row.Scan(&t.ID, &revoked, &expires, &t.Role, &t.SignedBy)
		t.RevokedAt, t.ExpiresAt = moment(revoked), moment(expires)
		c.Tokens[t.ID] = t
		return err
	})
	secrets := each(r, `SELECT owner, sealed, old_sealed, old_until FROM secret`, nil, func(row scanner) error {
		var s parley.SigningSecret
		var until int64
		err := row.Scan(&s.Owner, &s.Encrypted, &s.OldEncrypted, &until)
		s.OldUntil = moment(until)
		c.Secrets = append(c.Secrets, s)
		return err
	})
	c.Keys, err = list(r, `SELECT `+keyColumns+` FROM signing_key ORDER BY created_at DESC, seq DESC`, nil, scanKey)
	var err2 error
	c.Audit, err2 = list(r, `SELECT seq, `+auditColumns+` FROM audit ORDER BY seq`, nil, scanAudit)
	return c, errors.Join(tokens, secrets, err, err2)
}

// Ended is what [DB.EndRestored] or [DB.EndKeyed] did.
type Ended struct {
	Sessions   int64 // of the console
	Tickets    int64 // links for console sign-in and pairing
	Codes      int64
	LoginLinks int64
	Keys       int64                // idempotency keys without a response, or whose requests cannot be compared
	Revoked    []parley.Token       // revoked since the backup
	Lowered    []parley.Token       // with the lower role and the earlier expiry that they got since the backup
	Rotated    []parley.SecretOwner // whose secrets were rotated since the backup
	Retired    []string             // signing keys that were retired since the backup
	Audit      int                  // entries of the audit log that were added since the backup
}

// EndRestored makes a restored store safe to use. What was open at the backup may have been used since, so it expires. A
// token that was revoked since the backup stays revoked and one with a lesser role keeps that, a rotated secret stays rotated, a retired
// signing key retired, and newer entries of the audit log are appended. What is encrypted in present must be encrypted for this store.
// Keys without a response get this one. also stores more in the same transaction.
func (db *DB) EndRestored(
	ctx context.Context, present Credentials, response StoredResponse, now time.Time, also func(*Tx, Ended) error,
) (Ended, error) {
	var e Ended
	err := db.Tx(ctx, func(t *Tx) error {
		e = Ended{}
		if err := t.endOpen(&e, response, now); err != nil {
			return err
		}
		isEarlier, err := t.keepSigningKeys(ctx, &e, present, now)
		if err != nil {
			return err
		}
		for _, token := range present.Tokens {
			if err := t.limitRestored(ctx, &e, token); err != nil {
				return err
			}
		}
		for _, s := range present.Secrets {
			if err := t.rotateRestored(ctx, &e, s, isEarlier); err != nil {
				return err
			}
		}
		if err := t.keepAudit(ctx, &e, present.Audit); err != nil {
			return err
		}
		sortTokens(e.Revoked)
		sortTokens(e.Lowered)
		return also(t, e)
	})
	return e, err
}

func sortTokens(tokens []parley.Token) {
	slices.SortFunc(tokens, func(a, b parley.Token) int { return a.CreatedAt.Compare(b.CreatedAt) })
}

// keepSigningKeys makes the present signing keys those of the restored database, if it is an earlier state of the same one. Tokens
// that a retired key signed are revoked.
func (t *Tx) keepSigningKeys(ctx context.Context, e *Ended, present Credentials, now time.Time) (isEarlier bool, err error) {
	restored, err := t.SigningKeys(ctx)
	if err != nil {
		return false, err
	}
	tokens, err := t.Tokens(ctx)
	if err != nil {
		return false, err
	}
	has := func(keys []parley.SigningKey, id string) bool {
		return slices.ContainsFunc(keys, func(k parley.SigningKey) bool { return k.ID == id })
	}
	isEarlier = slices.ContainsFunc(restored, func(k parley.SigningKey) bool { return has(present.Keys, k.ID) }) ||
		slices.ContainsFunc(tokens, func(k parley.Token) bool { _, known := present.Tokens[k.ID]; return known })
	if !isEarlier || len(present.Keys) == 0 {
		return isEarlier, nil
	}
	for _, k := range present.Keys {
		if !has(restored, k.ID) {
			if err := t.AddSigningKey(ctx, k); err != nil {
				return false, err
			}
		}
	}
	for _, k := range restored {
		if has(present.Keys, k.ID) {
			continue
		}
		e.Retired = append(e.Retired, k.ID)
		if err := t.RemoveSigningKey(ctx, k.ID); err != nil {
			return false, err
		}
	}
	for _, k := range tokens {
		if slices.Contains(e.Retired, k.SignedBy) && k.RevokedAt.IsZero() {
			e.Revoked = append(e.Revoked, k)
			if err := t.RevokeToken(ctx, k.ID, now); err != nil {
				return false, err
			}
		}
	}
	return isEarlier, nil
}

// keepAudit appends the entries of the audit log that were added since the backup.
func (t *Tx) keepAudit(ctx context.Context, e *Ended, present []AuditEntry) error {
	var last, newest int64
	if err := t.row(`SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM audit`, nil, &last, &newest); err != nil {
		return err
	}
	for _, entry := range present {
		if entry.Seq <= last && millis(entry.At) <= newest { // it is in the backup; that of another server may count from 1
			continue
		}
		e.Audit++
		if err := t.AddAudit(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

// endOpen expires or deletes everything that is open.
func (t *Tx) endOpen(e *Ended, response StoredResponse, now time.Time) error {
	at := millis(now)
	for _, step := range []struct {
		count *int64
		query string
		args  []any
	}{
		{&e.Sessions, `DELETE FROM ticket WHERE purpose = $1 AND used_at = 0 AND expires_at > $2`, []any{string(parley.SessionTicket), at}},
		{&e.Tickets, `DELETE FROM ticket WHERE used_at = 0 AND expires_at > $1`, []any{at}},
		{&e.Keys, `UPDATE idempotency SET status_code = $1, content_type = $2, body = $3 WHERE status_code = 0`,
			[]any{int64(response.StatusCode), response.ContentType, response.Body}},
	} {
		var err error
		if *step.count, err = t.sql.Exec(step.query, step.args...); err != nil {
			return err
		}
	}
	return t.endOTPs(e, time.Time{}, now)
}

// limitRestored takes from a token what was taken from it since the backup: it stays revoked, or gets the lower role and the earlier
// expiry.
func (t *Tx) limitRestored(ctx context.Context, e *Ended, present parley.Token) error {
	k, err := t.Token(ctx, present.ID)
	if errors.Is(err, parley.ErrNotFound) || err == nil && !k.RevokedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	if !present.RevokedAt.IsZero() {
		e.Revoked = append(e.Revoked, k)
		return t.RevokeToken(ctx, k.ID, present.RevokedAt)
	}
	role, expires := k.Role, k.ExpiresAt
	if present.Role != "" && !present.Role.Includes(k.Role) {
		role = present.Role
	}
	if !present.ExpiresAt.IsZero() && (expires.IsZero() || present.ExpiresAt.Before(expires)) {
		expires = present.ExpiresAt
	}
	if role == k.Role && expires.Equal(k.ExpiresAt) {
		return nil
	}
	k.Role, k.ExpiresAt = role, expires
	e.Lowered = append(e.Lowered, k)
	return t.revised(TokenChange, k.ID,
		t.change(`UPDATE token SET role = $1, expires_at = $2 WHERE id = $3`, string(role), millis(expires), string(k.ID)))
}

// rotateRestored stores a secret that was created or rotated since the backup, if its owner is in the backup. A rotation
// sets the end of the old secret, so the secret with the later end is the newer one. Credentials are named by the id of a channel, which
// is of another channel unless the backup is an earlier state of the same database.
func (t *Tx) rotateRestored(ctx context.Context, e *Ended, s parley.SigningSecret, isEarlier bool) error {
	var owned int64
	if err := t.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM channel WHERE 'channel:' || code = $1)
		OR EXISTS (SELECT 1 FROM webhook WHERE 'webhook:' || id = $1)
		OR $2 = 1 AND EXISTS (SELECT 1 FROM channel WHERE 'network:' || id = $1) THEN 1 ELSE 0 END`,
		[]any{string(s.Owner), flag(isEarlier)}, &owned); err != nil || owned == 0 {
		return err
	}
	restored, err := t.Secret(ctx, s.Owner)
	if err == nil && !s.OldUntil.After(restored.OldUntil) {
		return nil
	}
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	e.Rotated = append(e.Rotated, s.Owner)
	return t.SetSecret(ctx, s)
}
