package whatsapptest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"google.golang.org/protobuf/proto"
)

const refsPerRegistration = 6 // as many codes as a client shows

// registration is a connection of an unpaired client. Only asked changes; Server.mu guards it.
type registration struct {
	conn     *conn
	refs     []string
	asked    string // the id of our request to sign
	response chan *node
	passkey  *passkeyPairing // nil: its account has none
}

type Link struct {
	phone  *Phone
	device *device
}

// Device is the client's number among the devices of its phone.
func (l *Link) Device() uint16 { return l.device.id }

// register sends a new client the references for its QR codes.
func (s *Server) register(c *conn) {
	g := &registration{conn: c, response: make(chan *node, 1)}
	var refs []node
	for range refsPerRegistration {
		ref := "2@" + rand.Text() + rand.Text()
		g.refs = append(g.refs, ref)
		refs = append(refs, leaf("ref", []byte(ref)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.registration = g
	for _, ref := range g.refs {
		s.registrations[ref] = g
	}
	c.send(n("iq", attrs{"from": types.ServerJID, "type": "set", "xmlns": "md", "id": s.nextID("ref-")}, n("pair-device", nil, refs...)))
}

// Scan links the client that shows this QR code, and returns once both sides have signed.
func (p *Phone) Scan(ctx context.Context, qr string) (*Link, error) {
	g, identity, secret, err := p.readCode(qr)
	if err != nil {
		return nil, err
	}
	return p.link(ctx, g, identity, secret)
}

// readCode returns the client that shows a QR code, with its identity and secret.
func (p *Phone) readCode(qr string) (_ *registration, identity, secret []byte, err error) {
	_, text, ok := strings.Cut(qr, "#")
	if !ok {
		text = qr // before 2026 the code was bare
	}
	parts := strings.Split(text, ",")
	if len(parts) < 4 {
		return nil, nil, nil, errors.New("this is no code for linking a device")
	}
	var raw [3][]byte // Noise key, identity key, secret
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil || len(raw[i]) != 32 {
			return nil, nil, nil, errors.New("this is no code for linking a device")
		}
	}
	s := p.server
	s.mu.Lock()
	g := s.registrations[parts[0]]
	s.mu.Unlock()
	if g == nil {
		return nil, nil, nil, errors.New("the code has expired")
	}
	if [32]byte(raw[0]) != g.conn.keys.static {
		return nil, nil, nil, errors.New("the code is not of the connection that it names")
	}
	return g, raw[1], raw[2], nil
}

// link signs the identity of a client and waits for its response.
func (p *Phone) link(ctx context.Context, g *registration, identity, secret []byte) (*Link, error) {
	s := p.server
	if !slices.Equal(identity, g.conn.keys.payload.GetDevicePairingData().GetEIdent()) {
		return nil, errors.New("the client registered with another identity")
	}
	s.mu.Lock()
	p.account.lastDevice++
	id := p.account.lastDevice
	asked := s.nextID("pair-")
	g.asked = asked
	s.mu.Unlock()
	signed, err := p.adv(id, identity)
	if err != nil {
		return nil, err
	}
	details, err := proto.Marshal(signed)
	if err != nil {
		return nil, fmt.Errorf("encode device identity: %w", err)
	}
	if p.popBadSignature() {
		secret = make([]byte, len(secret))
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(details)
	sealed, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: details, HMAC: mac.Sum(nil)})
	if err != nil {
		return nil, fmt.Errorf("encode device identity: %w", err)
	}
	g.conn.send(n("iq", attrs{"from": types.ServerJID, "type": "set", "xmlns": "md", "id": asked, "t": unix()},
		n("pair-success", nil,
			leaf("device-identity", sealed),
			n("device", attrs{"jid": p.account.pnJID(id), "lid": p.account.lidJID(id)}),
			n("platform", attrs{"name": "android"}),
		)))
	answer, err := g.conn.awaitReply(ctx, g.response)
	if err != nil {
		return nil, err
	}
	return p.linked(g, id, signed, identity, answer)
}

// awaitReply waits for a response during pairing. The client may disconnect right after it.
func (c *conn) awaitReply(ctx context.Context, said <-chan *node) (*node, error) {
	select {
	case word := <-said:
		return word, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ctx.Done():
	}
	select {
	case word := <-said:
		return word, nil
	default:
		return nil, errors.New("the client hung up while it was linked")
	}
}

// adv makes the identity of a companion, signed with the phone's Signal identity key.
func (p *Phone) adv(id uint16, identity []byte) (*waAdv.ADVSignedDeviceIdentity, error) {
	details, err := proto.Marshal(&waAdv.ADVDeviceIdentity{
		RawID: proto.Uint32(uint32(id)), Timestamp: proto.Uint64(uint64(unix())), KeyIndex: proto.Uint32(uint32(id)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode device details: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.main.store.own().identity
	return &waAdv.ADVSignedDeviceIdentity{
		Details: details, AccountSignatureKey: own.Pub[:],
		AccountSignature: sign(own, slices.Concat(whatsmeow.AdvAccountSignaturePrefix, details, identity)),
	}, nil
}

// linked verifies the client's signature, stores the device, and asks the client to reconnect.
func (p *Phone) linked(g *registration, id uint16, signed *waAdv.ADVSignedDeviceIdentity, identity []byte, answer *node) (*Link, error) {
	if str(answer, "type") == "error" {
		e := answer.GetChildByTag("error")
		return nil, fmt.Errorf("the client refused to be linked: %s", str(&e, "text"))
	}
	var theirs waAdv.ADVSignedDeviceIdentity
	if err := proto.Unmarshal(content(answer.GetChildByTag("pair-device-sign", "device-identity")), &theirs); err != nil {
		return nil, fmt.Errorf("read the client's identity: %w", err)
	}
	message := deviceMessage(signed, identity)
	if len(theirs.DeviceSignature) != 64 ||
		!ecc.VerifySignature(ecc.NewDjbECPublicKey([32]byte(identity)), message, [64]byte(theirs.DeviceSignature)) {
		return nil, errors.New("the client's signature is wrong")
	}
	signed.DeviceSignature = theirs.DeviceSignature
	adv, err := proto.Marshal(signed)
	if err != nil {
		return nil, fmt.Errorf("encode device identity: %w", err)
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &device{owner: p.account, id: id, adv: adv, noise: g.conn.keys.static, fresh: true}
	pd := g.conn.keys.payload.GetDevicePairingData()
	d.keys.identity = [32]byte(identity)
	d.keys.registration = from24(pd.GetERegid())
	p.account.devices[id] = d
	for _, ref := range g.refs {
		delete(s.registrations, ref)
	}
	s.announceDevices(p.account, p.account.publicJID(0), nil, "add", id)
	g.conn.end(Reconnect.node())
	return &Link{phone: p, device: d}, nil
}

func deviceMessage(signed *waAdv.ADVSignedDeviceIdentity, identity []byte) []byte {
	return slices.Concat(whatsmeow.AdvDeviceSignaturePrefix, signed.Details, identity, signed.AccountSignatureKey)
}

// Online waits until the linked client is connected and receives stanzas.
func (l *Link) Online(ctx context.Context) error {
	return l.phone.server.await(ctx, func() bool { return l.device.active })
}

// Offline waits until the linked client has no connection.
func (l *Link) Offline(ctx context.Context) error {
	return l.phone.server.await(ctx, func() bool { return l.device.conn == nil })
}

func (l *Link) Idle(ctx context.Context) error {
	return l.phone.server.await(ctx, func() bool { return len(l.device.queue) == 0 })
}

const (
	codeRounds  = 2 << 16      // iterations that turn a code of eight characters into a key
	wrappedSize = 32 + 16 + 32 // salt, initial vector, encrypted public key
)

// codePairing is a client that waits until a code is typed into the phone of a number.
type codePairing struct {
	registration *registration
	ref          string
	theirs       []byte     // the client's ephemeral key, wrapped with the code
	finish       chan *node // the client's last word
}

func (s *Server) registrationIQ(c *conn, stanza *node) {
	reg, ok := stanza.GetOptionalChildByTag("link_code_companion_reg")
	switch {
	case str(stanza, "xmlns") == "w:p":
		c.reply(stanza)
	case s.passkeyIQ(c, stanza):
	case ok && str(&reg, "stage") == "companion_hello":
		s.codeHello(c, stanza, &reg)
	case ok && str(&reg, "stage") == "companion_finish":
		s.mu.Lock()
		p := s.codes[jid(&reg, "jid").User]
		s.mu.Unlock()
		if p == nil || p.ref != string(content(reg.GetChildByTag("link_code_pairing_ref"))) {
			c.replyError(stanza, 404, "item-not-found")
			return
		}
		c.reply(stanza)
		select {
		case p.finish <- &reg:
		default:
			s.violate("second finish of a pairing by code")
		}
	default:
		s.violate("unknown request before pairing %s", shape(stanza))
		c.replyError(stanza, 501, "feature-not-implemented")
	}
}

func (s *Server) codeHello(c *conn, stanza, reg *node) {
	wrapped := content(reg.GetChildByTag("link_code_pairing_wrapped_companion_ephemeral_pub"))
	if len(wrapped) != wrappedSize || !slices.Equal(content(reg.GetChildByTag("companion_server_auth_key_pub")), c.keys.static[:]) {
		c.replyError(stanza, 400, "bad-request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := jid(reg, "jid").User
	if s.byNumber[number] == nil {
		c.replyError(stanza, 404, "item-not-found")
		return
	}
	p := &codePairing{registration: c.registration, ref: rand.Text(), theirs: wrapped, finish: make(chan *node, 1)}
	s.codes[number] = p
	c.reply(stanza, n("link_code_companion_reg", attrs{"stage": "companion_hello"}, leaf("link_code_pairing_ref", []byte(p.ref))))
}

// EnterCode types a client's code into the phone, and returns once both sides have signed. A wrong code is an error.
func (p *Phone) EnterCode(ctx context.Context, code string) (*Link, error) {
	s := p.server
	s.mu.Lock()
	pairing := s.codes[p.number]
	s.mu.Unlock()
	if pairing == nil {
		return nil, errors.New("no client waits for a code")
	}
	code = strings.ReplaceAll(code, "-", "")
	theirs, err := codeCipher(code, pairing.theirs[:32], pairing.theirs[32:48], pairing.theirs[48:])
	if err != nil {
		return nil, err
	}
	ephemeral := keys.NewKeyPair()
	salt, iv := random(32), random(16)
	ours, err := codeCipher(code, salt, iv, ephemeral.Pub[:])
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	identity := p.main.store.own().identity
	p.mu.Unlock()
	s.mu.Lock()
	id := s.nextID("")
	s.mu.Unlock()
	pairing.registration.conn.send(n("notification",
		attrs{"from": types.ServerJID, "type": "link_code_companion_reg", "id": id, "t": unix()},
		n("link_code_companion_reg", attrs{"stage": "primary_hello"},
			leaf("link_code_pairing_wrapped_primary_ephemeral_pub", slices.Concat(salt, iv, ours)),
			leaf("primary_identity_pub", identity.Pub[:]),
			leaf("link_code_pairing_ref", []byte(pairing.ref)),
		)))
	finish, err := pairing.registration.conn.awaitReply(ctx, pairing.finish)
	if err != nil {
		return nil, err
	}
	theirIdentity := content(finish.GetChildByTag("companion_identity_public"))
	secret, err := codeSecret(ephemeral, theirs, identity, theirIdentity,
		content(finish.GetChildByTag("link_code_pairing_wrapped_key_bundle")))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.codes, p.number)
	s.mu.Unlock()
	return p.link(ctx, pairing.registration, theirIdentity, secret)
}

// codeCipher wraps or unwraps a public key with a code.
func codeCipher(code string, salt, iv, data []byte) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, code, salt, codeRounds, 32)
	if err != nil {
		return nil, fmt.Errorf("derive a key from the code: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(data))
	cipher.NewCTR(block, iv).XORKeyStream(out, data)
	return out, nil
}

// codeSecret opens the client's bundle and derives the secret that will prove the pairing.
func codeSecret(ephemeral *keys.KeyPair, theirs []byte, identity *keys.KeyPair, theirIdentity, bundle []byte) ([]byte, error) {
	if len(bundle) < 44 || len(theirIdentity) != 32 {
		return nil, errors.New("the client's bundle is too short")
	}
	shared, err := curve25519.X25519(ephemeral.Priv[:], theirs)
	if err != nil {
		return nil, fmt.Errorf("agree on a key: %w", err)
	}
	key := hkdfutil.SHA256(shared, bundle[:32], []byte("link_code_pairing_key_bundle_encryption_key"), 32)
	plain, err := gcmutil.Decrypt(key, bundle[32:44], bundle[44:], nil)
	if err != nil || len(plain) != 96 {
		return nil, errors.New("the code is wrong")
	}
	if !slices.Equal(plain[:32], theirIdentity) || !slices.Equal(plain[32:64], identity.Pub[:]) {
		return nil, errors.New("the client signed other identities")
	}
	identities, err := curve25519.X25519(identity.Priv[:], theirIdentity)
	if err != nil {
		return nil, fmt.Errorf("agree on a key: %w", err)
	}
	return hkdfutil.SHA256(slices.Concat(shared, identities, plain[64:]), nil, []byte("adv_secret"), 32), nil
}

func random(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails
	return b
}
