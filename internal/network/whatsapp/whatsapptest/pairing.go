package whatsapptest

import (
	"context"
	"crypto/hmac"
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
	"google.golang.org/protobuf/proto"
)

const refsPerGuest = 6 // as many codes as a client shows before it gives up

// registration is a connection of a client that is not paired yet. Its fields are written once, but for
// asked, which Server.mu guards.
type registration struct {
	conn   *conn
	refs   []string
	asked  string // the id of our request to sign
	answer chan *node
}

// Link is a client that is linked to a phone.
type Link struct {
	phone  *Phone
	device *device
}

// Device is the client's number among the devices of its phone.
func (l *Link) Device() uint16 { return l.device.id }

// register gives a new client the references for its QR codes.
func (s *Server) register(c *conn) {
	g := &registration{conn: c, answer: make(chan *node, 1)}
	var refs []node
	for range refsPerGuest {
		ref := "2@" + rand.Text() + rand.Text()
		g.refs = append(g.refs, ref)
		refs = append(refs, leaf("ref", []byte(ref)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.guest = g
	for _, ref := range g.refs {
		s.guests[ref] = g
	}
	c.send(n("iq", attrs{"from": types.ServerJID, "type": "set", "xmlns": "md", "id": s.nextID("ref-")}, n("pair-device", nil, refs...)), s.delay())
}

// Scan links the client that shows this QR code, and returns once both sides have signed.
func (p *Phone) Scan(ctx context.Context, qr string) (*Link, error) {
	_, text, ok := strings.Cut(qr, "#")
	if !ok {
		text = qr // before 2026 the code was bare
	}
	parts := strings.Split(text, ",")
	if len(parts) < 4 {
		return nil, errors.New("this is no code for linking a device")
	}
	var raw [3][]byte // Noise key, identity key, secret
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil || len(raw[i]) != 32 {
			return nil, errors.New("this is no code for linking a device")
		}
	}
	s := p.server
	s.mu.Lock()
	g := s.guests[parts[0]]
	s.mu.Unlock()
	if g == nil {
		return nil, errors.New("the code has expired")
	}
	if [32]byte(raw[0]) != g.conn.keys.static {
		return nil, errors.New("the code is not of the connection that it names")
	}
	return p.link(ctx, g, raw[1], raw[2])
}

// link signs the identity of a client and takes its answer.
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
	if p.takeBadSignature() {
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
			n("device", attrs{"jid": p.account.pn(id), "lid": p.account.hidden(id)}),
			n("platform", attrs{"name": "android"}),
		)), s.delay())
	answer, err := g.conn.lastWord(ctx, g.answer)
	if err != nil {
		return nil, err
	}
	return p.linked(g, id, signed, identity, answer)
}

// lastWord waits for what a client says while it is linked. It may hang up right after it.
func (c *conn) lastWord(ctx context.Context, said <-chan *node) (*node, error) {
	select {
	case word := <-said:
		return word, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.gone.Done():
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

// linked checks what the client signed, remembers it, and asks it to connect again.
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
		delete(s.guests, ref)
	}
	s.announceDevices(p.account, "add", id)
	g.conn.end(Reconnect.node(), s.delay())
	return &Link{phone: p, device: d}, nil
}

// deviceMessage is what a companion signs to accept its identity.
func deviceMessage(signed *waAdv.ADVSignedDeviceIdentity, identity []byte) []byte {
	return slices.Concat(whatsmeow.AdvDeviceSignaturePrefix, signed.Details, identity, signed.AccountSignatureKey)
}

// Online waits until the linked client is connected and takes stanzas.
func (l *Link) Online(ctx context.Context) error {
	s := l.phone.server
	_, err := await(ctx, &s.changed, func() (struct{}, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return struct{}{}, l.device.active
	})
	return err
}

// Offline waits until the linked client has no connection.
func (l *Link) Offline(ctx context.Context) error {
	s := l.phone.server
	_, err := await(ctx, &s.changed, func() (struct{}, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return struct{}{}, l.device.conn == nil
	})
	return err
}

// Idle waits until the client has acknowledged everything that it was given.
func (l *Link) Idle(ctx context.Context) error {
	s := l.phone.server
	_, err := await(ctx, &s.changed, func() (struct{}, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return struct{}{}, len(l.device.queue) == 0
	})
	return err
}
