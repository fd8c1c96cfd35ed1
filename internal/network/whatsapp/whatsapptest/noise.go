package whatsapptest

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"google.golang.org/protobuf/proto"
)

// noisePattern is 32 bytes long and therefore its own hash.
const noisePattern = "Noise_XX_25519_AESGCM_SHA256\x00\x00\x00\x00"

// responder is the server's half of a Noise XX handshake.
type responder struct {
	hash, chain []byte
	key         cipher.AEAD
	count       uint32
}

type handshakeResult struct {
	static      [32]byte // the client's key, its credential at every later login
	payload     *waWa6.ClientPayload
	read, write cipher.AEAD
}

func newResponder(prologue []byte) (*responder, error) {
	r := &responder{hash: []byte(noisePattern), chain: []byte(noisePattern)}
	var err error
	if r.key, err = gcmutil.Prepare(r.chain); err != nil {
		return nil, err
	}
	r.mixHash(prologue)
	return r, nil
}

// answer reads the client hello and returns the server hello with its ephemeral key.
func (r *responder) answer(hello []byte, cert *certificate) ([]byte, *keys.KeyPair, error) {
	var m waWa6.HandshakeMessage
	if err := proto.Unmarshal(hello, &m); err != nil {
		return nil, nil, fmt.Errorf("read client hello: %w", err)
	}
	theirs := m.GetClientHello().GetEphemeral()
	if len(theirs) != 32 {
		return nil, nil, errors.New("client hello without a key")
	}
	ours := keys.NewKeyPair()
	r.mixHash(theirs)
	r.mixHash(ours.Pub[:])
	if err := r.mixKey(ours, theirs); err != nil {
		return nil, nil, err
	}
	static := r.encrypt(cert.static.Pub[:])
	if err := r.mixKey(cert.static, theirs); err != nil {
		return nil, nil, err
	}
	out, err := proto.Marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: ours.Pub[:], Static: static, Payload: r.encrypt(cert.chain),
	}})
	return out, ours, err
}

// finish reads the client finish and derives the keys of the connection.
func (r *responder) finish(raw []byte, ours *keys.KeyPair) (*handshakeResult, error) {
	var m waWa6.HandshakeMessage
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read client finish: %w", err)
	}
	static, err := r.open(m.GetClientFinish().GetStatic())
	if err != nil || len(static) != 32 {
		return nil, fmt.Errorf("open client key: %w", err)
	}
	if err := r.mixKey(ours, static); err != nil {
		return nil, err
	}
	raw, err = r.open(m.GetClientFinish().GetPayload())
	if err != nil {
		return nil, fmt.Errorf("open client payload: %w", err)
	}
	g := &handshakeResult{static: [32]byte(static), payload: new(waWa6.ClientPayload)}
	if err := proto.Unmarshal(raw, g.payload); err != nil {
		return nil, fmt.Errorf("read client payload: %w", err)
	}
	first, second, err := expand(r.chain, nil)
	if err != nil {
		return nil, err
	}
	if g.read, err = gcmutil.Prepare(first); err != nil {
		return nil, err
	}
	g.write, err = gcmutil.Prepare(second)
	return g, err
}

func (r *responder) mixHash(data []byte) {
	h := sha256.New()
	h.Write(r.hash)
	h.Write(data)
	r.hash = h.Sum(nil)
}

func (r *responder) mixKey(private *keys.KeyPair, public []byte) error {
	secret, err := curve25519.X25519(private.Priv[:], public)
	if err != nil {
		return fmt.Errorf("agree on a key: %w", err)
	}
	chain, key, err := expand(r.chain, secret)
	if err != nil {
		return err
	}
	r.chain, r.count = chain, 0
	r.key, err = gcmutil.Prepare(key)
	return err
}

func (r *responder) encrypt(plain []byte) []byte {
	sealed := r.key.Seal(nil, nonce(r.count), plain, r.hash)
	r.count++
	r.mixHash(sealed)
	return sealed
}

func (r *responder) open(sealed []byte) ([]byte, error) {
	plain, err := r.key.Open(nil, nonce(r.count), sealed, r.hash)
	if err != nil {
		return nil, err
	}
	r.count++
	r.mixHash(sealed)
	return plain, nil
}

func expand(salt, secret []byte) (first, second []byte, err error) {
	both, err := hkdf.Key(sha256.New, secret, salt, "", 64)
	if err != nil {
		return nil, nil, fmt.Errorf("derive keys: %w", err)
	}
	return both[:32], both[32:], nil
}

// nonce is the counter in the last four of twelve bytes.
func nonce(count uint32) []byte {
	n := make([]byte, 12)
	binary.BigEndian.PutUint32(n[8:], count)
	return n
}
