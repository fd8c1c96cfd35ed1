package keystore

import (
	"context"
	"fmt"
	"strconv"

	"go.mau.fi/libsignal/cipher"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/serialize"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/whatsmeow/store"
	"google.golang.org/protobuf/proto"
)

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
