package whatsapptest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mau.fi/libsignal/ecc"
	grouprecord "go.mau.fi/libsignal/groups/state/record"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/state/record"
	signalstore "go.mau.fi/libsignal/state/store"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/util/keys"
)

// keyring is what a simulated device keeps for Signal, in memory. Its mutex guards single operations; who
// encrypts or decrypts holds the phone's mutex over the whole of it.
type keyring struct {
	registration uint32
	own          func() ownKeys // made when they are first needed: most of a thousand phones never are

	mu       sync.Mutex
	lastKey  uint32
	oneTime  map[uint32]*keys.PreKey
	sessions map[string][]byte
	senders  map[string][]byte
}

var _ signalstore.SignalProtocol = (*keyring)(nil)

// ownKeys are the lasting keys of a device.
type ownKeys struct {
	identity *keys.KeyPair
	signed   *keys.PreKey
}

func newKeyring(registration uint32) *keyring {
	return &keyring{
		registration: registration,
		own: sync.OnceValue(func() ownKeys {
			identity := keys.NewKeyPair()
			return ownKeys{identity, identity.CreateSignedPreKey(1)}
		}),
		oneTime: map[uint32]*keys.PreKey{}, sessions: map[string][]byte{}, senders: map[string][]byte{},
	}
}

// public are the keys that the server may hand out.
func (k *keyring) public() publicKeys {
	own := k.own()
	return publicKeys{
		registration: k.registration, identity: *own.identity.Pub,
		signed: publicKey{own.signed.KeyID, *own.signed.Pub}, signature: *own.signed.Signature,
	}
}

func (k *keyring) newPreKey() publicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastKey++
	made := keys.NewPreKey(k.lastKey)
	k.oneTime[made.KeyID] = made
	return publicKey{made.KeyID, *made.Pub}
}

// forget drops the session with a device.
func (k *keyring) forget(address *protocol.SignalAddress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, address.String())
}

func (k *keyring) GetIdentityKeyPair() *identity.KeyPair {
	own := k.own().identity
	return identity.NewKeyPair(identity.NewKey(ecc.NewDjbECPublicKey(*own.Pub)), ecc.NewDjbECPrivateKey(*own.Priv))
}

func (k *keyring) GetLocalRegistrationID() uint32 { return k.registration }

// SaveIdentity keeps nothing: simulated phones trust whoever the server names.
func (k *keyring) SaveIdentity(context.Context, *protocol.SignalAddress, *identity.Key) error {
	return nil
}

func (k *keyring) IsTrustedIdentity(context.Context, *protocol.SignalAddress, *identity.Key) (bool, error) {
	return true, nil
}

func (k *keyring) LoadPreKey(_ context.Context, id uint32) (*record.PreKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.oneTime[id]
	if p == nil {
		return nil, nil
	}
	return record.NewPreKey(id, pair(&p.KeyPair), store.SignalProtobufSerializer.PreKeyRecord), nil
}

func (k *keyring) RemovePreKey(_ context.Context, id uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.oneTime, id)
	return nil
}

func (k *keyring) LoadSession(_ context.Context, a *protocol.SignalAddress) (*record.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := store.SignalProtobufSerializer
	raw := k.sessions[a.String()]
	if raw == nil {
		return record.NewSession(s.Session, s.State), nil
	}
	return record.NewSessionFromBytes(raw, s.Session, s.State)
}

func (k *keyring) StoreSession(_ context.Context, a *protocol.SignalAddress, r *record.Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions[a.String()] = r.Serialize()
	return nil
}

func (k *keyring) ContainsSession(_ context.Context, a *protocol.SignalAddress) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sessions[a.String()] != nil, nil
}

func (k *keyring) LoadSignedPreKey(_ context.Context, id uint32) (*record.SignedPreKey, error) {
	signed := k.own().signed
	if id != signed.KeyID {
		return nil, fmt.Errorf("no signed prekey %d", id)
	}
	return record.NewSignedPreKey(id, 0, pair(&signed.KeyPair), *signed.Signature, store.SignalProtobufSerializer.SignedPreKeyRecord), nil
}

func (k *keyring) StoreSenderKey(_ context.Context, name *protocol.SenderKeyName, r *grouprecord.SenderKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.senders[name.GroupID()+" "+name.Sender().String()] = r.Serialize()
	return nil
}

func (k *keyring) LoadSenderKey(_ context.Context, name *protocol.SenderKeyName) (*grouprecord.SenderKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := store.SignalProtobufSerializer
	raw := k.senders[name.GroupID()+" "+name.Sender().String()]
	if raw == nil {
		return grouprecord.NewSenderKey(s.SenderKeyRecord, s.SenderKeyState), nil
	}
	return grouprecord.NewSenderKeyFromBytes(raw, s.SenderKeyRecord, s.SenderKeyState)
}

// errUncalled is for what the interface has and libsignal never calls on the way to a ciphertext.
var errUncalled = errors.New("not kept by a simulated phone")

func (k *keyring) StorePreKey(context.Context, uint32, *record.PreKey) error { return errUncalled }
func (k *keyring) ContainsPreKey(context.Context, uint32) (bool, error)      { return false, errUncalled }
func (k *keyring) GetSubDeviceSessions(context.Context, string) ([]uint32, error) {
	return nil, errUncalled
}
func (k *keyring) DeleteSession(context.Context, *protocol.SignalAddress) error { return errUncalled }
func (k *keyring) DeleteAllSessions(context.Context) error                      { return errUncalled }
func (k *keyring) LoadSignedPreKeys(context.Context) ([]*record.SignedPreKey, error) {
	return nil, errUncalled
}
func (k *keyring) StoreSignedPreKey(context.Context, uint32, *record.SignedPreKey) error {
	return errUncalled
}
func (k *keyring) ContainsSignedPreKey(context.Context, uint32) (bool, error) {
	return false, errUncalled
}
func (k *keyring) RemoveSignedPreKey(context.Context, uint32) error { return errUncalled }

func pair(k *keys.KeyPair) *ecc.ECKeyPair {
	return ecc.NewECKeyPair(ecc.NewDjbECPublicKey(*k.Pub), ecc.NewDjbECPrivateKey(*k.Priv))
}
