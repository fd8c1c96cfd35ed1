package keystore

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/util/optional"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley/internal/postgrestest"
)

func TestMain(m *testing.M) {
	UseCompactSessions()
	m.Run()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a store on a file, which is closed with the test unless that did so.
func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := openWith(t.Context(), postgrestest.Path(t, path), nil, waLog.Noop, 1)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// crash ends a store as the end of its process does: nothing that is only in memory is written.
func crash(t testing.TB, s *Store) {
	t.Helper()
	s.closing.Do(func() {
		s.pruner.close()
		must(t, s.db.Close())
	})
}

var number = types.JID{User: "6281234567890", Server: types.DefaultUserServer, Device: 3}

// linked returns a device that is kept.
func linked(t testing.TB, s *Store, jid types.JID) *store.Device {
	t.Helper()
	d := s.NewDevice()
	d.ID, d.LID = &jid, types.JID{User: "100" + jid.User, Server: types.HiddenUserServer, Device: jid.Device}
	d.Account = &waAdv.ADVSignedDeviceIdentity{Details: []byte("details"), AccountSignature: make([]byte, 64),
		DeviceSignature: make([]byte, 64)}
	must(t, d.Save(t.Context()))
	return again(t, s, jid)
}

// again reads a device, as a client that connects does.
func again(t testing.TB, s *Store, jid types.JID) *store.Device {
	t.Helper()
	d, err := s.Device(t.Context(), jid)
	must(t, err)
	if d == nil {
		t.Fatal("the device is not kept")
	}
	return d
}

func fresh(t testing.TB) (*Store, *store.Device, string) {
	path := filepath.Join(t.TempDir(), "keys.db")
	s := open(t, path)
	return s, linked(t, s, number), path
}

// toAddress is under which a device is known to others.
func toAddress(d *store.Device) *protocol.SignalAddress { return d.LID.SignalAddress() }

// greet has one device begin a session with another, of which it has the keys.
func greet(t testing.TB, from, to *store.Device) {
	t.Helper()
	one, err := to.PreKeys.GenOnePreKey(t.Context())
	must(t, err)
	bundle := prekey.NewBundle(to.RegistrationID, uint32(to.LID.Device), optional.NewOptionalUint32(one.KeyID), to.SignedPreKey.KeyID,
		ecc.NewDjbECPublicKey(*one.Pub), ecc.NewDjbECPublicKey(*to.SignedPreKey.Pub), *to.SignedPreKey.Signature,
		identity.NewKey(ecc.NewDjbECPublicKey(*to.IdentityKey.Pub)))
	builder := session.NewBuilderFromSignal(from, toAddress(to), store.SignalProtobufSerializer)
	must(t, builder.ProcessBundle(t.Context(), bundle))
}

// sealed is a ciphertext with its kind.
type sealed struct {
	first bool // it begins a session
	bytes []byte
}

// write encrypts as a send does: sessions are read, held, and written back before anything leaves.
func write(ctx context.Context, t testing.TB, s *Store, from, to *store.Device, text string) sealed {
	t.Helper()
	ctx, done := s.SendContext(ctx)
	defer done()
	_, cached, err := from.WithCachedSessions(ctx, []string{toAddress(to).String()})
	must(t, err)
	ciphertext, starts, err := Encrypt(cached, from, toAddress(to), []byte(text))
	must(t, err)
	must(t, from.PutCachedSessions(cached))
	return sealed{starts, ciphertext}
}

// counter is the number of the key that a ciphertext is encrypted with.
func (s sealed) counter(t testing.TB) uint32 {
	t.Helper()
	ser := store.SignalProtobufSerializer
	if s.first {
		m, err := protocol.NewPreKeySignalMessageFromBytes(s.bytes, ser.PreKeySignalMessage, ser.SignalMessage)
		must(t, err)
		return m.WhisperMessage().Counter()
	}
	m, err := protocol.NewSignalMessageFromBytes(s.bytes, ser.SignalMessage)
	must(t, err)
	return m.Counter()
}

// decrypt decrypts, as it is done on arrival: in one transaction with the text.
func decrypt(ctx context.Context, to, from *store.Device, m sealed, hash [32]byte) (text string, err error) {
	ser := store.SignalProtobufSerializer
	cipher := session.NewCipher(session.NewBuilderFromSignal(to, toAddress(from), ser), toAddress(from))
	err = to.EventBuffer.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		var plain []byte
		var err error
		if m.first {
			var first *protocol.PreKeySignalMessage
			if first, err = protocol.NewPreKeySignalMessageFromBytes(m.bytes, ser.PreKeySignalMessage, ser.SignalMessage); err == nil {
				plain, err = cipher.DecryptMessage(ctx, first)
			}
		} else {
			var next *protocol.SignalMessage
			if next, err = protocol.NewSignalMessageFromBytes(m.bytes, ser.SignalMessage); err == nil {
				plain, err = cipher.Decrypt(ctx, next)
			}
		}
		if err != nil {
			return err
		}
		text = string(plain)
		return to.EventBuffer.PutBufferedEvent(ctx, hash, plain, time.Unix(1, 0))
	})
	return text, err
}

// putSession writes a session as it has to be: after reading it.
func putSession(t testing.TB, d *store.Device, address, value string) {
	t.Helper()
	_, err := d.Sessions.GetSession(t.Context(), address)
	must(t, err)
	must(t, d.Sessions.PutSession(t.Context(), address, []byte(value)))
}
