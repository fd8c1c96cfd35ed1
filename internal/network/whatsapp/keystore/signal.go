package keystore

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.mau.fi/libsignal/cipher"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/serialize"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley/internal/store/sqldb"
)

// Signal sessions, identities of other devices, and sender keys of groups. An address is a user, "_1" for a LID, a
// colon and the device number.

// PutIdentity is called for every message.
func (d *device) PutIdentity(ctx context.Context, address string, identity [32]byte) error {
	is, err := d.get(ctx, identityKind, address)
	if err != nil || bytes.Equal(is, identity[:]) {
		return err
	}
	return d.put(ctx, change{key{d.id, identityKind, address}, identity[:]})
}

func (d *device) IsTrustedIdentity(ctx context.Context, address string, identity [32]byte) (bool, error) {
	is, err := d.get(ctx, identityKind, address)
	return is == nil || bytes.Equal(is, identity[:]), err
}

func (d *device) DeleteIdentity(ctx context.Context, address string) error {
	return d.put(ctx, change{key{d.id, identityKind, address}, nil})
}

func (d *device) DeleteAllIdentities(ctx context.Context, user string) error {
	return d.removeUser(ctx, identityKind, user)
}

func (d *device) removeUser(ctx context.Context, k kind, user string) error {
	for _, separator := range []byte{':', '_'} {
		if err := d.removeRange(ctx, k, user+string(separator), user+string(separator+1)); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) session(address string) key { return key{d.id, sessionKind, address} }

// GetSession reads a session to move it on: it is locked for the caller until it is written.
func (d *device) GetSession(ctx context.Context, address string) ([]byte, error) {
	if err := d.s.locks.acquire(ctx, d.s.findHolder(ctx), d.session(address)); err != nil {
		return nil, err
	}
	return d.get(ctx, sessionKind, address)
}

func (d *device) HasSession(ctx context.Context, address string) (bool, error) {
	value, err := d.get(ctx, sessionKind, address)
	return value != nil, err
}

// GetManySessions is GetSession for several; nil: no session.
func (d *device) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	keys := make([]key, len(addresses))
	for i, address := range addresses {
		keys[i] = d.session(address)
	}
	if err := d.s.locks.acquire(ctx, d.s.findHolder(ctx), keys...); err != nil {
		return nil, err
	}
	all := make(map[string][]byte, len(addresses))
	for _, address := range addresses {
		value, err := d.get(ctx, sessionKind, address)
		if err != nil {
			return nil, err
		}
		all[address] = value
	}
	return all, nil
}

func (d *device) PutSession(ctx context.Context, address string, value []byte) error {
	return d.putSessions(ctx, change{d.session(address), value})
}

func (d *device) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	changes := make([]change, 0, len(sessions))
	for address, value := range sessions {
		changes = append(changes, change{d.session(address), value})
	}
	return d.putSessions(ctx, changes...)
}

// putSessions writes sessions back whose locks the caller still has, and releases them.
func (d *device) putSessions(ctx context.Context, changes ...change) error {
	by := d.s.findHolder(ctx)
	keys := make([]key, len(changes))
	for i, c := range changes {
		keys[i] = c.key
	}
	if err := d.s.locks.verify(by, keys...); err != nil {
		return err
	}
	if dtx := decryptTxFrom(ctx); dtx != nil { // it releases them when it is committed
		dtx.put(changes)
		return nil
	}
	defer d.s.locks.release(by, keys...)
	return d.storeSessions(ctx, changes)
}

func (d *device) DeleteSession(ctx context.Context, address string) error {
	err := d.put(ctx, change{d.session(address), nil})
	d.s.locks.sessionRemoved(d.s.findHolder(ctx), d.session(address))
	return err
}

func (d *device) DeleteAllSessions(ctx context.Context, user string) error {
	return d.removeUser(ctx, sessionKind, user)
}

func (d *device) PutSenderKey(ctx context.Context, group, user string, value []byte) error {
	return d.put(ctx, change{key{d.id, senderKeyKind, senderName(group, user)}, value})
}

func (d *device) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	return d.get(ctx, senderKeyKind, senderName(group, user))
}

// senderName starts with the address: the rows of one user are adjacent.
func senderName(group, user string) string { return user + " " + group }

// MigratePNToLID moves the states of a number to its LID.
func (d *device) MigratePNToLID(ctx context.Context, number, lid types.JID) error {
	from, to := number.SignalAddressUser()+":", lid.SignalAddressUser()+":"
	done := key{d.id, migratedKind, from}
	if _, known := d.s.cache.get(done); known {
		return nil
	}
	end := strings.TrimSuffix(from, ":") + ";" // behind all that begin with from
	mark := d.s.cache.version(done)
	var found int64
	err := d.s.db.Read(ctx).QueryRow(`SELECT count(*) FROM states WHERE device = $1 AND kind IN ($2, $3, $4) AND name >= $5 AND name < $6`,
		[]any{d.id, int64(sessionKind), int64(identityKind), int64(senderKeyKind), from, end}, &found)
	if err != nil || found == 0 {
		if err == nil {
			d.fill(done, nil, mark)
		}
		return wrapError("look for sessions under a number", err)
	}
	return d.commit(ctx, "move sessions to a LID", func(tx *sqldb.Tx) error {
		err := tx.Do(`INSERT INTO states (device, kind, name, value)
			SELECT device, kind, $1 || substr(name, $2), value FROM states
			WHERE device = $3 AND kind IN ($4, $5, $6) AND name >= $7 AND name < $8
			ON CONFLICT (device, kind, name) DO UPDATE SET value = excluded.value`,
			to, int64(len(from)+1), d.id, int64(sessionKind), int64(identityKind), int64(senderKeyKind), from, end)
		if err != nil {
			return err
		}
		err = tx.Do(`DELETE FROM states WHERE device = $1 AND kind IN ($2, $3, $4) AND name >= $5 AND name < $6`,
			d.id, int64(sessionKind), int64(identityKind), int64(senderKeyKind), from, end)
		tx.OnCommit(func() {
			d.s.cache.removeMatching(func(k key) bool {
				return k.device == d.id && (strings.HasPrefix(k.name, from) || strings.HasPrefix(k.name, to))
			})
			d.s.cache.set(done, entry{})
		})
		return err
	})
}

// GroupKeys is implemented by the SenderKeys of a device.
type GroupKeys interface {
	// KeyHolders returns what PutKeyHolders stored: which devices have this device's own sender key of a group. nil: nothing.
	KeyHolders(ctx context.Context, group string) ([]byte, error)
	PutKeyHolders(ctx context.Context, group string, holders []byte) error
	// AllKeyHolders returns what is stored, by group.
	AllKeyHolders(ctx context.Context) (map[string][]byte, error)
}

var _ GroupKeys = (*device)(nil)

func (d *device) KeyHolders(ctx context.Context, group string) ([]byte, error) {
	return d.get(ctx, keyHoldersKind, group)
}

func (d *device) PutKeyHolders(ctx context.Context, group string, holders []byte) error {
	return d.put(ctx, change{key{d.id, keyHoldersKind, group}, holders})
}

func (d *device) AllKeyHolders(ctx context.Context) (map[string][]byte, error) {
	all := map[string][]byte{}
	_, err := sqldb.Collect(d.s.db.Read(ctx), func(row sqldb.Scanner) (string, error) {
		var group string
		var holders []byte
		err := row.Scan(&group, &holders)
		all[group] = holders
		return group, err
	}, `SELECT name, value FROM states WHERE device = $1 AND kind = $2`, d.id, int64(keyHoldersKind))
	return all, wrapError("read who has sender keys", err)
}

// Encrypt encrypts a message in an existing session, and stores the session's next key. startsSession says that the reader
// may not have the session yet, so the ciphertext also starts it. Keys and format are libsignal's, but its cipher turns
// every ciphertext and key into debug text, which cannot be switched off and is 5 % of the CPU of a send.
func Encrypt(ctx context.Context, device *store.Device, to *protocol.SignalAddress, plain []byte) (
	ciphertext []byte, startsSession bool, err error,
) {
	session, err := device.LoadSession(ctx, to)
	if err != nil {
		return nil, false, err
	}
	state := session.SessionState()
	if !state.HasSenderChain() {
		return nil, false, signalerror.ErrUninitializedSession
	}
	chain := state.SenderChainKey()
	keys := chain.MessageKeys()
	body, err := cipher.EncryptCbc(keys.Iv(), keys.CipherKey(), plain)
	if err != nil {
		return nil, false, fmt.Errorf("encrypt: %w", err)
	}
	message, err := protocol.NewSignalMessage(state.Version(), chain.Index(), state.PreviousCounter(), keys.MacKey(),
		state.SenderRatchetKey(), body, state.LocalIdentityKey(), state.RemoteIdentityKey(), store.SignalProtobufSerializer.SignalMessage)
	if err != nil {
		return nil, false, fmt.Errorf("authenticate: %w", err)
	}
	ciphertext = message.Serialize()
	if startsSession = state.HasUnacknowledgedPreKeyMessage(); startsSession {
		if ciphertext, err = startingMessage(state, ciphertext); err != nil {
			return nil, false, err
		}
	}
	state.SetSenderChainKey(chain.NextKey())
	return ciphertext, startsSession, device.StoreSession(ctx, to, session)
}

// startingMessage adds to a ciphertext what its reader needs to start the session.
func startingMessage(state *record.State, ciphertext []byte) ([]byte, error) {
	start, err := state.UnackPreKeyMessageItems()
	if err != nil {
		return nil, err
	}
	m := &serialize.PreKeySignalMessage{
		RegistrationId: new(state.LocalRegistrationID()),
		SignedPreKeyId: new(start.SignedPreKeyID()),
		BaseKey:        start.BaseKey().Serialize(),
		IdentityKey:    state.LocalIdentityKey().PublicKey().Serialize(),
		Message:        ciphertext,
	}
	if id := start.PreKeyID(); id != nil && !id.IsEmpty {
		m.PreKeyId = &id.Value
	}
	b, err := proto.MarshalOptions{}.MarshalAppend([]byte(strconv.Itoa(state.Version())), m)
	if err != nil {
		return nil, fmt.Errorf("encode a message that starts a session: %w", err)
	}
	return b, nil
}
