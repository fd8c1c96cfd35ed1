package keystore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

// secretRetention is how long responses to a message, such as votes, can be decrypted.
const secretRetention = 180 * 24 * time.Hour

func toDay(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// PutMessageSecret stores the key for responses to a message.
func (d *device) PutMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID, secret []byte) error {
	return d.PutMessageSecrets(ctx, []store.MessageSecretInsert{{Chat: chat, Sender: sender, ID: id, Secret: secret}})
}

// PutMessageSecrets keeps existing secrets.
func (d *device) PutMessageSecrets(ctx context.Context, inserts []store.MessageSecretInsert) error {
	if len(inserts) == 0 {
		return nil
	}
	return d.write(ctx, "store the secret of a message", func(tx *sqldb.Tx) error {
		today := toDay(time.Now())
		return sqldb.Each(inserts, func(m store.MessageSecretInsert) error {
			return tx.Do(`INSERT INTO message_secrets (device, id, chat, sender, secret, day) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (device, id, chat, sender) DO NOTHING`,
				d.id, m.ID, m.Chat.ToNonAD().String(), m.Sender.ToNonAD().String(), nonNil(m.Secret), today)
		})
	})
}

// purgeSecrets deletes old secrets in batches, so that other writers do not wait long.
func (s *Store) purgeSecrets(ctx context.Context, before int64) error {
	for removed := int64(pruneBatch); removed == pruneBatch; {
		err := s.write(ctx, "purge the secrets of messages", func(tx *sqldb.Tx) error {
			removed = 0
			alone, err := tx.Alone(purgeLock)
			if err != nil || !alone {
				return err
			}
			removed, err = tx.Exec(`DELETE FROM message_secrets WHERE (device, id, chat, sender) IN
				(SELECT device, id, chat, sender FROM message_secrets WHERE day < $1 LIMIT $2)`, before, int64(pruneBatch))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// GetMessageSecret finds a secret under either address of the chat and of the sender. It also returns the sender's
// stored address; nil: not found.
func (d *device) GetMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID) ([]byte, types.JID, error) {
	chat, sender = chat.ToNonAD(), sender.ToNonAD()
	otherChat, err := d.otherAddress(ctx, chat)
	if err != nil {
		return nil, types.EmptyJID, err
	}
	otherSender, err := d.otherAddress(ctx, sender)
	if err != nil {
		return nil, types.EmptyJID, err
	}
	var secret []byte
	var by string
	found, err := readRow(d.s.db.Read(ctx), "read the secret of a message", `SELECT secret, sender FROM message_secrets
		WHERE device = $1 AND id = $2 AND chat IN ($3, $4) AND sender IN ($5, $6)`,
		[]any{d.id, id, chat.String(), otherChat.String(), sender.String(), otherSender.String()}, &secret, &by)
	if err != nil || !found {
		return nil, types.EmptyJID, err
	}
	jid, err := types.ParseJID(by)
	return secret, jid, wrapError("read the secret of a message", err)
}

// A privacy token is stored as two times, in seconds, followed by the token.
const tokenTimes = 16

func packToken(t store.PrivacyToken) []byte {
	value := make([]byte, tokenTimes, tokenTimes+len(t.Token))
	binary.BigEndian.PutUint64(value, uint64(t.Timestamp.Unix()))
	if !t.SenderTimestamp.IsZero() {
		binary.BigEndian.PutUint64(value[8:], uint64(t.SenderTimestamp.Unix()))
	}
	return append(value, t.Token...)
}

func unpackToken(user types.JID, value []byte) (*store.PrivacyToken, error) {
	if len(value) < tokenTimes {
		return nil, fmt.Errorf("read a token: %w", errLength)
	}
	t := &store.PrivacyToken{User: user, Token: value[tokenTimes:], Timestamp: time.Unix(int64(binary.BigEndian.Uint64(value)), 0)}
	if at := binary.BigEndian.Uint64(value[8:]); at != 0 {
		t.SenderTimestamp = time.Unix(int64(at), 0)
	}
	return t, nil
}

// PutPrivacyTokens stores tokens of contacts. An older one does not replace a newer one, and the sender time is
// preserved.
func (d *device) PutPrivacyTokens(ctx context.Context, tokens ...store.PrivacyToken) error {
	return d.commit(ctx, "store a token", func(tx *sqldb.Tx) error {
		var changes []change
		for _, t := range tokens {
			of := key{d.id, tokenKind, t.User.ToNonAD().String()}
			was, err := read(tx.Conn, of)
			if err != nil {
				return err
			}
			if was != nil {
				old, err := unpackToken(t.User, was)
				if err != nil {
					return err
				}
				if t.Timestamp.Before(old.Timestamp) {
					continue
				}
				if t.SenderTimestamp.IsZero() {
					t.SenderTimestamp = old.SenderTimestamp
				}
			}
			changes = append(changes, change{of, packToken(t)})
		}
		return d.s.apply(tx, changes)
	})
}

// GetPrivacyToken returns the newest token under either address, or nil. whatsmeow calls it for every message.
func (d *device) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	user = user.ToNonAD()
	other, err := d.otherAddress(ctx, user)
	if err != nil {
		return nil, err
	}
	var newest *store.PrivacyToken
	for _, jid := range []types.JID{user, other} {
		if jid.IsEmpty() {
			continue
		}
		value, err := d.get(ctx, tokenKind, jid.String())
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		t, err := unpackToken(user, value)
		if err != nil {
			return nil, err
		}
		if newest == nil || cmp.Compare(t.Timestamp.Unix(), newest.Timestamp.Unix()) > 0 {
			newest = t
		}
	}
	return newest, nil
}

func (d *device) DeleteExpiredPrivacyTokens(ctx context.Context, before time.Time) (int64, error) {
	var expired []change
	_, err := sqldb.Collect(d.s.db.Read(ctx), func(row sqldb.Scanner) (_ struct{}, err error) {
		var name string
		var value []byte
		if err := row.Scan(&name, &value); err != nil {
			return struct{}{}, err
		}
		t, err := unpackToken(types.EmptyJID, value)
		if err == nil && t.Timestamp.Before(before) {
			expired = append(expired, change{key{d.id, tokenKind, name}, nil})
		}
		return struct{}{}, err
	}, `SELECT name, value FROM states WHERE device = $1 AND kind = $2`, d.id, int64(tokenKind))
	if err != nil || len(expired) == 0 {
		return 0, wrapError("read tokens", err)
	}
	return int64(len(expired)), d.commit(ctx, "remove tokens", func(tx *sqldb.Tx) error { return d.s.apply(tx, expired) })
}

// PutNCTSalt stores the salt that replaces a missing token.
func (d *device) PutNCTSalt(ctx context.Context, salt []byte) error {
	return d.put(ctx, change{key{d.id, saltKind, ""}, nonNil(salt)})
}

func (d *device) GetNCTSalt(ctx context.Context) ([]byte, error) { return d.get(ctx, saltKind, "") }

func (d *device) DeleteNCTSalt(ctx context.Context) error {
	return d.put(ctx, change{key{d.id, saltKind, ""}, nil})
}
