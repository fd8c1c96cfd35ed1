package whatsapp

import (
	"context"
	"encoding/json"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

// WhatsApp asks some accounts for a passkey when a device is linked. Only a browser on web.whatsapp.com can ask the authenticator: the
// request is published as a step of the pairing, and a person hands in the response. WhatsApp may then want a code to be compared with
// the one on the phone.

const (
	// passkeyLife is how long a response is accepted; whatsmeow forgets the key of the request after 5 minutes.
	passkeyLife = 5 * time.Minute
	// passkeyWait is for a pairing to accept what was handed in.
	passkeyWait = 5 * time.Second

	passkeySentence = "WhatsApp asks this account for its passkey. Answer the request on web.whatsapp.com, in a browser that has " +
		"the passkey, and hand in the response."
	confirmSentence = "Compare this code with the one on the phone, and confirm that they are the same."
	passkeyFailed   = "WhatsApp did not accept the passkey. Pair again."
)

// passkeyAnswer is the response of an authenticator; nil: a person confirmed the code.
type passkeyAnswer struct {
	response *types.WebAuthnResponse
	result   chan error
}

func (s *session) Passkey(ctx context.Context, assertion []byte) error {
	a := passkeyAnswer{result: make(chan error, 1)}
	if assertion != nil {
		a.response = &types.WebAuthnResponse{}
		if err := json.Unmarshal(assertion, a.response); err != nil || len(a.response.RawID) == 0 || len(a.response.Response.Signature) == 0 {
			return parley.InvalidField("assertion", "assertion must be the response of the passkey, as web.whatsapp.com printed it.")
		}
	}
	select {
	case s.passkeys <- a:
	case <-time.After(passkeyWait):
		return network.ErrNoPasskey
	case <-s.ctx.Done():
		return network.NotConnected(nil)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-a.result:
		return err
	case <-s.ctx.Done():
		return network.NotConnected(nil)
	}
}

func (p *pairing) askPasskey(e *events.PairPasskeyRequest) pairingOutcome {
	request, err := json.Marshal(e.PublicKey)
	if err != nil || e.PublicKey == nil {
		p.fail(passkeyFailed)
		return pairingOver
	}
	life := passkeyLife
	if own := time.Duration(e.PublicKey.Timeout) * time.Millisecond; own > 0 {
		life = min(life, own)
	}
	p.codes, p.until, p.wantsPasskey = nil, time.Now().Add(life), true
	p.s.publishStep(network.Pairing{Step: parley.PasskeyStep, Reason: passkeySentence, Request: string(request), ExpiresAt: p.until})
	p.timer.Reset(life)
	p.typed.Stop()
	return pairingGoesOn
}

// answerPasskey passes on what a person handed in.
func (p *pairing) answerPasskey(a passkeyAnswer) error {
	if a.response == nil && !p.wantsConfirmation || a.response != nil && !p.wantsPasskey {
		return network.ErrNoPasskey
	}
	ctx, cancel := context.WithTimeout(p.l.ctx, requestTimeout)
	defer cancel()
	unhook := context.AfterFunc(p.s.ctx, cancel)
	defer unhook()
	if a.response == nil {
		return p.confirmPasskey(ctx)
	}
	var err error
	func() {
		defer p.s.recoverPanic(&err)
		err = p.l.client.SendPasskeyResponse(ctx, a.response)
	}()
	if err != nil {
		p.s.d.config.Log.Warn("whatsapp: hand in a passkey", "channel", p.s.code, "error", redact("%v", []any{err}))
		return parley.Errorf(parley.BadRequest, "WhatsApp did not accept this response. Make a new one from the request, or pair again.")
	}
	p.timer.Reset(typedCode)
	return nil
}

// compareCode shows the code that a person compares with the one on the phone, unless WhatsApp needs no comparison.
func (p *pairing) compareCode(e *events.PairPasskeyConfirmation) pairingOutcome {
	p.wantsPasskey = false
	if e.SkipHandoffUX {
		ctx, cancel := context.WithTimeout(p.l.ctx, requestTimeout)
		defer cancel()
		if p.confirmPasskey(ctx) != nil {
			p.fail(passkeyFailed)
			return pairingOver
		}
		return pairingGoesOn
	}
	p.wantsConfirmation, p.until = true, time.Now().Add(typedCode)
	p.s.publishStep(network.Pairing{Step: parley.ConfirmStep, Reason: confirmSentence, Code: e.Code, ExpiresAt: p.until})
	p.timer.Reset(typedCode)
	return pairingGoesOn
}

func (p *pairing) confirmPasskey(ctx context.Context) (err error) {
	defer p.s.recoverPanic(&err)
	if err = p.l.client.SendPasskeyConfirmation(ctx); err != nil {
		p.s.d.config.Log.Warn("whatsapp: confirm a passkey", "channel", p.s.code, "error", redact("%v", []any{err}))
		return parley.Errorf(parley.BadRequest, "WhatsApp did not accept the confirmation. Pair again.")
	}
	p.wantsConfirmation = false
	p.timer.Reset(typedCode)
	return nil
}
