package keystore

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow/util/keys"

	"parley/internal/store/sqldb"
)

// GetOrGenPreKeys returns one-time keys that the network does not have yet, and makes those that are missing.
func (d *device) GetOrGenPreKeys(ctx context.Context, count uint32) ([]*keys.PreKey, error) {
	d.generating.Lock()
	defer d.generating.Unlock()
	all, err := d.unsentPreKeys(ctx, count)
	if err != nil || uint32(len(all)) >= count {
		return all, err
	}
	last, err := d.lastPreKey(ctx)
	if err != nil {
		return nil, err
	}
	var made []*keys.PreKey
	for i := uint32(len(all)); i < count; i++ {
		last++
		made = append(made, keys.NewPreKey(last))
	}
	return append(all, made...), d.addPreKeys(ctx, made, false)
}

func (d *device) unsentPreKeys(ctx context.Context, count uint32) ([]*keys.PreKey, error) {
	all, err := sqldb.Collect(d.s.db.Read(ctx), func(row sqldb.Scanner) (*keys.PreKey, error) {
		var id uint32
		var private []byte
		if err := row.Scan(&id, &private); err != nil {
			return nil, err
		}
		return preKey(id, private)
	}, `SELECT id, key FROM prekeys WHERE device = $1 AND uploaded = 0 ORDER BY id LIMIT $2`, d.id, int64(count))
	return all, wrapError("read one-time keys", err)
}

func preKey(id uint32, private []byte) (*keys.PreKey, error) {
	if len(private) != 32 {
		return nil, fmt.Errorf("read a one-time key: %w", errLength)
	}
	return &keys.PreKey{KeyPair: *keys.NewKeyPairFromPrivateKey([32]byte(private)), KeyID: id}, nil
}

func (d *device) lastPreKey(ctx context.Context) (uint32, error) {
	var last uint32
	err := d.s.db.Read(ctx).QueryRow(`SELECT coalesce(max(id), 0) FROM prekeys WHERE device = $1`, []any{d.id}, &last)
	return last, wrapError("read one-time keys", err)
}

func (d *device) addPreKeys(ctx context.Context, made []*keys.PreKey, uploaded bool) error {
	return d.commit(ctx, "store one-time keys", func(tx *sqldb.Tx) error {
		return sqldb.Each(made, func(k *keys.PreKey) error {
			return tx.Do(`INSERT INTO prekeys (device, id, key, uploaded) VALUES ($1, $2, $3, $4)`, d.id, int64(k.KeyID), k.Priv[:], uploaded)
		})
	})
}

// GenOnePreKey creates a key that is sent at once.
func (d *device) GenOnePreKey(ctx context.Context) (*keys.PreKey, error) {
	d.generating.Lock()
	defer d.generating.Unlock()
	last, err := d.lastPreKey(ctx)
	if err != nil {
		return nil, err
	}
	k := keys.NewPreKey(last + 1)
	return k, d.addPreKeys(ctx, []*keys.PreKey{k}, true)
}

// GetPreKey returns nil for an unknown or used key.
func (d *device) GetPreKey(ctx context.Context, id uint32) (*keys.PreKey, error) {
	var private []byte
	found, err := readRow(d.s.db.Read(ctx), "read a one-time key", `SELECT key FROM prekeys WHERE device = $1 AND id = $2`,
		[]any{d.id, int64(id)}, &private)
	if err != nil || !found {
		return nil, err
	}
	return preKey(id, private)
}

func (d *device) RemovePreKey(ctx context.Context, id uint32) error {
	return d.exec(ctx, "remove a one-time key", `DELETE FROM prekeys WHERE device = $1 AND id = $2`, d.id, int64(id))
}

// MarkPreKeysAsUploaded notes that the network has all keys up to one.
func (d *device) MarkPreKeysAsUploaded(ctx context.Context, upTo uint32) error {
	return d.exec(ctx, "note one-time keys as sent", `UPDATE prekeys SET uploaded = 1 WHERE device = $1 AND id <= $2 AND uploaded = 0`,
		d.id, int64(upTo))
}

func (d *device) UploadedPreKeyCount(ctx context.Context) (int, error) {
	var count int
	err := d.s.db.Read(ctx).QueryRow(`SELECT count(*) FROM prekeys WHERE device = $1 AND uploaded = 1`, []any{d.id}, &count)
	return count, wrapError("count one-time keys", err)
}
