package whatsapptest

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"google.golang.org/protobuf/proto"
)

// passkeyPairing is a client that is asked for the passkey of its account.
type passkeyPairing struct {
	ref      string
	prologue chan *node  // its response, with the assertion
	nonce    chan []byte // and what it committed to
	request  chan []byte // its keys, encrypted
}

// PasskeyChallenge is what the authenticator of an account must sign.
const PasskeyChallenge = "c2lnbiB0aGlz"

// LinkWithPasskey links the client that shows this QR code after it handed in the response of the passkey. It passes the code that
// the phone shows to compare, before the client confirms it.
func (p *Phone) LinkWithPasskey(ctx context.Context, qr string, compare func(code string)) (*Link, error) {
	g, _, _, err := p.readCode(qr)
	if err != nil {
		return nil, err
	}
	pairing := &passkeyPairing{ref: "ref-" + g.refs[0], prologue: make(chan *node, 1), nonce: make(chan []byte, 1),
		request: make(chan []byte, 1)}
	options, err := json.Marshal(map[string]any{"challenge": PasskeyChallenge, "timeout": 300_000, "rpId": "whatsapp.com",
		"allowCredentials": []any{}, "userVerification": "required"})
	if err != nil {
		return nil, err
	}
	p.server.mu.Lock()
	g.passkey = pairing
	ask, goOn := p.server.nextID(""), p.server.nextID("")
	p.server.mu.Unlock()
	g.conn.send(n("notification", attrs{"from": types.ServerJID, "type": "passkey_prologue_request", "id": ask, "t": unix()},
		leaf("passkey_request_options", options)))
	prologue, err := awaitOn(ctx, g.conn, pairing.prologue)
	if err != nil {
		return nil, err
	}
	var payload waCompanionReg.ProloguePayload
	var companion waCompanionReg.CompanionEphemeralIdentity
	if err := errors.Join(proto.Unmarshal(content(prologue.GetChildByTag("prologue_payload")), &payload),
		proto.Unmarshal(payload.GetCompanionEphemeralIdentity(), &companion)); err != nil {
		return nil, fmt.Errorf("read the client's identity: %w", err)
	}
	own, secret := keys.NewKeyPair(), random(32)
	primary, err := proto.Marshal(&waCompanionReg.PrimaryEphemeralIdentity{PublicKey: own.Pub[:], Nonce: secret})
	if err != nil {
		return nil, err
	}
	g.conn.send(n("notification", attrs{"from": types.ServerJID, "type": "crsc_continuation", "id": goOn, "t": unix()},
		leaf("primary_ephemeral_identity", primary)))
	nonce, err := awaitOn(ctx, g.conn, pairing.nonce)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(slices.Concat(payload.GetCompanionEphemeralIdentity(), nonce))
	if !slices.Equal(hash[:], payload.GetCommitment().GetHash()) {
		return nil, errors.New("the client committed to something else")
	}
	digest := sha256.Sum256(slices.Concat(nonce, own.Pub[:]))
	shown := make([]byte, 5)
	for i := range shown {
		shown[i] = secret[i] ^ digest[i]
	}
	text := base32.NewEncoding("123456789ABCDEFGHJKLMNPQRSTVWXYZ").EncodeToString(shown)
	compare(text[:4] + "-" + text[4:])
	sealed, err := awaitOn(ctx, g.conn, pairing.request)
	if err != nil {
		return nil, err
	}
	request, err := openPairingRequest(own, &companion, pairing.ref, sealed)
	if err != nil {
		return nil, err
	}
	return p.link(ctx, g, request.GetCompanionIdentityKey(), request.GetAdvSecret())
}

func openPairingRequest(own *keys.KeyPair, companion *waCompanionReg.CompanionEphemeralIdentity, ref string, sealed []byte) (
	*waCompanionReg.PairingRequest, error,
) {
	var wrapped waCompanionReg.EncryptedPairingRequest
	if err := proto.Unmarshal(sealed, &wrapped); err != nil {
		return nil, err
	}
	shared, err := curve25519.X25519(own.Priv[:], companion.GetPublicKey())
	if err != nil {
		return nil, err
	}
	salt := fmt.Sprintf("Companion Pairing %d with ref %s", companion.GetDeviceType(), ref)
	key := hkdfutil.SHA256(shared, []byte(salt), []byte("Pairing Information Encryption Key"), 32)
	plain, err := gcmutil.Decrypt(key, wrapped.GetIV(), wrapped.GetEncryptedPayload(), nil)
	if err != nil {
		return nil, fmt.Errorf("open the client's keys: %w", err)
	}
	var request waCompanionReg.PairingRequest
	return &request, proto.Unmarshal(plain, &request)
}

// passkeyIQ handles a request of a client that is asked for a passkey. It returns false for another request.
func (s *Server) passkeyIQ(c *conn, stanza *node) bool {
	p := c.registration.passkey
	if p == nil || str(stanza, "xmlns") != "md" {
		return false
	}
	one := first(stanza)
	child := &one
	switch child.Tag {
	case "ref":
		c.reply(stanza, leaf("ref", []byte(p.ref)))
		return true
	case "passkey_prologue":
		var assertion types.WebAuthnResponse
		proof := content(child.GetChildByTag("pairing_handoff_proof"))
		err := json.Unmarshal(content(child.GetChildByTag("webauthn_assertion")), &assertion)
		if err != nil || string(assertion.Response.Signature) != "signed" {
			c.replyError(stanza, 403, "forbidden")
			return true
		}
		if len(proof) != 32 {
			s.violate("a passkey without the proof of its pairing")
		}
		p.prologue <- child
	case "companion_nonce":
		p.nonce <- content(*child)
	case "encrypted_pairing_request":
		p.request <- content(*child)
	default:
		return false
	}
	c.reply(stanza)
	return true
}

// awaitOn waits for what a client sends during a pairing.
func awaitOn[T any](ctx context.Context, c *conn, said <-chan T) (word T, err error) {
	select {
	case word = <-said:
		return word, nil
	case <-ctx.Done():
		return word, ctx.Err()
	case <-c.ctx.Done():
		return word, errors.New("the client hung up while it was linked")
	}
}
