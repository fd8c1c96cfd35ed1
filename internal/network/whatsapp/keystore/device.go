package keystore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"

	"parley/internal/store/sqldb"
)

// device implements the stores of one device. All clients of a device share it: one may be closing while the next has
// started.
type device struct {
	s                       *Store
	id                      int64
	store.ChatSettingsStore // does nothing: nobody reads them

	generating sync.Mutex // one-time keys are made by one caller at a time: two would use the same ids

	released atomic.Bool // another node may use the device: nothing is written or cached any more

	mu              sync.Mutex
	pendingVersions map[settingVersion][128]byte // versions whose MACs are not stored yet, with their hashes
}

var _ store.AllSessionSpecificStores = (*device)(nil)

// advSecretLength is how long the secret in a QR code is.
const advSecretLength = 32

// NewDevice creates an unpaired device. It is stored by Save.
func (s *Store) NewDevice() *store.Device {
	var random [4 + advSecretLength]byte
	rand.Read(random[:]) // it never fails
	d := &store.Device{
		Log: s.log, Container: s,
		NoiseKey: keys.NewKeyPair(), IdentityKey: keys.NewKeyPair(),
		RegistrationID: binary.BigEndian.Uint32(random[:4]), AdvSecretKey: random[4:],
	}
	d.SignedPreKey = d.IdentityKey.CreateSignedPreKey(1)
	return d
}

// Device returns nil if the device does not exist.
func (s *Store) Device(ctx context.Context, jid types.JID) (*store.Device, error) {
	var (
		d                                         store.Device
		id                                        int64
		lid                                       string
		noise, identity, signed, signature, given []byte
		signedID                                  uint32
	)
	found, err := readRow(s.db.Read(ctx), "read a device", `SELECT id, lid, registration, noise_key, identity_key, signed_key,
		signed_key_id, signature, adv_secret, account, platform, business_name, push_name, lid_migration_at, companion_nonce
		FROM devices WHERE jid = $1`, []any{jid.String()},
		&id, &lid, &d.RegistrationID, &noise, &identity, &signed, &signedID, &signature, &d.AdvSecretKey, &given,
		&d.Platform, &d.BusinessName, &d.PushName, &d.LIDMigrationTimestamp, &d.CompanionMetaNonce)
	if err != nil || !found {
		return nil, err
	}
	if len(noise) != 32 || len(identity) != 32 || len(signed) != 32 || len(signature) != 64 {
		return nil, fmt.Errorf("read a device: %w", errLength)
	}
	d.NoiseKey = keys.NewKeyPairFromPrivateKey([32]byte(noise))
	d.IdentityKey = keys.NewKeyPairFromPrivateKey([32]byte(identity))
	d.SignedPreKey = &keys.PreKey{KeyPair: *keys.NewKeyPairFromPrivateKey([32]byte(signed)), KeyID: signedID,
		Signature: (*[64]byte)(signature)}
	d.Account = &waAdv.ADVSignedDeviceIdentity{}
	if err := proto.Unmarshal(given, d.Account); err != nil {
		return nil, fmt.Errorf("read a device's identity: %w", err)
	}
	if lid != "" {
		if d.LID, err = types.ParseJID(lid); err != nil {
			return nil, fmt.Errorf("read a device's LID: %w", err)
		}
	}
	d.ID, d.Log = &jid, s.log
	s.attachStores(&d, id)
	return &d, nil
}

func (s *Store) attachStores(d *store.Device, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	jid := d.ID.String()
	own := s.devices[jid]
	if own == nil || own.id != id {
		own = &device{s: s, id: id, ChatSettingsStore: &store.NoopStore{}}
		s.devices[jid] = own
	}
	d.SetAllStores(own)
	d.LIDs, d.Container, d.Initialized = own, s, true
}

func (s *Store) PushName(ctx context.Context, jid types.JID) (string, error) {
	var name string
	_, err := readRow(s.db.Read(ctx), "read a device's name", `SELECT push_name FROM devices WHERE jid = $1`, []any{jid.String()}, &name)
	return name, err
}

func (s *Store) PutDevice(ctx context.Context, d *store.Device) error {
	if d.ID == nil {
		return errors.New("store a device: it has no address yet")
	}
	account, err := proto.Marshal(d.Account)
	if err != nil {
		return fmt.Errorf("store a device: %w", err)
	}
	lid := ""
	if !d.LID.IsEmpty() {
		lid = d.LID.String()
	}
	jid := d.ID.String()
	var id int64
	err = s.write(ctx, "store a device", func(tx *sqldb.Tx) error {
		// Another device had this address before. Its rows are useless.
		err := tx.Do(`DELETE FROM devices WHERE jid = $1 AND noise_key <> $2`, jid, d.NoiseKey.Priv[:])
		if err != nil {
			return err
		}
		err = tx.Do(`INSERT INTO devices (jid, lid, registration, noise_key, identity_key, signed_key, signed_key_id, signature,
			adv_secret, account, platform, business_name, push_name, lid_migration_at, companion_nonce)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
			ON CONFLICT (jid) DO UPDATE SET lid = excluded.lid, platform = excluded.platform, business_name = excluded.business_name,
			push_name = excluded.push_name, lid_migration_at = excluded.lid_migration_at, companion_nonce = excluded.companion_nonce`,
			jid, lid, int64(d.RegistrationID), d.NoiseKey.Priv[:], d.IdentityKey.Priv[:],
			d.SignedPreKey.Priv[:], int64(d.SignedPreKey.KeyID), d.SignedPreKey.Signature[:], d.AdvSecretKey, account,
			d.Platform, d.BusinessName, d.PushName, d.LIDMigrationTimestamp, d.CompanionMetaNonce)
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT id FROM devices WHERE jid = $1`, []any{jid}, &id)
	})
	if err != nil {
		return err
	}
	if !d.Initialized {
		s.attachStores(d, id)
	}
	return nil
}

func (s *Store) DeleteDevice(ctx context.Context, d *store.Device) error {
	if d.ID == nil {
		return errors.New("remove a device: it has no address")
	}
	return s.RemoveDevice(ctx, *d.ID)
}

// RemoveDevice deletes a device with all its rows. An unknown device is not an error.
func (s *Store) RemoveDevice(ctx context.Context, jid types.JID) error {
	if err := s.exec(ctx, "remove a device", `DELETE FROM devices WHERE jid = $1`, jid.String()); err != nil {
		return err
	}
	s.mu.Lock()
	own := s.devices[jid.String()]
	delete(s.devices, jid.String())
	s.mu.Unlock()
	if own != nil {
		s.cache.removeMatching(func(k key) bool { return k.device == own.id })
	}
	return nil
}

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
