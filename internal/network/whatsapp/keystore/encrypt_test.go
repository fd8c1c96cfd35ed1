package keystore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/whatsmeow/store"
)

// TestEncryptsAsLibsignal encrypts every message of a conversation twice in the same state of the session. The bytes must be
// those of libsignal: in messages that start a session, and in later ones.
func TestEncryptsAsLibsignal(t *testing.T) {
	s, ours, _ := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, ours, theirs)
	for i := range 12 {
		from, to := ours, theirs
		if i%4 == 3 { // a reply: the sender's next message has a new chain, and does not start the session
			from, to = theirs, ours
		}
		text := fmt.Sprint("message ", i, " ", string(make([]byte, i*7)))
		want := encryptWithLibsignal(t, s, from, to, text)
		got := write(t.Context(), t, s, from, to, text)
		if got.first != want.first || !bytes.Equal(got.bytes, want.bytes) {
			t.Fatalf("message %d, starts a session %t and %t:\n%x\nlibsignal:\n%x", i, got.first, want.first, got.bytes, want.bytes)
		}
		if got.first != (i < 3) {
			t.Errorf("message %d starts a session: %t", i, got.first)
		}
		if read, err := decrypt(t.Context(), to, from, got, sha256.Sum256(got.bytes)); err != nil || read != text {
			t.Fatalf("message %d was read as %q, %v", i, read, err)
		}
	}
}

// encryptWithLibsignal does not store the session, so its keys are not used up.
func encryptWithLibsignal(t *testing.T, s *Store, from, to *store.Device, text string) sealed {
	t.Helper()
	ctx, done := s.SendContext(t.Context())
	defer done()
	_, cached, err := from.WithCachedSessions(ctx, []string{toAddress(to).String()})
	must(t, err)
	builder := session.NewBuilderFromSignal(from, toAddress(to), store.SignalProtobufSerializer)
	message, err := session.NewCipher(builder, toAddress(to)).Encrypt(cached, []byte(text))
	must(t, err)
	return sealed{message.Type() == protocol.PREKEY_TYPE, message.Serialize()}
}

func TestEncryptNeedsASession(t *testing.T) {
	s, ours, _ := fresh(t)
	theirs := linked(t, s, friend)
	ctx, done := s.SendContext(t.Context())
	defer done()
	if _, _, err := Encrypt(ctx, ours, toAddress(theirs), []byte("hello")); !errors.Is(err, signalerror.ErrUninitializedSession) {
		t.Errorf("got %v", err)
	}
}
