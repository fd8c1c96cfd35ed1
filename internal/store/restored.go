package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Credentials are what a database knows of tokens and signing secrets.
type Credentials struct {
	Tokens  map[parley.TokenID]time.Time // when each was revoked; zero: it was not
	Secrets []parley.SigningSecret
}

// ReadCredentials reads them from a database file, of whatever version, which it does not change. Nobody else may
// have it open.
func ReadCredentials(ctx context.Context, path string) (Credentials, error) {
	c := Credentials{Tokens: map[parley.TokenID]time.Time{}}
	err := sqldb.ReadFile(ctx, path, func(conn *sqldb.Conn) error {
		tokens := each(conn, `SELECT id, revoked_at FROM token`, func(row scanner) error {
			var id parley.TokenID
			var revoked int64
			err := row.Scan(&id, &revoked)
			c.Tokens[id] = moment(revoked)
			return err
		})
		secrets := each(conn, `SELECT owner, sealed, old_sealed, old_until FROM secret`, func(row scanner) error {
			var s parley.SigningSecret
			var until int64
			err := row.Scan(&s.Owner, &s.Encrypted, &s.OldEncrypted, &until)
			s.OldUntil = moment(until)
			c.Secrets = append(c.Secrets, s)
			return err
		})
		return errors.Join(tokens, secrets)
	})
	return c, err
}

// each reads all rows of a query, each with scan.
func each(conn *sqldb.Conn, query string, scan func(scanner) error) error {
	rows, err := conn.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Ended is what [DB.EndRestored] ended and changed.
type Ended struct {
	Sessions   int64 // of the console
	Tickets    int64 // links to sign in to the console and to pair a channel
	Codes      int64
	LoginLinks int64
	Keys       int64                // idempotency keys whose requests had no response yet
	Revoked    []parley.Token       // they were revoked since the backup
	Rotated    []parley.SecretOwner // theirs were rotated since the backup
}

// EndRestored makes a store that was restored from a backup safe to use. What was open then may have been used or
// ended since, so it ends. A token that was revoked since stays revoked, and a secret that was rotated since stays
// rotated. The secrets in present must be encrypted for this store. Keys without a response get this one.
func (db *DB) EndRestored(ctx context.Context, present Credentials, response parley.Answer, now time.Time) (Ended, error) {
	var e Ended
	err := db.Tx(ctx, func(t *Tx) error {
		e = Ended{}
		if err := t.endOpen(&e, response, now); err != nil {
			return err
		}
		for id, at := range present.Tokens {
			if err := t.revokeRestored(ctx, &e, id, at); err != nil {
				return err
			}
		}
		for _, s := range present.Secrets {
			if err := t.rotateRestored(ctx, &e, s); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(e.Revoked, func(a, b parley.Token) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return e, err
}

// endOpen ends everything that is open.
func (t *Tx) endOpen(e *Ended, response parley.Answer, now time.Time) error {
	expired, at := int64(parley.OTPStatusExpired), millis(now)
	for _, step := range []struct {
		count *int64
		query string
		args  []any
	}{
		{&e.Sessions, `DELETE FROM ticket WHERE purpose = $1 AND used_at = 0 AND expires_at > $2`, []any{string(parley.SessionTicket), at}},
		{&e.Tickets, `DELETE FROM ticket WHERE used_at = 0 AND expires_at > $1`, []any{at}},
		{&e.Codes, `UPDATE otp_code SET status = $1, ended_at = $2, encrypted = NULL WHERE status = 0`, []any{expired, at}},
		{&e.LoginLinks, `UPDATE otp_link SET status = $1, ended_at = $2, encrypted = NULL WHERE status = 0`, []any{expired, at}},
		{&e.Keys, `UPDATE idempotency SET status_code = $1, content_type = $2, body = $3 WHERE status_code = 0`,
			[]any{int64(response.StatusCode), response.ContentType, response.Body}},
	} {
		var err error
		if *step.count, err = t.count(step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// revokeRestored revokes a token that was revoked since the backup.
func (t *Tx) revokeRestored(ctx context.Context, e *Ended, id parley.TokenID, at time.Time) error {
	k, err := t.Token(ctx, id)
	if errors.Is(err, parley.ErrNotFound) || err == nil && (at.IsZero() || !k.RevokedAt.IsZero()) {
		return nil
	}
	if err != nil {
		return err
	}
	e.Revoked = append(e.Revoked, k)
	return t.RevokeToken(ctx, id, at)
}

// rotateRestored stores a secret that was made or rotated since the backup, if its owner is in the backup. Rotating
// sets until when the old secret signs, so the later of the two is the newer secret.
func (t *Tx) rotateRestored(ctx context.Context, e *Ended, s parley.SigningSecret) error {
	var owned int64
	if err := t.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM channel WHERE 'channel:' || code = $1)
		OR EXISTS (SELECT 1 FROM webhook WHERE 'webhook:' || id = $1) THEN 1 ELSE 0 END`, []any{string(s.Owner)}, &owned); err != nil || owned == 0 {
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
