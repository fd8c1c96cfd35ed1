package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/wait"
)

// passkeyLife is how long a person may take, as on the real network.
const passkeyLife = 5 * time.Minute

// passkeyRequest is what a pairing waits for; zero: nothing.
type passkeyRequest struct {
	step      parley.PairingStep // PasskeyStep or ConfirmStep
	challenge string
	until     time.Time
}

func (f *Fault) isPasskey() bool { return f.Fault == FaultPasskey }

// wantsPasskey reports whether the next pairing asks for a passkey.
func (w *world) wantsPasskey() bool {
	return slices.ContainsFunc(w.queuedFaults(), func(f Fault) bool { return f.isPasskey() })
}

func (s *session) askPasskey() {
	challenge := base64.RawURLEncoding.EncodeToString([]byte(rand.Text()))
	request, _ := json.Marshal(map[string]any{"challenge": challenge, "timeout": passkeyLife.Milliseconds(), "userVerification": "preferred",
		"allowCredentials": []any{}}) // never fails
	s.mu.Lock()
	s.publishStep(network.Pairing{Step: parley.PasskeyStep, Request: string(request),
		Reason: "The simulated account asks for its passkey. Hand in a response that contains the challenge of the request."},
		passkeyRequest{challenge: challenge})
	s.mu.Unlock()
	s.setStatus(parley.ChannelScanQRCode, "It is waiting for the passkey of its account.")
}

// publishStep queues a step of a pairing, and what it waits for then. It is called with the lock held.
func (s *session) publishStep(p network.Pairing, waits passkeyRequest) {
	p.At = time.Now()
	if waits.step = p.Step; p.Step.IsOver() {
		waits = passkeyRequest{}
	} else {
		p.ExpiresAt = p.At.Add(passkeyLife)
		waits.until = p.ExpiresAt
	}
	s.asked = waits
	s.states = append(s.states, p)
	wait.Notify(s.world.now)
	s.start()
}

// Passkey takes any response that contains the challenge, then the confirmation that a person compared the codes.
func (s *session) Passkey(ctx context.Context, assertion []byte) error {
	if s.ctx.Err() != nil {
		return network.NotConnected(nil)
	}
	s.mu.Lock()
	asked := s.asked
	switch {
	case assertion == nil && asked.step != parley.ConfirmStep, assertion != nil && asked.step != parley.PasskeyStep:
		s.mu.Unlock()
		return network.ErrNoPasskey
	case assertion == nil:
		s.asked = passkeyRequest{} // nobody else confirms it meanwhile
		s.mu.Unlock()
		return s.endPasskey(ctx)
	}
	defer s.mu.Unlock()
	if !contains(assertion, asked.challenge) {
		return parley.Errorf(parley.BadRequest, "The network did not accept this response: its clientDataJSON does not contain the challenge. "+
			"Make a new one from the request, or pair again.")
	}
	code := rand.Text()
	s.publishStep(network.Pairing{Step: parley.ConfirmStep, Code: code[:4] + "-" + code[4:8],
		Reason: "Confirm that the phone shows this code too. The simulated one does."}, passkeyRequest{})
	return nil
}

// endPasskey ends a pairing with a passkey.
func (s *session) endPasskey(ctx context.Context) error {
	if f, ok := s.world.nextFault((*Fault).isPasskey); ok {
		if err := s.world.saveFault(ctx, f); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.publishStep(network.Pairing{Step: parley.PairedStep}, passkeyRequest{})
	s.mu.Unlock()
	return s.setLoggedOut(ctx, false, parley.ChannelWorking, "")
}

// contains reports whether the response of a passkey, as JSON of WebAuthn, is to a challenge.
func contains(assertion []byte, challenge string) bool {
	var a struct {
		Response struct {
			ClientData string `json:"clientDataJSON"`
		} `json:"response"`
	}
	var client struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(assertion, &a) != nil {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(a.Response.ClientData)
	return err == nil && json.Unmarshal(data, &client) == nil && client.Challenge == challenge
}
