package keystore

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow/store"

	"parley/internal/store/sqldb"
)

// The account's settings are shared by its devices as patches, encrypted with keys from the phone.

// PutAppStateSyncKey does not replace a newer key.
func (d *device) PutAppStateSyncKey(ctx context.Context, id []byte, k store.AppStateSyncKey) error {
	return d.exec(ctx, "store a key of settings", `INSERT INTO setting_keys (device, id, data, fingerprint, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (device, id) DO UPDATE SET data = excluded.data, fingerprint = excluded.fingerprint, at = excluded.at
		WHERE excluded.at > setting_keys.at`, d.id, id, nonNil(k.Data), nonNil(k.Fingerprint), k.Timestamp)
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (d *device) GetAppStateSyncKey(ctx context.Context, id []byte) (*store.AppStateSyncKey, error) {
	var k store.AppStateSyncKey
	found, err := readRow(d.s.db.Read(ctx), "read a key of settings",
		`SELECT data, at, fingerprint FROM setting_keys WHERE device = $1 AND id = $2`, []any{d.id, id}, &k.Data, &k.Timestamp, &k.Fingerprint)
	if err != nil || !found {
		return nil, err
	}
	return &k, nil
}

func (d *device) GetLatestAppStateSyncKeyID(ctx context.Context) ([]byte, error) {
	var id []byte
	_, err := readRow(d.s.db.Read(ctx), "read a key of settings",
		`SELECT id FROM setting_keys WHERE device = $1 ORDER BY at DESC LIMIT 1`, []any{d.id}, &id)
	return id, err
}

func (d *device) GetAllAppStateSyncKeys(context.Context) ([]*store.AppStateSyncKey, error) {
	return nil, errUnused
}

type settingVersion struct {
	name    string
	version uint64
}

// PutAppStateVersion is stored later, with the MACs of that version, which whatsmeow passes next. A change of a setting
// in between would use a version without MACs, and create a patch that no device can verify.
func (d *device) PutAppStateVersion(_ context.Context, name string, version uint64, hash [128]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pendingVersions == nil {
		d.pendingVersions = map[settingVersion][128]byte{}
	}
	d.pendingVersions[settingVersion{name, version}] = hash
	return nil
}

// popVersion returns the hash of a pending version; false: already stored.
func (d *device) popVersion(v settingVersion) (hash [128]byte, isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hash, isNew = d.pendingVersions[v]
	delete(d.pendingVersions, v)
	return hash, isNew
}

// GetAppStateVersion reads how far a collection was read; 0: it was not.
func (d *device) GetAppStateVersion(ctx context.Context, name string) (version uint64, hash [128]byte, err error) {
	var sum []byte
	found, err := readRow(d.s.db.Read(ctx), "read a version of settings",
		`SELECT version, hash FROM setting_versions WHERE device = $1 AND name = $2`, []any{d.id, name}, &version, &sum)
	switch {
	case err != nil || !found:
		return 0, hash, err
	case len(sum) != len(hash):
		return 0, hash, fmt.Errorf("read a version of settings: %w", errLength)
	case version == 0:
		return 0, hash, fmt.Errorf("read a version of settings: %s has version 0", name)
	}
	return version, [128]byte(sum), nil
}

func (d *device) DeleteAppStateVersion(ctx context.Context, name string) error {
	return d.exec(ctx, "delete settings", `DELETE FROM setting_versions WHERE device = $1 AND name = $2`, d.id, name)
}

// PutAppStateMutationMACs stores MACs and their version.
func (d *device) PutAppStateMutationMACs(ctx context.Context, name string, version uint64, sums []store.AppStateMutationMAC) error {
	hash, isNew := d.popVersion(settingVersion{name, version})
	return d.write(ctx, "store sums of settings", func(tx *sqldb.Tx) error {
		if isNew {
			err := tx.Do(`INSERT INTO setting_versions (device, name, version, hash) VALUES ($1, $2, $3, $4)
				ON CONFLICT (device, name) DO UPDATE SET version = excluded.version, hash = excluded.hash`,
				d.id, name, int64(version), hash[:])
			if err != nil {
				return err
			}
		}
		return sqldb.Each(sums, func(sum store.AppStateMutationMAC) error {
			return tx.Do(`INSERT INTO setting_sums (device, name, index_mac, version, value_mac) VALUES ($1, $2, $3, $4, $5)`,
				d.id, name, sum.IndexMAC, int64(version), sum.ValueMAC)
		})
	})
}

func (d *device) DeleteAppStateMutationMACs(ctx context.Context, name string, indexes [][]byte) error {
	return d.write(ctx, "delete sums of settings", func(tx *sqldb.Tx) error {
		return sqldb.Each(indexes, func(index []byte) error {
			return tx.Do(`DELETE FROM setting_sums WHERE device = $1 AND name = $2 AND index_mac = $3`, d.id, name, index)
		})
	})
}

func (d *device) GetAppStateMutationMAC(ctx context.Context, name string, index []byte) ([]byte, error) {
	var value []byte
	_, err := readRow(d.s.db.Read(ctx), "read a sum of settings", `SELECT value_mac FROM setting_sums
		WHERE device = $1 AND name = $2 AND index_mac = $3 ORDER BY version DESC LIMIT 1`, []any{d.id, name, index}, &value)
	return value, err
}
