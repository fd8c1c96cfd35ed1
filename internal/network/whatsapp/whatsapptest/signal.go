package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/groups"
	grouprecord "go.mau.fi/libsignal/groups/state/record"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/libsignal/state/record"
	signalstore "go.mau.fi/libsignal/state/store"
	"go.mau.fi/libsignal/util/optional"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// keyring is the Signal store of a simulated device, in memory. Its mutex guards single operations; the phone's mutex
// guards a whole encryption or decryption.
type keyring struct {
	signalstore.SignalProtocol // nil: the methods that libsignal does not call here

	registration uint32
	own          func() ownKeys // made when they are first needed: most of a thousand phones never are

	mu       sync.Mutex
	lastKey  uint32
	oneTime  map[uint32]*keys.PreKey
	sessions map[string][]byte
	senders  map[string][]byte // sender keys, by group and author
}

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

func (k *keyring) deleteSession(address *protocol.SignalAddress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, address.String())
}

func (k *keyring) GetIdentityKeyPair() *identity.KeyPair {
	own := k.own().identity
	return identity.NewKeyPair(identity.NewKey(ecc.NewDjbECPublicKey(*own.Pub)), ecc.NewDjbECPrivateKey(*own.Priv))
}

func (k *keyring) GetLocalRegistrationID() uint32 { return k.registration }

// SaveIdentity does nothing: simulated phones trust every identity.
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

func pair(k *keys.KeyPair) *ecc.ECKeyPair {
	return ecc.NewECKeyPair(ecc.NewDjbECPublicKey(*k.Pub), ecc.NewDjbECPrivateKey(*k.Priv))
}

// simDevice is a device that lives in this process: a phone, or a companion of it. Its phone's mutex guards
// it.
type simDevice struct {
	phone  *Phone
	device *device
	store  *keyring // replaced when the phone is reinstalled, with the server's lock held too
}

// address names a device in the sessions of simulated ones, whatever form of address it is seen by.
func address(d *device) *protocol.SignalAddress {
	return protocol.NewSignalAddress(d.owner.number, uint32(d.id))
}

// encrypt encrypts for one device, and starts a session if there is none.
func (m *simDevice) encrypt(ctx context.Context, to *device, plain []byte) (node, error) {
	builder := session.NewBuilderFromSignal(m.store, address(to), store.SignalProtobufSerializer)
	if known, _ := m.store.ContainsSession(ctx, address(to)); !known {
		if err := m.startSession(ctx, builder, to); err != nil {
			return node{}, err
		}
	}
	sealed, err := session.NewCipher(builder, address(to)).Encrypt(ctx, pad(plain))
	if err != nil {
		return node{}, fmt.Errorf("encrypt: %w", err)
	}
	kind := "msg"
	if sealed.Type() == protocol.PREKEY_TYPE {
		kind = "pkmsg"
	}
	return node{Tag: "enc", Attrs: attrs{"v": "2", "type": kind}, Content: sealed.Serialize()}, nil
}

// startSession begins a session with the keys that the server has of a device.
func (m *simDevice) startSession(ctx context.Context, builder *session.Builder, to *device) error {
	s := m.phone.server
	s.mu.Lock()
	k := to.public()
	one, ok := to.useOneTimeKey()
	s.mu.Unlock()
	if k.signed.id == 0 {
		return errNoKeys
	}
	id, pub := optional.NewEmptyUint32(), ecc.ECPublicKeyable(nil)
	if ok {
		id, pub = optional.NewOptionalUint32(one.id), ecc.NewDjbECPublicKey(one.pub)
	}
	bundle := prekey.NewBundle(k.registration, uint32(to.id), id, k.signed.id, pub, ecc.NewDjbECPublicKey(k.signed.pub),
		k.signature, identity.NewKey(ecc.NewDjbECPublicKey(k.identity)))
	if err := builder.ProcessBundle(ctx, bundle); err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	return nil
}

// errNoKeys is why nothing can be sent to a client that was linked but has not been online yet.
var errNoKeys = errors.New("the device has no keys on the server")

func (m *simDevice) decrypt(ctx context.Context, from *device, group string, enc *node) (*waE2E.Message, error) {
	raw := content(*enc)
	ser := store.SignalProtobufSerializer
	var plain []byte
	var err error
	switch kind := str(enc, "type"); kind {
	case "pkmsg":
		var sealed *protocol.PreKeySignalMessage
		if sealed, err = protocol.NewPreKeySignalMessageFromBytes(raw, ser.PreKeySignalMessage, ser.SignalMessage); err == nil {
			plain, err = m.decryptFirst(ctx, from, sealed)
		}
	case "msg":
		var sealed *protocol.SignalMessage
		if sealed, err = protocol.NewSignalMessageFromBytes(raw, ser.SignalMessage); err == nil {
			var known *record.Session
			if known, err = m.store.LoadSession(ctx, address(from)); err == nil {
				plain, err = m.decryptWith(ctx, from, known, sealed)
			}
		}
	case "skmsg":
		var sealed *protocol.SenderKeyMessage
		if sealed, err = protocol.NewSenderKeyMessageFromBytes(raw, ser.SenderKeyMessage); err == nil {
			name := protocol.NewSenderKeyName(group, address(from))
			plain, err = groups.NewGroupCipher(groups.NewGroupSessionBuilder(m.store, ser), name, m.store).Decrypt(ctx, sealed)
		}
	default:
		err = fmt.Errorf("unknown kind of ciphertext %q", kind)
	}
	if err != nil {
		return nil, err
	}
	if plain, err = unpad(plain); err != nil {
		return nil, err
	}
	var msg waE2E.Message
	if err := proto.Unmarshal(plain, &msg); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return &msg, nil
}

// decryptFirst decrypts a message that may begin a session.
func (m *simDevice) decryptFirst(ctx context.Context, from *device, sealed *protocol.PreKeySignalMessage) ([]byte, error) {
	known, err := m.store.LoadSession(ctx, address(from))
	if err != nil {
		return nil, err
	}
	builder := session.NewBuilderFromSignal(m.store, address(from), store.SignalProtobufSerializer)
	used, err := builder.Process(ctx, known, sealed)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	plain, err := m.decryptWith(ctx, from, known, sealed.WhisperMessage())
	if err == nil && used != nil && !used.IsEmpty {
		err = m.store.RemovePreKey(ctx, used.Value)
	}
	return plain, err
}

// decryptWith tries every session of a device. There are several if both sides started one. Then each try uses a copy,
// because a failed try corrupts it.
func (m *simDevice) decryptWith(ctx context.Context, from *device, known *record.Session, sealed *protocol.SignalMessage) ([]byte, error) {
	ser := store.SignalProtobufSerializer
	cipher := session.NewCipher(session.NewBuilderFromSignal(m.store, address(from), ser), address(from))
	if len(known.PreviousSessionStates()) == 0 {
		plain, _, err := cipher.DecryptWithState(ctx, known.SessionState(), sealed)
		if err != nil {
			return nil, err
		}
		return plain, m.store.StoreSession(ctx, address(from), known)
	}
	raw := known.Serialize()
	err := signalerror.ErrNoSessionForUser
	for i := range 1 + len(known.PreviousSessionStates()) {
		fresh, loadErr := record.NewSessionFromBytes(raw, ser.Session, ser.State)
		if loadErr != nil {
			return nil, loadErr
		}
		state := fresh.SessionState()
		if i > 0 {
			state = fresh.PreviousSessionStates()[i-1]
		}
		var plain []byte
		if plain, _, err = cipher.DecryptWithState(ctx, state, sealed); err == nil {
			if i > 0 {
				fresh.PromoteState(state)
			}
			return plain, m.store.StoreSession(ctx, address(from), fresh)
		}
		if errors.Is(err, signalerror.ErrOldCounter) {
			return nil, err
		}
	}
	return nil, err
}

// encryptGroup encrypts for a group and returns the key that each member needs.
func (m *simDevice) encryptGroup(ctx context.Context, group string, plain []byte) (node, *waE2E.Message, error) {
	ser := store.SignalProtobufSerializer
	builder := groups.NewGroupSessionBuilder(m.store, ser)
	name := protocol.NewSenderKeyName(group, address(m.device))
	distribution, err := builder.Create(ctx, name)
	if err != nil {
		return node{}, nil, fmt.Errorf("make a sender key: %w", err)
	}
	sealed, err := groups.NewGroupCipher(builder, name, m.store).Encrypt(ctx, pad(plain))
	if err != nil {
		return node{}, nil, fmt.Errorf("encrypt for a group: %w", err)
	}
	key := &waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{
		GroupID: proto.String(group), AxolotlSenderKeyDistributionMessage: distribution.Serialize(),
	}}
	return node{Tag: "enc", Attrs: attrs{"v": "2", "type": "skmsg"}, Content: sealed.SignedSerialize()}, key, nil
}

// storeSenderKey stores the group key of a member.
func (m *simDevice) storeSenderKey(ctx context.Context, from *device, d *waE2E.SenderKeyDistributionMessage) error {
	ser := store.SignalProtobufSerializer
	key, err := protocol.NewSenderKeyDistributionMessageFromBytes(d.GetAxolotlSenderKeyDistributionMessage(),
		ser.SenderKeyDistributionMessage)
	if err != nil {
		return fmt.Errorf("read a sender key: %w", err)
	}
	name := protocol.NewSenderKeyName(d.GetGroupID(), address(from))
	return groups.NewGroupSessionBuilder(m.store, ser).Process(ctx, name, key)
}

// pad adds up to fifteen bytes, each with the length of the padding.
func pad(plain []byte) []byte {
	size := random(1)[0] & 15
	if size == 0 {
		size = 15
	}
	return append(bytes.Clone(plain), bytes.Repeat([]byte{size}, int(size))...)
}

func unpad(padded []byte) ([]byte, error) {
	if len(padded) == 0 {
		return nil, errors.New("empty plaintext")
	}
	size := int(padded[len(padded)-1])
	if size > len(padded) || !bytes.HasSuffix(padded, bytes.Repeat([]byte{byte(size)}, size)) {
		return nil, errors.New("plaintext with wrong padding")
	}
	return padded[:len(padded)-size], nil
}
