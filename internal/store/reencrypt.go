package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"parley"
)

// Sealed says what a ciphertext is. With its owner it is the context of the encryption.
type Sealed int

const (
	SealedSigningKey Sealed = iota // the owner is its id
	SealedSecret                   // the owner is a [parley.SecretOwner]
	SealedEvent                    // the owner is a channel, as of the next two
	SealedFetch
	SealedResend
	SealedMessage // the owner is a [parley.OTPID]
)

// reencryptSlice is how many rows are read and written at a time.
const reencryptSlice = 500

// Reencrypt passes every ciphertext that must stay readable to a function, and stores what it returns; nil stays as it is. What another
// process replaces meanwhile is left as that stored it. It returns how many it replaced.
func (db *DB) Reencrypt(ctx context.Context, again func(what Sealed, owner string, old []byte) ([]byte, error)) (replaced int, err error) {
	for _, walk := range []func() (int, error){
		func() (int, error) {
			return reencrypt[int64](ctx, db, SealedSigningKey, again,
				`SELECT seq, id, sealed FROM signing_key WHERE seq > $1 ORDER BY seq LIMIT $2`,
				`UPDATE signing_key SET sealed = $1 WHERE seq = $2 AND sealed = $3`)
		},
		func() (int, error) {
			return reencrypt[string](ctx, db, SealedSecret, again,
				`SELECT owner, owner, sealed FROM secret WHERE owner > $1 ORDER BY owner LIMIT $2`,
				`UPDATE secret SET sealed = $1 WHERE owner = $2 AND sealed = $3`)
		},
		func() (int, error) {
			return reencrypt[string](ctx, db, SealedSecret, again,
				`SELECT owner, owner, old_sealed FROM secret WHERE owner > $1 AND old_sealed IS NOT NULL ORDER BY owner LIMIT $2`,
				`UPDATE secret SET old_sealed = $1 WHERE owner = $2 AND old_sealed = $3`)
		},
		func() (int, error) {
			return reencrypt[int64](ctx, db, SealedEvent, again,
				`SELECT event.seq, code, encrypted FROM event JOIN channel ON channel.id = event.channel
				WHERE event.seq > $1 AND encrypted IS NOT NULL ORDER BY event.seq LIMIT $2`,
				`UPDATE event SET encrypted = $1 WHERE seq = $2 AND encrypted = $3`)
		},
		func() (int, error) {
			return reencrypt[int64](ctx, db, SealedFetch, again,
				`SELECT media_fetch.seq, code, reference FROM media_fetch JOIN channel ON channel.id = media_fetch.channel
				WHERE media_fetch.seq > $1 ORDER BY media_fetch.seq LIMIT $2`,
				`UPDATE media_fetch SET reference = $1 WHERE seq = $2 AND reference = $3`)
		},
		func() (int, error) {
			return reencrypt[int64](ctx, db, SealedResend, again,
				`SELECT resend.seq, code, sealed FROM resend JOIN message ON message.seq = resend.seq
				JOIN channel ON channel.id = message.channel WHERE resend.seq > $1 ORDER BY resend.seq LIMIT $2`,
				`UPDATE resend SET sealed = $1 WHERE seq = $2 AND sealed = $3`)
		},
		func() (int, error) { return db.reencryptMessages(ctx, again) },
	} {
		n, err := walk()
		if replaced += n; err != nil {
			return replaced, err
		}
	}
	return replaced, nil
}

// reencrypt walks over one column, in the order of a key.
func reencrypt[K int64 | string](
	ctx context.Context, db *DB, what Sealed, again func(Sealed, string, []byte) ([]byte, error), query, update string,
) (replaced int, err error) {
	type sealed struct {
		key        K
		owner      string
		old, fresh []byte
	}
	var after K
	for {
		rows, err := list(db.Reader.with(ctx), query, []any{after, int64(reencryptSlice)}, func(row scanner) (s sealed, err error) {
			err = row.Scan(&s.key, &s.owner, &s.old)
			return s, err
		})
		if err != nil || len(rows) == 0 {
			return replaced, err
		}
		for i := range rows {
			if rows[i].fresh, err = again(what, rows[i].owner, rows[i].old); err != nil {
				return replaced, err
			}
		}
		var changed int64
		err = db.Tx(ctx, func(t *Tx) error {
			changed = 0
			for _, s := range rows {
				if s.fresh == nil {
					continue
				}
				n, err := t.sql.Exec(update, s.fresh, s.key, s.old)
				if changed += n; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return replaced, err
		}
		replaced, after = replaced+int(changed), rows[len(rows)-1].key
	}
}

// reencryptMessages does it for texts that wait to be sent. They are in the data of their messages, and few.
func (db *DB) reencryptMessages(ctx context.Context, again func(Sealed, string, []byte) ([]byte, error)) (replaced int, err error) {
	err = db.Tx(ctx, func(t *Tx) error {
		replaced = 0
		type waiting struct {
			seq        int64
			body, data string
		}
		rows, err := list(t.Reader, `SELECT seq, body, data FROM message WHERE status = 0 AND secret = 1 AND data IS NOT NULL`, nil,
			func(row scanner) (w waiting, err error) {
				err = row.Scan(&w.seq, &w.body, &w.data)
				return w, err
			})
		if err != nil {
			return err
		}
		for _, w := range rows {
			content, err := parley.DecodeSecret(w.body, []byte(w.data))
			if err != nil {
				return fmt.Errorf("message %d: %w", w.seq, err)
			}
			s, ok := content.(parley.Secret)
			if !ok || s.Encrypted == nil {
				continue
			}
			fresh, err := again(SealedMessage, string(s.OTP), s.Encrypted)
			if err != nil {
				return err
			}
			if fresh == nil {
				continue
			}
			s.Encrypted = fresh
			data, err := parley.EncodeContent(s)
			if err != nil {
				return err
			}
			n, err := t.sql.Exec(`UPDATE message SET data = $1 WHERE seq = $2 AND status = 0 AND data = $3`, string(data), w.seq, w.data)
			if replaced += int(n); err != nil {
				return err
			}
		}
		return nil
	})
	return replaced, err
}

// EndKeyed ends what depends on an older key and cannot be encrypted again: codes and links, of which only a keyed hash is stored, and
// idempotency keys, whose requests cannot be compared any more. What was created after a time stays; zero: nothing does. also stores
// more in the same transaction.
func (db *DB) EndKeyed(ctx context.Context, until, now time.Time, also func(*Tx, Ended) error) (e Ended, err error) {
	err = db.Tx(ctx, func(t *Tx) (err error) {
		e = Ended{}
		if err := t.endOTPs(&e, until, now); err != nil {
			return err
		}
		e.Keys, err = t.sql.Exec(`UPDATE idempotency SET fingerprint = $1, body = NULL WHERE created_at <= $2`, []byte{}, upTo(until))
		if err != nil {
			return err
		}
		return also(t, e)
	})
	return e, err
}

// upTo is a time as it is stored; zero: after every other.
func upTo(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return millis(t)
}

// endOTPs ends open codes and links that were created up to a time; zero: all.
func (t *Tx) endOTPs(e *Ended, until, now time.Time) (err error) {
	args := []any{int64(parley.OTPStatusExpired), millis(now), upTo(until)}
	if e.Codes, err = t.sql.Exec(`UPDATE otp_code SET status = $1, ended_at = $2, encrypted = NULL
		WHERE status = 0 AND created_at <= $3`, args...); err != nil {
		return err
	}
	e.LoginLinks, err = t.sql.Exec(`UPDATE otp_link SET status = $1, ended_at = $2, encrypted = NULL
		WHERE status = 0 AND created_at <= $3`, args...)
	return err
}
