package whatsapptest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
)

const (
	codeRounds  = 2 << 16      // iterations that turn a code of eight characters into a key
	wrappedSize = 32 + 16 + 32 // salt, initial vector, encrypted public key
)

// codePairing is a client that waits until a code is typed into the phone of a number.
type codePairing struct {
	guest  *registration
	ref    string
	theirs []byte     // the client's ephemeral key, wrapped with the code
	finish chan *node // the client's last word
}

// guestIQ answers what an unpaired client asks.
func (s *Server) guestIQ(c *conn, stanza *node) {
	reg, ok := stanza.GetOptionalChildByTag("link_code_companion_reg")
	switch {
	case str(stanza, "xmlns") == "w:p":
		s.reply(c, stanza)
	case ok && str(&reg, "stage") == "companion_hello":
		s.codeHello(c, stanza, &reg)
	case ok && str(&reg, "stage") == "companion_finish":
		s.mu.Lock()
		p := s.codes[jid(&reg, "jid").User]
		s.mu.Unlock()
		if p == nil || p.ref != string(content(reg.GetChildByTag("link_code_pairing_ref"))) {
			s.replyError(c, stanza, 404, "item-not-found")
			return
		}
		s.reply(c, stanza)
		select {
		case p.finish <- &reg:
		default:
			s.violate("second finish of a pairing by code")
		}
	default:
		s.violate("unknown request before pairing %s", shape(stanza))
		s.replyError(c, stanza, 501, "feature-not-implemented")
	}
}

func (s *Server) codeHello(c *conn, stanza, reg *node) {
	wrapped := content(reg.GetChildByTag("link_code_pairing_wrapped_companion_ephemeral_pub"))
	if len(wrapped) != wrappedSize || !slices.Equal(content(reg.GetChildByTag("companion_server_auth_key_pub")), c.keys.static[:]) {
		s.replyError(c, stanza, 400, "bad-request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := jid(reg, "jid").User
	if s.byNumber[number] == nil {
		s.replyError(c, stanza, 404, "item-not-found")
		return
	}
	p := &codePairing{guest: c.guest, ref: rand.Text(), theirs: wrapped, finish: make(chan *node, 1)}
	s.codes[number] = p
	s.reply(c, stanza, n("link_code_companion_reg", attrs{"stage": "companion_hello"}, leaf("link_code_pairing_ref", []byte(p.ref))))
}

// EnterCode types the code that a client showed into the phone, and returns once both sides have signed. A
// wrong code is an error that the phone learns from the client's answer.
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
	pairing.guest.conn.send(n("notification", attrs{"from": types.ServerJID, "type": "link_code_companion_reg", "id": id, "t": unix()},
		n("link_code_companion_reg", attrs{"stage": "primary_hello"},
			leaf("link_code_pairing_wrapped_primary_ephemeral_pub", slices.Concat(salt, iv, ours)),
			leaf("primary_identity_pub", identity.Pub[:]),
			leaf("link_code_pairing_ref", []byte(pairing.ref)),
		)), s.delay())
	finish, err := pairing.guest.conn.lastWord(ctx, pairing.finish)
	if err != nil {
		return nil, err
	}
	theirIdentity := content(finish.GetChildByTag("companion_identity_public"))
	secret, err := codeSecret(ephemeral, theirs, identity, theirIdentity, content(finish.GetChildByTag("link_code_pairing_wrapped_key_bundle")))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.codes, p.number)
	s.mu.Unlock()
	return p.link(ctx, pairing.guest, theirIdentity, secret)
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
