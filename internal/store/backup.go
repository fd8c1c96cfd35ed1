package store

import (
	"context"
	"errors"
	"io/fs"
	"parley"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

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
// file is at version 0. No other process may have the file open.
func Version(ctx context.Context, file string) (at, needed int, err error) {
	names, err := fs.Glob(embedded, "migrations/sqlite/*.sql") // sorted
	if err != nil {
		return 0, 0, err
	}
	number, _, _ := strings.Cut(path.Base(names[len(names)-1]), "_")
	if needed, err = strconv.Atoi(number); err != nil {
		return 0, 0, err
	}
	err = sqldb.ReadFile(ctx, file, func(c *sqldb.Conn) error {
		var tables int // 0: a new file
		err := c.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'`, nil, &tables)
		if err != nil || tables == 0 {
			return err
		}
		return c.QueryRow(`SELECT coalesce(max(version), 0) FROM schema_version`, nil, &at)
	})
	return at, needed, err
}

// Credentials are the tokens and signing secrets of a database.
type Credentials struct {
	Tokens  map[parley.TokenID]time.Time // when each was revoked; zero: not revoked
	Secrets []parley.SigningSecret
}

// ReadCredentials reads them from a database file of any version, without changing it. No other process may have it open.
func ReadCredentials(ctx context.Context, path string) (Credentials, error) {
	c := Credentials{Tokens: map[parley.TokenID]time.Time{}}
	err := sqldb.ReadFile(ctx, path, func(conn *sqldb.Conn) error {
		tokens := each(Reader{conn}, `SELECT id, revoked_at FROM token`, nil, func(row scanner) error {
			var id parley.TokenID
			var revoked int64
			err := row.Scan(&id, &revoked)
			c.Tokens[id] = moment(revoked)
			return err
		})
		secrets := each(Reader{conn}, `SELECT owner, sealed, old_sealed, old_until FROM secret`, nil, func(row scanner) error {
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

// Ended is what [DB.EndRestored] did.
type Ended struct {
	Sessions   int64 // of the console
	Tickets    int64 // links for console sign-in and pairing
	Codes      int64
	LoginLinks int64
	Keys       int64                // idempotency keys without a response
	Revoked    []parley.Token       // revoked since the backup
	Rotated    []parley.SecretOwner // whose secrets were rotated since the backup
}

// EndRestored makes a restored store safe to use. What was open at the backup may have been used since, so it expires. A
// token that was revoked since the backup stays revoked, and a rotated secret stays rotated. The secrets in present must be
// encrypted for this store. Keys without a response get this one.
func (db *DB) EndRestored(ctx context.Context, present Credentials, response parley.StoredResponse, now time.Time) (Ended, error) {
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

// endOpen expires or deletes everything that is open.
func (t *Tx) endOpen(e *Ended, response parley.StoredResponse, now time.Time) error {
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
		if *step.count, err = t.sql.Exec(step.query, step.args...); err != nil {
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

// rotateRestored stores a secret that was created or rotated since the backup, if its owner is in the backup. A rotation
// sets the end of the old secret, so the secret with the later end is the newer one.
func (t *Tx) rotateRestored(ctx context.Context, e *Ended, s parley.SigningSecret) error {
	var owned int64
	if err := t.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM channel WHERE 'channel:' || code = $1)
		OR EXISTS (SELECT 1 FROM webhook WHERE 'webhook:' || id = $1) THEN 1 ELSE 0 END`,
		[]any{string(s.Owner)}, &owned); err != nil || owned == 0 {
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
